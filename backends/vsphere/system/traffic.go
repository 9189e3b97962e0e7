package system

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/esxcli"
)

// A look is a sample of the counters of a pNIC.
type look struct {
	at    time.Time
	stats backends.Fact[esxcli.Row]
	dcb   backends.Fact[esxcli.Row]
}

func (a *asking) look(ctx context.Context, device string) look {
	row := func(command string) backends.Fact[esxcli.Row] {
		return backends.ReadFact(a.row(ctx, a.host.Name, command, esxcli.Arg{Name: "nicname", Text: device}))
	}
	return look{time.Now(), row("network nic stats get"), row("network nic dcb status get")}
}

// counters samples the counters of the chosen pNICs, and returns the second sample.
func (a *asking) counters(ctx context.Context) func(context.Context) {
	a.sys.Stats, a.sys.DCB = map[string]backends.Fact[backends.PortStats]{}, map[string]backends.Fact[backends.DCB]{}
	var again []func(context.Context)
	for _, device := range a.o.PNICs[a.host.Name] {
		if second := a.countersOf(ctx, device); second != nil {
			again = append(again, second)
		}
	}
	if len(again) == 0 {
		return nil
	}
	return func(ctx context.Context) {
		for _, look := range again {
			look(ctx)
		}
	}
}

func (a *asking) countersOf(ctx context.Context, device string) func(context.Context) {
	first := a.look(ctx, device)
	a.sys.DCB[device] = backends.Fact[backends.DCB]{State: first.dcb.State, Value: dcb(first.dcb.Value), Why: first.dcb.Why}
	a.sys.Stats[device] = backends.Fact[backends.PortStats]{State: first.stats.State, Why: first.stats.Why}
	if !first.stats.Known() {
		return nil
	}
	return func(ctx context.Context) {
		again := a.look(ctx, device)
		a.sys.Stats[device] = backends.Fact[backends.PortStats]{State: again.stats.State, Value: grown(first, again), Why: again.stats.Why}
	}
}

func dcb(row esxcli.Row) backends.DCB {
	d := backends.DCB{Supported: field(row, "Priority Flow Control") != "false" && field(row, "Mode") != ""}
	for i, bit := range strings.Fields(field(row, "PFC Configuration")) {
		if i < len(d.PFC) {
			d.PFC[i] = bit == "1"
		}
	}
	return d
}

// grown returns the increase of the counters between two samples. A counter that decreased was reset and is ignored.
func grown(first, again look) backends.PortStats {
	moved := func(labels ...string) (sum int64) {
		for _, label := range labels {
			before, errA := strconv.ParseInt(field(first.stats.Value, label), 10, 64)
			now, errB := strconv.ParseInt(field(again.stats.Value, label), 10, 64)
			if errA == nil && errB == nil {
				sum += max(0, now-before)
			}
		}
		return sum
	}
	return backends.PortStats{
		Errors:  moved("Total receive errors", "Total transmit errors"),
		Dropped: moved("Receive packets dropped", "Transmit packets dropped"),
		Pause:   max(0, pfcFrames(again.dcb.Value)-pfcFrames(first.dcb.Value)), Over: again.at.Sub(first.at),
	}
}

func pfcFrames(row esxcli.Row) (sum int64) {
	for _, way := range []string{"Sent PFC Frames", "Received PFC Frames"} {
		for _, text := range strings.Fields(field(row, way)) {
			frames, _ := strconv.ParseInt(text, 10, 64)
			sum += frames
		}
	}
	return sum
}

// headers is the size of the IPv4 and ICMP headers (RFC 791, RFC 792); smallPing is the default payload of a ping.
const (
	headers   = 28
	smallPing = 56
)

// ping pings the vmknics of the peers, first with the largest payload that fits the MTU: if it arrives, smaller ones add nothing.
func (a *asking) ping(ctx context.Context) {
	a.sys.Peers = map[string]backends.Fact[backends.Peer]{}
	if a.o.VMKNic == nil {
		return
	}
	control := func(h *backends.Host) *backends.VMKernelNIC {
		return h.VMK(cmp.Or(a.o.VMKNic(h.Name), h.Options[backends.VMKNICOption]))
	}
	from := control(a.host)
	for _, peer := range a.peers {
		to := control(peer)
		if from == nil || to == nil || to.IP == "" {
			continue
		}
		a.sys.Peers[peer.Name] = backends.ReadFact(a.reach(ctx, from, to))
	}
}

func (a *asking) reach(ctx context.Context, from, to *backends.VMKernelNIC) (backends.Peer, error) {
	lost := func(payload int, count string) (float64, error) {
		args := []esxcli.Arg{{Name: "interface", Text: from.Device}, {Name: "host", Text: to.IP}, {Name: "count", Text: count}}
		if payload > 0 {
			args = append(args, esxcli.Arg{Name: "df", Text: "true"}, esxcli.Arg{Name: "size", Text: strconv.Itoa(payload)})
		}
		row, err := a.row(ctx, a.host.Name, "network diag ping", args...)
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(row["PacketLost"], 64)
	}
	mtu := min(from.MTU, to.MTU)
	if loss, err := lost(mtu-headers, "2"); err == nil && loss == 0 {
		return backends.Peer{Payload: mtu - headers}, nil
	}
	loss, err := lost(0, "2")
	if err != nil || loss == 100 {
		return backends.Peer{Loss: loss}, err
	}
	for _, size := range slices.Compact([]int{mtu - headers, min(mtu, 1500) - headers}) {
		if loss, err := lost(size, "1"); err == nil && loss == 0 {
			return backends.Peer{Loss: loss, Payload: size}, nil
		}
	}
	return backends.Peer{Loss: loss, Payload: smallPing}, nil
}
