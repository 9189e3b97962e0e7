package session

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/system"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Measure runs the tests between the guests of the answers. inv is a survey after which nothing has changed; nil: they are read first.
func (s *Session) Measure(ctx context.Context, a *answers.Answers, inv *backends.Inventory, pairs string,
	progress func(perftest.Progress)) ([]perftest.Measurement, error) {
	if !a.Measure.Bandwidth && !a.Measure.Latency || pairs == "none" {
		return nil, nil
	}
	r, all, err := s.measuring(ctx, a, inv, progress)
	if err != nil {
		return nil, err
	}
	var list []perftest.Pair
	for _, nodes := range all {
		of, wrong := perftest.Pairs(nodes, pairs)
		if wrong != nil { // one of two VMs may have no adapter on this rail
			err = wrong
		}
		if s.Env.Twin != nil { // its figures say nothing about the site
			of = perftest.Once(of)
		}
		list = append(list, of...)
	}
	if len(list) == 0 && err != nil {
		return nil, console.Usage("use ring, all, or two VMs of the answers as VM:VM", "%v", err)
	}
	var rails []perftest.CrossPair
	if a.Measure.CrossRail == "all" && a.Several() {
		rails = perftest.CrossPairs(all, crossing(a))
	}
	r.Between = len(rails)
	if r.Bandwidth {
		r.Bonds, r.BondTime = perftest.Bonds(list)
	}
	done, err := s.turn(ctx, progress)
	if err != nil {
		return nil, err
	}
	defer done()
	measured, err := r.Measure(ctx, list)
	if err != nil {
		return measured, err
	}
	s.measureGPUs(ctx, r, list)
	together, err := r.Together(ctx, list, measured)
	measured = append(measured, together...)
	if err != nil || len(rails) == 0 {
		return measured, err
	}
	between, err := r.Cross(ctx, rails)
	return append(measured, between...), err
}

// crossing returns the expectation between two rails, by name: VLANs keep rails apart.
func crossing(a *answers.Answers) func(from, to string) string {
	rails := map[string]answers.Rail{}
	nets := map[string][]netip.Prefix{}
	for _, r := range a.AllRails() {
		rails[r.Name] = r
	}
	for _, v := range a.VMs {
		for _, n := range a.Networks(v) {
			if n.IP.IsValid() { // with DHCP the network is unknown
				nets[n.Rail] = append(nets[n.Rail], n.IP.Masked())
			}
		}
	}
	return func(from, to string) string {
		switch {
		case rails[from].Switch.VLAN != rails[to].Switch.VLAN:
			return perftest.MustNotReach
		case slices.ContainsFunc(nets[from], func(p netip.Prefix) bool { return slices.Contains(nets[to], p) }):
			return perftest.MustReach
		}
		return perftest.MayReach
	}
}

// A Loading is what the caller of Load decides and receives.
type Loading struct {
	// Stop is closed when nothing new should begin, including a load. nil: never.
	Stop <-chan struct{}
	// Agree is called before anything is loaded, with the cost.
	Agree func([]perftest.LoadPlan) (bool, error)
	// Told is called at the start and end of each round; may be nil.
	Told func(perftest.Progress)
}

