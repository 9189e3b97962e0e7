package form

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic/mlx5"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// world is a simulated fabric: a small cluster, a login with one password, a plan of two changes.
type world struct {
	unknownCert bool
	refuse      error
	applied     int
	stopped     bool
	html        string // the saved report
	saved       *answers.Answers
	draft       *answers.Answers
	surveys     int
	looks       int
	ask         live.Ask
	unmet       []live.HostKey      // host keys that the survey shows
	asks        []live.Question     // prompts during the survey
	inRun       *live.Question      // prompt during the run
	told        []live.Answer       // the answers to these prompts
	trusted     []bool              // the answers about host keys
	hang        bool                // the survey blocks until it is cancelled
	findings    []checks.Finding    // of the preflight, in place of the default findings
	logins      []live.Login        // all login attempts
	inv         *backends.Inventory // in place of the default inventory
	reads       int32               // overviews that are being read
	late        chan error          // if set, the overview follows names and states only when something is sent here
	nothing     bool                // the plan is empty
	insecure    []string
	shared      bool     // not the private lab: a plan requires a typed yes, and nothing is preselected
	long        int      // additional changes of the plan, one host each
	reboots     int      // hosts that the plan reboots, and as many VMs that it powers off
	cost        []string // notes
	alone       bool     // a rehearsal is not possible
	rehearsals  int
	unplayed    error // error of the rehearsal
	loads       bool  // the answers include a load of the fabric
	other       bool  // a file with other answers exists
	how         []live.Saving
	editor      func(text string) string // edits the answers as the operator does in the editor
}

var begin = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

func (f *world) Default() live.Login {
	return live.Login{URL: "https://vcenter.example/sdk", Username: "operator@vsphere.local"}
}

func (f *world) Simulated() bool { return true }

func (f *world) Private(live.Login) bool { return !f.shared }

func (f *world) Insecure() []string { return f.insecure }

func (f *world) Reachable(_ context.Context, l live.Login) error {
	switch {
	case strings.HasPrefix(l.URL, "https://nobody.example"):
		return backends.Errorf(backends.KindUnreachable, "nobody.example", "check the address and the way there", "no answer within 15 s")
	case f.unknownCert && l.Thumbprint == "":
		return &live.Fingerprint{Host: "vcenter.example", SHA256: "AB:CD:EF"}
	}
	return nil
}

func (f *world) Connect(ctx context.Context, l live.Login, names func(*backends.Inventory)) (*backends.Inventory, error) {
	f.logins = append(f.logins, l)
	if l.Password != "right" {
		return nil, backends.Errorf(backends.KindAuth, "vcenter.example", "check account and password", "the login was refused")
	}
	inv := inventory()
	if f.inv != nil {
		inv = f.inv
	}
	if f.late != nil && names != nil {
		early := *inv
		early.VMs, early.Hosts = nil, slices.Clone(inv.Hosts)
		for i := range early.Hosts {
			early.Hosts[i].NICs = nil
		}
		atomic.AddInt32(&f.reads, 1)
		defer atomic.AddInt32(&f.reads, -1)
		names(&early)
		select {
		case err := <-f.late:
			return inv, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return inv, nil
}

// connectX is the family of the cards. In testdata, screens contain placeholderDriver, which has the same length, in place of the name
// of its driver.
var connectX = mlx5.Family{}

const placeholderDriver = "nic_driver"

func inventory() *backends.Inventory {
	inv := &backends.Inventory{VCenter: backends.VCenter{URL: "https://vcenter.example/sdk", Version: "8.0.3"}}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("esx-%02d", i)
		inv.Hosts = append(inv.Hosts, backends.Host{
			Name: name, Datacenter: "DC", Cluster: "Cluster-01", Version: "8.0.3", State: "connected",
			VMKs: []backends.VMKernelNIC{{Device: "vmk0", IP: fmt.Sprintf("10.0.0.%d", i)}},
			NICs: []backends.NIC{
				{Device: "vmnic0", MAC: fmt.Sprintf("0c:42:a1:00:0%d:00", i), SpeedMbps: 25000, Driver: connectX.Driver(),
					Roles: []string{"management"}},
				{Device: "vmnic2", MAC: fmt.Sprintf("0c:42:a1:00:0%d:02", i), SpeedMbps: 100000, Driver: connectX.Driver(), RDMADevice: "vmrdma0",
					RoCEv2: true},
			},
		})
		for _, v := range backends.ChoosePNIC(&inv.Hosts[i-1], backends.PNICWish{}).Verdicts {
			v.NIC.Eligible, v.NIC.Why = v.Eligible(), v.Why()
		}
		inv.VMs = append(inv.VMs, backends.VM{Name: fmt.Sprintf("vm-%02d", i), Host: name, Power: "poweredOn", Hardware: 19, MemoryMB: 16384,
			GuestName: "Ubuntu Linux (64-bit)"})
	}
	inv.Hosts[2].State = "disconnected"
	return inv
}

func (f *world) Propose(a *answers.Answers, inv *backends.Inventory) *answers.Answers {
	if len(a.VMs) == 0 && len(a.Hosts.Names) > 0 {
		for i, name := range []string{"vm-01", "vm-02"} {
			v := answers.DefaultVM(name)
			v.IP.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, 50, byte(11 + i)}), 24)
			a.VMs = append(a.VMs, v)
		}
	}
	return a
}

