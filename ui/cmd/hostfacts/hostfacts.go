// Package hostfacts is what only esxcli tells of hosts, asked through the API of vCenter: parameters of drivers, installed
// packages, counters, neighbours, pings.
package hostfacts

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// smallPing is the payload of a ping that nobody sized.
const smallPing = 56

// Read reads what only esxcli tells, all hosts at the same time, each within the limit. A host that cannot be asked
// says why.
func Read(ctx context.Context, vc *vsphere.Client, limit time.Duration, a *answers.Answers, inv *backends.Inventory) map[string]checks.HostFacts {
	var (
		g  errgroup.Group
		mu sync.Mutex
	)
	out := map[string]checks.HostFacts{}
	g.SetLimit(max(1, a.Run.Parallel))
	hosts := Reachable(a, inv)
	for i, h := range hosts {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			q := hostQuestions{vc: vc, host: h, mode: a.Mode}
			facts := q.ask(ctx, func() {
				if a.Mode == answers.PVRDMA {
					q.facts.Peers = pings(ctx, vc, a, h, neighbours(hosts, i))
				}
			})
			mu.Lock()
			defer mu.Unlock()
			out[h.Name] = facts
			if q.boot != "" {
				inv.Host(h.Name).BootDevice = q.boot
			}
			return nil
		})
	}
	_ = g.Wait()
	return out
}

// Reachable are the selected hosts that vCenter is connected to.
func Reachable(a *answers.Answers, inv *backends.Inventory) []backends.Host {
	return slices.DeleteFunc(slices.Clone(inv.Hosts), func(h backends.Host) bool {
		return h.State != "connected" || len(a.Hosts.Names) > 0 && !slices.Contains(a.Hosts.Names, h.Name)
	})
}

// neighbours are the two hosts after host i, in a ring: every host is pinged from two sides, whatever their number.
func neighbours(hosts []backends.Host, i int) []backends.Host {
	var out []backends.Host
	for k := 1; k <= 2 && k < len(hosts); k++ {
		out = append(out, hosts[(i+k)%len(hosts)])
	}
	return out
}

// rdmaModules names the driver modules of a host's nmlx5 NICs.
func rdmaModules(h backends.Host) []string {
	if slices.ContainsFunc(h.NICs, func(n backends.NIC) bool { return n.Driver == "nmlx5_core" }) {
		return []string{"nmlx5_core", "nmlx5_rdma"}
	}
	return nil
}

// pings tries the vmknics of other hosts: two small pings, then large ones.
func pings(ctx context.Context, vc *vsphere.Client, a *answers.Answers, h backends.Host, peers []backends.Host) map[string]checks.Peer {
	out := map[string]checks.Peer{}
	from := h.VMK(a.PVRDMA.VMKNic)
	if from == nil {
		return out
	}
	for _, peer := range peers {
		to := peer.VMK(a.PVRDMA.VMKNic)
		if to == nil || to.IP == "" {
			continue
		}
		rows, err := vc.Esxcli(ctx, h.Name, "network", "diag", "ping", "-I", from.Device, "-H", to.IP, "-c", "2")
		if err != nil || len(rows) == 0 {
			continue
		}
		lost, err := strconv.ParseFloat(rows[0]["PacketLost"], 64)
		if err != nil {
			continue
		}
		p := checks.Peer{Loss: lost}
		if lost < 100 {
			p.Payload = largest(ctx, vc, h.Name, from.Device, to.IP, min(from.MTU, to.MTU))
		}
		out[peer.Name] = p
	}
	return out
}

// largest is the payload of the largest ping that gets through unfragmented: what fills the MTU, else what fills 1500,
// else what small pings have. 0: none could be tried.
func largest(ctx context.Context, vc *vsphere.Client, host, vmk, to string, mtu int) int {
	for _, size := range slices.Compact([]int{sizing.PingPayload(mtu, false), sizing.PingPayload(min(mtu, 1500), false)}) {
		rows, err := vc.Esxcli(ctx, host, "network", "diag", "ping", "-I", vmk, "-H", to, "-c", "1", "-d", "-s", strconv.Itoa(size))
		if err != nil || len(rows) == 0 {
			return 0
		}
		if rows[0]["PacketLost"] == "0" {
			return size
		}
	}
	return smallPing
}