// Load loads the fabric between the guests of the answers with several simultaneous senders: loads are perftest.Loads. Nothing is
// loaded if Agree refuses, or if there are too few VMs on different host ports. Of several rails it loads the first.
func (s *Session) Load(ctx context.Context, a *answers.Answers, loads []string, l Loading) ([]perftest.Measurement, error) {
	if len(loads) == 0 {
		return nil, nil
	}
	if err := l.stopped(a); err != nil {
		return nil, err
	}
	r, rails, err := s.measuring(ctx, a, nil, l.Told)
	if err != nil {
		return nil, err
	}
	nodes := rails[0]
	var plans []perftest.LoadPlan
	for _, load := range loads {
		if p := perftest.PlanLoad(load, nodes, r.Class != nil); p.Rounds > 0 {
			plans = append(plans, p)
		}
	}
	if len(plans) == 0 {
		return nil, backends.Refusedf("", "an incast needs VMs with RDMA on three host ports, a bisection on four",
			"there are too few VMs to load the fabric")
	}
	if yes, err := l.Agree(plans); !yes || err != nil {
		return nil, err
	}
	done, err := s.turn(ctx, l.Told)
	if err != nil {
		return nil, err
	}
	defer done()
	if r.Class != nil {
		for i := range nodes {
			nodes[i].PFC = s.pfc(ctx, nodes[i].Host, nodes[i].Port)
		}
	}
	var all []perftest.Measurement
	for _, p := range plans {
		if err := l.stopped(a); err != nil {
			return all, err
		}
		measured, err := r.Load(ctx, p.Load, nodes)
		all = append(all, measured...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// stopped is the error of a load that does not begin, because the run was stopped.
func (l Loading) stopped(a *answers.Answers) error {
	select {
	case <-l.Stop:
		return backends.Interruptedf("",
			"Run `rdma-setup bench --load "+a.Measure.Load+"`, which shows the cost and asks for consent.", "stopped before the fabric was loaded")
	default:
		return nil
	}
}

// LoadPlans returns the estimated cost of the requested loads, as far as an inventory from before the changes shows it: VMs
// without an RDMA device count as having one on the port that the answers choose.
func LoadPlans(a *answers.Answers, inv *backends.Inventory) []perftest.LoadPlan {
	nodes, chosen := railNodes(a, inv)[0], recipe.Choose(a, inv)
	for i := range nodes {
		n := &nodes[i]
		n.Device = cmp.Or(n.Device, "rdma")
		if h := inv.Host(n.Host); n.Port == "" && h != nil {
			n.Port = cmp.Or(chosen[n.Host], a.NIC.Device)
			if nic := h.NIC(n.Port); nic != nil {
				n.LinkMbps = cmp.Or(n.LinkMbps, nic.SpeedMbps)
			}
		}
	}
	var plans []perftest.LoadPlan
	for _, load := range perftest.Loads(a.Measure.Load) {
		if p := perftest.PlanLoad(load, nodes, class(a) != nil); p.Rounds > 0 {
			plans = append(plans, p)
		}
	}
	return plans
}

// pfc returns the priorities with PFC on a host port by its DCB state, as a bit mask; nil if that cannot be read.
func (s *Session) pfc(ctx context.Context, host, port string) *int {
	if host == "" || port == "" {
		return nil
	}
	rows, err := s.VC.Esxcli(ctx, host, "network", "nic", "dcb", "status", "get", "-n", port)
	if err != nil {
		return nil
	}
	for _, row := range rows {
		for label, value := range row {
			value, _, _ = strings.Cut(value, ",") // the same row occurs twice in the result
			bits := strings.Fields(value)
			if !strings.EqualFold(strings.ReplaceAll(label, " ", ""), "PFCConfiguration") || len(bits) != 8 {
				continue
			}
			mask := 0
			for priority, bit := range bits {
				if bit == "1" {
					mask |= 1 << priority
				}
			}
			return &mask
		}
	}
	return nil
}

// measuring returns the runner of tests between the guests of the answers, and the ends by rail. A survey in which an end has no
// active RDMA port does not serve: the port may have been coming up.
func (s *Session) measuring(ctx context.Context, a *answers.Answers, inv *backends.Inventory,
	progress func(perftest.Progress)) (*perftest.Runner, [][]perftest.Node, error) {
	noPort := func(n perftest.Node) bool { return n.Device == "" }
	if inv == nil || slices.ContainsFunc(slices.Concat(railNodes(a, inv)...), noPort) {
		var err error
		if inv, err = s.survey(ctx, a, append(planAsks(a), system.Neighbours)); err != nil {
			return nil, nil, err
		}
	} else {
		s.ask(ctx, a, inv, []system.Question{system.Neighbours})
	}
	r := &perftest.Runner{
		Shell: guestShell{s.Guests}, Mode: string(a.Mode), Bandwidth: a.Measure.Bandwidth, Latency: a.Measure.Latency,
		Class: class(a), Loss: true, Repeat: a.Measure.Repeat, Simulated: inv.VCenter.Simulated, Now: s.Env.Now, Progress: progress,
		EthernetMTU: a.Switch.MTU,
	}
	if s.Env.Connections > 0 {
		r.AtOnce = max(1, s.Env.Connections/2) // otherwise the two ends of each pair would be connected to again for each of its commands
	}
	if a.Mode == answers.PVRDMA {
		r.Counters = s.rdmaPackets(inv)
	}
	switch {
	case r.Class != nil:
		r.HostCounters = s.portCounters(inv)
	case a.Mode == answers.PVRDMA:
		r.HostCounters = s.rdmaBytes(inv)
	}
	r.HostIdle = s.idlePort(inv)
	return r, railNodes(a, inv), nil
}

// idlePort reads the bytes of a pNIC (esxcli network nic stats get: Broadcom KB 341594). Whether they contain the RDMA traffic of VFs is
// unverified, so they say something only while nothing is measured. A port that is passed through is none of the host's.
func (s *Session) idlePort(inv *backends.Inventory) func(ctx context.Context, host, port string) (map[string]int64, error) {
	return func(ctx context.Context, host, port string) (map[string]int64, error) {
		if h := inv.Host(host); h == nil || h.NIC(port) == nil {
			return nil, nil
		}
		rows, err := s.VC.Esxcli(ctx, host, "network", "nic", "stats", "get", "-n", port)
		return portBytes(rows, "nic"), err
	}
}

// portBytes returns the bytes that esxcli shows as sent and received.
func portBytes(rows []map[string]string, name string) map[string]int64 {
	out := map[string]int64{}
	for _, row := range rows {
		for label, value := range row {
			way := map[string]string{"bytessent": "_tx_bytes", "bytesreceived": "_rx_bytes"}[strings.ToLower(strings.ReplaceAll(label, " ", ""))]
			if n, bad := strconv.ParseInt(strings.TrimSpace(value), 10, 64); way != "" && bad == nil {
				out[name+way] = n
			}
		}
	}
	return out
}

// railNodes returns the ends of measurements by rail.
func railNodes(a *answers.Answers, inv *backends.Inventory) [][]perftest.Node {
	a = recipe.Deal(a, inv)
	var out [][]perftest.Node
	for i, view := range a.Views() {
		nodes := Nodes(view, inv)
		for k := range nodes {
			if a.Several() {
				nodes[k].Rail, nodes[k].FrameMTU = a.Rails[i].Name, view.Switch.MTU
			}
			if mbps := a.Measure.LinkGbps.Mbps(); mbps > 0 {
				nodes[k].LinkMbps = mbps
			}
		}
		out = append(out, nodes)
	}
	return out
}

// class returns the class that the answers configure: the traffic class of the guests, if a priority is lossless.
func class(a *answers.Answers) *perftest.Class {
	if a.QoS.Lossless != answers.LosslessPFC {
		return nil
	}
	return &perftest.Class{Priority: a.QoS.Priority, TrafficClass: sizing.TrafficClass(a.QoS.DSCP, a.QoS.ECN)}
}

// portCounters reads the counters of a pNIC: through vCenter dropped frames and PFC frames of each priority (esxcli network nic
// stats get, esxcli network nic dcb status get), and the driver's per-priority counters if SSH runs on the host already and its
// password is known. After a refused login the shell is not used again: ESXi locks accounts.
func (s *Session) portCounters(inv *backends.Inventory) func(ctx context.Context, host, port string) (map[string]int64, error) {
	var refused sync.Map
	return func(ctx context.Context, host, port string) (map[string]int64, error) {
		out, err := s.apiCounters(ctx, host, port)
		if err != nil {
			return nil, err
		}
		if bytes, err := s.rdmaBytes(inv)(ctx, host, port); err == nil {
			maps.Copy(out, bytes)
		}
		_, no := refused.Load(host)
		if h := inv.Host(host); no || h == nil || !h.Services["TSM-SSH"].Running || s.Env.Terminal() && !s.Set.ESXiPassword.Known() {
			return out, nil
		}
		more, err := s.Shells.PriorityCounters(ctx, host, port)
		if err != nil {
			refused.Store(host, true)
			return out, nil
		}
		maps.Copy(out, more)
		return out, nil
	}
}

// apiCounters reads the counters of a pNIC through vCenter. A failed command does not affect the result of the other: not every
// driver supports dcb status.
func (s *Session) apiCounters(ctx context.Context, host, port string) (map[string]int64, error) {
	out := map[string]int64{}
	var failed error
	for _, command := range []string{"stats", "dcb status"} {
		words := append(append([]string{"network", "nic"}, strings.Fields(command)...), "get", "-n", port)
		rows, err := s.VC.Esxcli(ctx, host, words...)
		if err != nil {
			failed = err
			continue
		}
		for _, row := range rows {
			for label, value := range row {
				label = strings.ToLower(strings.ReplaceAll(label, " ", ""))
				if name, ok := portCounter[label]; ok {
					if n, err := strconv.ParseInt(value, 10, 64); err == nil {
						out[name] = n
					}
				}
				if name, ok := portPriority[label]; ok {
					for priority, text := range strings.Fields(value) {
						if n, err := strconv.ParseInt(text, 10, 64); err == nil {
							out[name+strconv.Itoa(priority)] = n
						}
					}
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, failed
	}
	return out, nil
}

// The rows of esxcli that are port counters, by label without blanks.
var (
	portCounter  = map[string]string{"receivepacketsdropped": "rx_dropped", "transmitpacketsdropped": "tx_dropped"}
	portPriority = map[string]string{"sentpfcframes": "pfc_sent_prio", "receivedpfcframes": "pfc_received_prio"}
)

// guestShell runs the tests of a measurement in guests.
type guestShell struct{ guests *guest.Guests }

// Exec implements perftest.Shell.
func (g guestShell) Exec(ctx context.Context, vm string, c perftest.Command) (perftest.Output, error) {
	// The runner itself ends tests that take too long, because it has the duration of each test.
	r, err := g.guests.Run(ctx, vm, ssh.Command{Script: c.Line, Sudo: c.Sudo, OnLine: c.OnLine, Limit: time.Hour})
	return perftest.Output{Stdout: r.Stdout, Stderr: r.Stderr, Exit: r.ExitCode}, err
}

// rdmaPackets reads how many packets the RDMA device behind a host's pNIC has carried.
func (s *Session) rdmaPackets(inv *backends.Inventory) func(ctx context.Context, host, port string) (int64, error) {
	return func(ctx context.Context, host, port string) (int64, error) {
		rows, err := s.rdmaStats(ctx, inv, host, port)
		if err != nil {
			return 0, err
		}
		sum, ok := packets(rows)
		if !ok {
			return 0, backends.Permanentf(host, "", "the RDMA counters of %s show no packets", port)
		}
		return sum, nil
	}
}

// rdmaBytes reads how many bytes the RDMA device behind a host's pNIC has carried for all VMs with PVRDMA; it does not count VFs
// (unverified).
func (s *Session) rdmaBytes(inv *backends.Inventory) func(ctx context.Context, host, port string) (map[string]int64, error) {
	return func(ctx context.Context, host, port string) (map[string]int64, error) {
		rows, err := s.rdmaStats(ctx, inv, host, port)
		return portBytes(rows, "rdma"), err
	}
}

// rdmaStats reads the counters of the RDMA device behind a host's pNIC.
func (s *Session) rdmaStats(ctx context.Context, inv *backends.Inventory, host, port string) ([]map[string]string, error) {
	if h := inv.Host(host); h != nil {
		if n := h.NIC(port); n != nil && n.RDMADevice != "" {
			return s.VC.Esxcli(ctx, host, "rdma", "device", "stats", "get", "-d", n.RDMADevice)
		}
	}
	return nil, backends.Permanentf(host, "", "no RDMA device behind %s", port)
}

// packets adds up the packet counters of an RDMA device; ok is false if there are none.
func packets(rows []map[string]string) (sum int64, ok bool) {
	for _, row := range rows {
		for key, value := range row {
			if strings.Contains(strings.ToLower(key), "packets") {
				n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
				if err != nil {
					return 0, false
				}
				sum, ok = sum+n, true
			}
		}
	}
	return sum, ok
}