func (f *world) Choose(a *answers.Answers, inv *backends.Inventory) map[string]string {
	picks := map[string]string{}
	for _, h := range a.Hosts.Names {
		picks[h] = "vmnic2"
		if i := slices.IndexFunc(inv.Host(h).NICs, func(n backends.NIC) bool {
			return string(a.NIC.MACs[h]) == n.MAC || a.NIC.Device != "" && a.NIC.Device == n.PCI
		}); i >= 0 {
			picks[h] = inv.Host(h).NICs[i].Device
		}
		if n := inv.Host(h).NIC(picks[h]); n != nil && n.Switch != "" && n.Switch != a.Switch.Name {
			delete(picks, h)
		}
	}
	return picks
}

func (f *world) Survey(ctx context.Context, _ *answers.Answers) (*backends.Inventory, error) {
	f.surveys++
	for _, k := range f.unmet {
		f.trusted = append(f.trusted, f.ask(ctx, live.Question{Key: &k}).Yes)
	}
	for _, q := range f.asks {
		f.told = append(f.told, f.ask(ctx, q))
	}
	if f.hang {
		<-ctx.Done()
		return nil, fmt.Errorf("reading esx-01: %w", ctx.Err())
	}
	return inventory(), nil
}

func (f *world) Preflight(context.Context, *answers.Answers, *backends.Inventory) []checks.Finding {
	if f.findings != nil {
		return f.findings
	}
	return []checks.Finding{
		{ID: "VC-CONN-001", Target: backends.Ref{Type: backends.TypeVCenter, Name: "vcenter.example"}, Status: checks.Pass, Evidence: "answers"},
		{ID: "CL-VER-002", Target: backends.HostRef("esx-02"), Status: checks.Warn, Evidence: "ESXi 8.0.2, most have 8.0.3",
			Remedy: "Install the same ESXi build on all hosts."},
	}
}

func (f *world) Plan(*answers.Answers, *backends.Inventory) (*plan.Plan, error) {
	if f.refuse != nil {
		return nil, f.refuse
	}
	if f.nothing {
		return &plan.Plan{Mode: "pvrdma"}, nil
	}
	p := &plan.Plan{Mode: "pvrdma", Changes: []plan.Change{
		{Setting: backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindOption, Name: "Net.PVRDMAVmknic"},
			From: backends.ValueOf(""), To: backends.ValueOf("vmk0"), Why: "PVRDMA's control plane goes over this vmknic"},
		{Setting: backends.Setting{Target: backends.HostRef("esx-02"), Kind: backends.KindFirewall, Name: "pvrdma"},
			From: backends.ValueOf(false), To: backends.ValueOf(true), Why: "hosts talk over TCP 28250"},
	}, Notes: append([]string{"PVRDMA keeps vMotion and snapshots"}, f.cost...)}
	for i := range f.reboots {
		p.Brackets = append(p.Brackets, plan.Bracket{Kind: backends.BracketReboot, Target: backends.HostRef(fmt.Sprintf("esx-%d", i))},
			plan.Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(fmt.Sprintf("vm-%d", i))})
	}
	for i := range f.long {
		p.Changes = append(p.Changes,
			plan.Change{Setting: backends.Setting{Target: backends.HostRef(fmt.Sprintf("esx-%d", 100+i)), Kind: backends.KindOption,
				Name: fmt.Sprintf("Net.Option%d", i)}, To: backends.ValueOf("1")})
	}
	return p, nil
}

func (f *world) Rehearsable(live.Login) bool {
	return f.shared && !f.nothing && !f.alone
}

func (f *world) Rehearse(ctx context.Context, _ *answers.Answers) (string, error) {
	f.rehearsals++
	if f.hang {
		<-ctx.Done()
		return "", ctx.Err()
	}
	if f.unplayed != nil {
		return "", f.unplayed
	}
	return rehearsed, nil
}

func (f *world) Apply(_ context.Context, _ *answers.Answers, p *plan.Plan, stop <-chan struct{}, _ *engine.Remote,
	sink engine.Sink) (engine.Result, error) {
	f.applied++
	var nodes []engine.NodeInfo
	for _, c := range p.Changes {
		nodes = append(nodes, engine.NodeInfo{ID: c.ID(), Target: c.Target, Title: plan.Title(c)})
	}
	sink(engine.Event{Type: engine.EventPlanned, Time: begin, Nodes: nodes})
	res := engine.Result{Run: "20260314-092653-pvrdma-abcd", Status: engine.StatusDone}
	for i := range p.Changes {
		select {
		case <-stop:
			f.stopped = true
		default:
		}
		c := &p.Changes[i]
		sink(engine.Event{Type: engine.EventStarted, Time: begin, Node: c.ID(), Target: c.Target, Title: plan.Title(*c)})
		sink(engine.Event{Type: engine.EventDone, Time: begin.Add(time.Second), Node: c.ID(), Target: c.Target, Title: plan.Title(*c)})
		res.Nodes = append(res.Nodes, engine.NodeResult{ID: c.ID(), Target: c.Target, Change: c, State: engine.NodeDone})
	}
	sink(engine.Event{Type: engine.EventResult, Time: begin.Add(2 * time.Second), Status: engine.StatusDone})
	return res, nil
}

