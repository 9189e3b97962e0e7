//go:build bench

package cmd_test

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// A crowd is a world of many hosts that answers immediately, so that only the screen is measured.
type crowd struct {
	hosts     int
	perSecond int           // events of each host while the run is busy
	busy      time.Duration // and how long it is busy
	began     chan struct{} // closed when the run begins
	finish    chan struct{} // closed to end the run
}

func (c *crowd) Default() live.Login {
	return live.Login{URL: "https://vcenter.example/sdk", Username: "operator@vsphere.local", Password: "right"}
}
func (c *crowd) Simulated() bool                             { return true }
func (c *crowd) Private(live.Login) bool                     { return true }
func (c *crowd) Insecure() []string                          { return nil }
func (c *crowd) Reachable(context.Context, live.Login) error { return nil }
func (c *crowd) SaveAnswers(*answers.Answers, live.Saving) (string, error) {
	return "answers.yaml", nil
}
func (c *crowd) Expected(*answers.Answers, *plan.Plan) time.Duration { return 0 }
func (c *crowd) SaveHTML(string, []byte) (string, error)             { return "report.html", nil }
func (c *crowd) Editor(string) (*exec.Cmd, func() (string, error), error) {
	return nil, nil, nil
}
func (c *crowd) Draft() (*answers.Answers, time.Time) { return nil, time.Time{} }
func (c *crowd) KeepDraft(*answers.Answers) error     { return nil }
func (c *crowd) InspectCommand() string               { return "rdma-setup check" }
func (c *crowd) ReplayCommand(string) string          { return "rdma-setup apply -f answers.yaml" }

// Propose selects two VMs, the minimum for a measurement.
func (c *crowd) Propose(a *answers.Answers, _ *backends.Inventory) *answers.Answers {
	if len(a.VMs) == 0 {
		for i := range byte(2) {
			v := answers.DefaultVM(fmt.Sprintf("vm-%04d", i))
			v.IP.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, 50, 11 + i}), 24)
			a.VMs = append(a.VMs, v)
		}
	}
	return a
}

func (c *crowd) Connect(context.Context, live.Login, func(*backends.Inventory)) (*backends.Inventory, error) {
	inv := &backends.Inventory{VCenter: backends.VCenter{URL: "https://vcenter.example/sdk", Version: "8.0.3"}}
	for i := range c.hosts {
		h := backends.Host{
			Name: fmt.Sprintf("esx-%04d.example", i), Datacenter: "DC", Cluster: fmt.Sprintf("Cluster-%02d", i/32), Version: "8.0.3",
			State: "connected", VMKs: []backends.VMKernelNIC{{Device: "vmk0", IP: "10.0.0.1"}},
		}
		for n := range 6 {
			h.NICs = append(h.NICs, backends.NIC{
				Device: fmt.Sprintf("vmnic%d", n), MAC: fmt.Sprintf("0c:42:a1:%02x:%02x:%02x", i/256, i%256, n), SpeedMbps: 100000,
				Driver:     "nic_driver",
				RDMADevice: fmt.Sprintf("vmrdma%d", n), RoCEv2: true, Eligible: n == 2, Why: "RoCE v2, link up, free",
			})
		}
		inv.Hosts = append(inv.Hosts, h)
		inv.VMs = append(inv.VMs, backends.VM{Name: fmt.Sprintf("vm-%04d", i), Host: h.Name, Power: "poweredOn", Hardware: 19, MemoryMB: 16384})
	}
	return inv, nil
}

func (c *crowd) Survey(ctx context.Context, _ *answers.Answers) (*backends.Inventory, error) {
	return c.Connect(ctx, live.Login{}, nil)
}

func (c *crowd) Inspect(ctx context.Context, _ *answers.Answers) (*backends.Inventory, *report.Report, error) {
	inv, err := c.Connect(ctx, live.Login{}, nil)
	return inv, &report.Report{}, err
}

func (c *crowd) Asks(live.Ask) {}

func (c *crowd) Choose(a *answers.Answers, _ *backends.Inventory) map[string]string {
	picks := map[string]string{}
	for _, h := range a.Hosts.Names {
		picks[h] = "vmnic2"
	}
	return picks
}

func (c *crowd) Preflight(context.Context, *answers.Answers, *backends.Inventory) []checks.Finding {
	return []checks.Finding{{ID: "VC-CONN-001", Target: backends.Ref{Type: backends.TypeVCenter, Name: "vcenter.example"}, Status: checks.Pass,
		Evidence: "answers"}}
}

func (c *crowd) Plan(*answers.Answers, *backends.Inventory) (*plan.Plan, error) {
	p := &plan.Plan{Mode: "pvrdma"}
	for i := range c.hosts {
		p.Changes = append(p.Changes,
			plan.Change{Setting: backends.Setting{Target: backends.HostRef(fmt.Sprintf("esx-%04d.example", i)), Kind: backends.KindFirewall,
				Name: "pvrdma"}, To: backends.ValueOf(true)})
	}
	return p, nil
}

func (c *crowd) Apply(_ context.Context, _ *answers.Answers, p *plan.Plan, _ <-chan struct{}, _ *engine.Remote,
	sink engine.Sink) (engine.Result, error) {
	var nodes []engine.NodeInfo
	for _, ch := range p.Changes {
		nodes = append(nodes, engine.NodeInfo{ID: ch.ID(), Target: ch.Target, Title: plan.Title(ch)})
	}
	sink(engine.Event{Type: engine.EventPlanned, Time: time.Now(), Nodes: nodes})
	for _, n := range nodes {
		sink(engine.Event{Type: engine.EventStarted, Time: time.Now(), Node: n.ID, Target: n.Target, Title: n.Title})
	}
	close(c.began)
	tick := time.NewTicker(time.Second / time.Duration(c.perSecond))
	defer tick.Stop()
	for i := range int(c.busy.Seconds()) * c.perSecond {
		<-tick.C
		for _, n := range nodes {
			sink(engine.Event{Type: engine.EventProgress, Time: time.Now(), Node: n.ID, Target: n.Target, Title: n.Title, Percent: 1 + i%99})
		}
	}
	<-c.finish
	return engine.Result{Run: "run", Status: engine.StatusDone}, nil
}

func (c *crowd) Rehearsable(live.Login) bool { return false }

func (c *crowd) Rehearse(context.Context, *answers.Answers) (string, error) { return "", nil }

func (c *crowd) Loads(*answers.Answers, *backends.Inventory) []perftest.LoadPlan { return nil }

func (c *crowd) Measure(context.Context, *answers.Answers, <-chan struct{}, func(perftest.Progress)) ([]perftest.Measurement, error) {
	return nil, nil
}

func (c *crowd) Report(context.Context, *answers.Answers, engine.Result, []checks.Finding, []perftest.Measurement) (*report.Report, error) {
	return &report.Report{}, nil
}
