package cmd

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func pid() int { return os.Getpid() }

// powerAndGuest is the power bracket of a VM whose guest is waited for: what comes after needs it to answer.
type powerAndGuest struct {
	backends.Bracket
	s *session
}

// Close powers on and waits for the guest's SSH where the answers name one.
func (p powerAndGuest) Close(ctx context.Context, t backends.Ref, leave backends.Value, progress backends.Progress) error {
	if err := p.Bracket.Close(ctx, t, leave, progress); err != nil {
		return err
	}
	if _, reached := p.s.target(t.Name); !reached || leave != backends.ValueOf("poweredOn") {
		return nil
	}
	// A VM that goes off again has no guest to wait for.
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if err := p.s.vc.OffAgain(ctx, t.Name); err != nil {
			cancel(err)
		}
	}()
	err := p.s.guests.Wait(ctx, t.Name)
	cause := context.Cause(ctx)
	cancel(nil)
	<-watched
	if backends.KindOf(cause) == backends.KindPermanent {
		return cause
	}
	return err
}

// guestShell runs the tests of a measurement in guests.
type guestShell struct{ guests *guest.Guests }

// Exec implements perftest.Shell.
func (g guestShell) Exec(ctx context.Context, vm string, c perftest.Command) (perftest.Output, error) {
	r, err := g.guests.Run(ctx, vm, ssh.Command{Script: c.Line, Sudo: c.Sudo, OnLine: c.OnLine})
	return perftest.Output{Stdout: r.Stdout, Stderr: r.Stderr, Exit: r.ExitCode}, err
}

// perftestNodes finds, for every VM of the answers, the RDMA device behind its address, by fact: the adapter's MAC,
// the port's state, the GID table.
func perftestNodes(a *answers.Answers, inv *backends.Inventory) []perftest.Node {
	var nodes []perftest.Node
	for _, v := range a.VMs {
		vm := inv.VM(v.Name)
		networks := a.Networks(v)
		if vm == nil || len(networks) == 0 {
			continue
		}
		n := perftest.Node{VM: vm.Name, Host: vm.Host, IP: networks[0].IP.Addr().String()}
		host := inv.Host(vm.Host)
		for _, ad := range vm.Adapters {
			if ad.PortGroup != networks[0].PortGroup {
				continue
			}
			if host != nil {
				n.Port, n.LinkMbps = uplink(host, ad.Switch)
			}
			if g := inv.Guest(vm.Name); g != nil {
				device(g, strings.ToLower(ad.MAC), &n)
			}
		}
		g := inv.Guest(vm.Name)
		cardNode(vm, g, &n)
		if g != nil {
			n.Version = g.Perftest
		}
		if g.HasImage(a.Container.Image) {
			n.Engine, n.Image = g.Engine.Name, a.Container.Image
		}
		if a.Mode == answers.GPUDirect {
			n.GPU = gpuOf(a, inv, vm, g, n.Device)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// uplink is the pNIC by which a host's share of a switch leaves.
func uplink(h *backends.Host, dvs string) (string, int) {
	for _, n := range h.NICs {
		if n.Switch == dvs {
			return n.Device, n.SpeedMbps
		}
	}
	return "", 0
}

func device(g *backends.Guest, mac string, n *perftest.Node) {
	n.User = g.MemlockKB == -1
	d := g.Verbs(mac)
	if d == nil || d.State != "PORT_ACTIVE" {
		return
	}
	n.Device, n.MTU = d.Name, d.ActiveMTU
	n.GID = -1
	for _, gid := range d.GIDs {
		if strings.Contains(gid.Type, "v2") && gid.IPv4 == n.IP {
			n.GID = gid.Index
		}
	}
	if n.GID < 0 {
		n.Device = "" // no RoCE v2 entry for the address: nothing to test with
	}
}

// rdmaPackets reads how many packets the RDMA device behind a host's pNIC has carried.
func (s *session) rdmaPackets(inv *backends.Inventory) func(ctx context.Context, host, port string) (int64, error) {
	return func(ctx context.Context, host, port string) (int64, error) {
		h := inv.Host(host)
		name := ""
		if h != nil {
			if n := h.NIC(port); n != nil {
				name = n.RDMADevice
			}
		}
		if name == "" {
			return 0, backends.Errorf(backends.KindPermanent, host, "", "no RDMA device behind %s", port)
		}
		rows, err := s.vc.Esxcli(ctx, host, "rdma", "device", "stats", "get", "-d", name)
		if err != nil {
			return 0, err
		}
		var sum int64
		for _, row := range rows {
			for key, value := range row {
				if strings.Contains(strings.ToLower(key), "packets") {
					n, _ := strconv.ParseInt(value, 10, 64)
					sum += n
				}
			}
		}
		return sum, nil
	}
}