func (f *world) Loads(*answers.Answers, *backends.Inventory) []perftest.LoadPlan {
	if !f.loads {
		return nil
	}
	return []perftest.LoadPlan{{Load: perftest.LoadIncast, Rounds: 2, Senders: 3, Bytes: 150e9, Time: 20 * time.Second, PeakGbps: 100}}
}

func (f *world) Measure(_ context.Context, _ *answers.Answers, _ <-chan struct{},
	progress func(perftest.Progress)) ([]perftest.Measurement, error) {
	m := perftest.Measurement{From: "vm-01", To: "vm-02", FromHost: "esx-01", ToHost: "esx-02", Test: perftest.SendBandwidth,
		AchievedGbps: 96.1, ExpectedGbps: 98, Verdict: perftest.VerdictPass, Simulated: true, Rows: []perftest.Row{{Bytes: 65536, AvgGbps: 96.1}}}
	if progress != nil {
		progress(perftest.Progress{Round: 1, Rounds: 1, Done: 1, Total: 1, Test: m.Test, Result: &m})
	}
	return []perftest.Measurement{m}, nil
}

func (f *world) Report(_ context.Context, a *answers.Answers, res engine.Result, found []checks.Finding,
	measured []perftest.Measurement) (*report.Report, error) {
	return &report.Report{Run: res.Run, Mode: string(a.Mode), Made: begin, Tool: "test", VCenter: "https://vcenter.example/sdk",
		Simulated: true,
		Status:    string(res.Status), Checks: found, Measurements: measured}, nil
}

func (f *world) SaveAnswers(a *answers.Answers, how live.Saving) (string, error) {
	if a == nil {
		return "", errors.New("no answers")
	}
	if f.other && how == live.AskFirst {
		return "", &live.Exists{Path: "/tmp/answers.yaml", Diff: "...\n- mode: sriov\n+ mode: " + string(a.Mode)}
	}
	f.how = append(f.how, how)
	kept := *a
	f.saved = &kept
	return "/tmp/answers.yaml", nil
}

func (f *world) Expected(*answers.Answers, *plan.Plan) time.Duration { return 54 * time.Minute }

func (f *world) SaveHTML(run string, html []byte) (string, error) {
	f.html = string(html)
	return "/tmp/rdma-setup-report-" + run + ".html", nil
}

func (f *world) Editor(text string) (*exec.Cmd, func() (string, error), error) {
	c := exec.Command("true")
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(""), io.Discard, io.Discard
	return c, func() (string, error) { return f.editor(text), nil }, nil
}

func (f *world) Draft() (*answers.Answers, time.Time) {
	if f.draft == nil {
		return nil, time.Time{}
	}
	kept := *f.draft
	return &kept, begin
}

func (f *world) KeepDraft(a *answers.Answers) error {
	if f.draft = nil; a != nil {
		kept := *a
		f.draft = &kept
	}
	return nil
}

func (f *world) InspectCommand() string { return "rdma-setup check -o html --out report.html" }

func (f *world) Asks(ask live.Ask) { f.ask = ask }

func (f *world) Inspect(ctx context.Context, a *answers.Answers) (*backends.Inventory, *report.Report, error) {
	f.looks++
	if f.hang {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	return inventory(), &report.Report{Mode: string(a.Mode), Made: begin, Tool: "test", VCenter: "https://vcenter.example/sdk",
		Simulated: true,
		Checks:    f.Preflight(ctx, a, nil), Notes: []string{"read-only: nothing was changed or measured"}}, nil
}

func (f *world) ReplayCommand(path string) string { return "rdma-setup apply -f " + path }

// rehearsed is the output of a rehearsal of two hosts and two VMs.
const rehearsed = `SIMULATED: rehearsed on a twin of the site; nothing was written to the site
done, plan 8a6f21c0d4e7
window: 2m25s; expect 1m56s to 2m54s
longest time that a VM is off: 1m35s; expect 1m16s to 1m54s

TARGET  0                                            2m25s
esx-01  ===...............................................
esx-02  ===...............................................
vm-01   ....##################################============  off for 1m35s
vm-02   ....##################################============  off for 1m35s
# out of service, = worked on

checks on the twin: 2 fail, 211 pass, 14 unknown, 6 warn
measurements on the twin (SIMULATED): 4 of 4 as expected
rollback on the twin: done; the plan is the same again

durations:
  a host reboots: 10m0s (stated)
  a host enters maintenance mode: 5m0s (stated)
  a guest shuts down: 30s (stated)
  a guest boots: 1m0s (stated)

assumed, because it was not collected:
  the firmware of drives, and what is on datastores
  vm-02: the guest was not read; a stand-in of Ubuntu 22.04
`
