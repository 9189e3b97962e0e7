package cmd

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// fabric implements live.Fabric for the wizard.
type fabric struct {
	s     *session.Session
	file  string // where the answers are saved
	wrote string // the content that this wizard last wrote there
	given bool   // the operator named answers: no draft is offered
	last  *planned
	ready bool // the last check found RDMA adapters
	loads []perftest.LoadPlan
}

// Default implements live.Fabric.
func (f *fabric) Default() live.Login {
	set := f.s.Set
	return live.Login{URL: set.URL, Username: set.Username, Password: set.Password.Text, Thumbprint: set.Thumbprint}
}

// Simulated implements live.Fabric.
func (f *fabric) Simulated() bool { return f.s.Lab != nil || f.s.Simulated() }

// Private implements live.Fabric. The operator may have replaced the lab's address.
func (f *fabric) Private(l live.Login) bool {
	if f.s.Lab == nil {
		return false
	}
	is, err := url.Parse(l.URL)
	lab, bad := url.Parse(f.s.Set.URL)
	return err == nil && bad == nil && is.Host != "" && is.Host == lab.Host
}

// Insecure implements live.Fabric.
func (f *fabric) Insecure() []string { return f.s.Set.Unverified() }

// config returns the wizard's connection settings; it never prompts on the terminal, which the screen uses.
func (f *fabric) config(l live.Login, unknown **live.Fingerprint) vsphere.Config {
	set := f.s.Set
	f.s.Trace.Hide(l.Password)
	return vsphere.Config{
		URL: l.URL, Username: l.Username, Thumbprint: l.Thumbprint, CAFiles: session.CAFiles(set.CACerts), Insecure: set.Insecure,
		UserAgent: "rdma-setup/" + f.s.Env.Version, Trace: f.s.Trace.Call,
		Password: func(context.Context) (string, error) { return l.Password, nil },
		Confirm: func(_ context.Context, host, sha256 string) (bool, error) {
			*unknown = &live.Fingerprint{Host: host, SHA256: sha256}
			return false, nil
		},
	}
}

// Reachable implements live.Fabric.
func (f *fabric) Reachable(ctx context.Context, l live.Login) error {
	var unknown *live.Fingerprint
	err := vsphere.Probe(ctx, f.config(l, &unknown))
	if unknown != nil {
		return unknown
	}
	return err
}

// memoryOfOverview is the memory limit while the overview is read, so that the wizard stays under 120 MB with a thousand hosts and
// ten thousand VMs. Larger sites take more memory and CPU time.
const memoryOfOverview = 56 << 20

// Connect implements live.Fabric.
func (f *fabric) Connect(ctx context.Context, l live.Login, names func(*backends.Inventory)) (*backends.Inventory, error) {
	defer f.s.Env.Collect(0, memoryOfOverview)()
	var unknown *live.Fingerprint
	vc, err := vsphere.Dial(ctx, f.config(l, &unknown))
	if err != nil {
		return nil, err
	}
	f.s.Change(vc)
	scope := backends.Scope{}
	if names != nil {
		scope.Names = func(inv *backends.Inventory) {
			f.s.Note(inv)
			names(inv)
		}
	}
	inv, err := vc.Inventory(ctx, scope)
	if err != nil {
		return nil, err
	}
	f.s.Note(inv)
	return inv, nil
}

// Choose implements live.Fabric.
func (f *fabric) Choose(a *answers.Answers, inv *backends.Inventory) map[string]string {
	return recipe.Choose(a, inv)
}

// Propose implements live.Fabric: open answers are proposed from the inventory, given answers stay.
func (f *fabric) Propose(a *answers.Answers, inv *backends.Inventory) *answers.Answers {
	if a.NIC.Open() {
		fastest := 0
		for _, h := range inv.Hosts {
			for _, n := range h.NICs {
				if n.Eligible {
					fastest = max(fastest, n.SpeedMbps)
				}
			}
		}
		a.NIC.Speed = answers.Speed(fastest)
	}
	if len(a.VMs) == 0 && len(a.Hosts.Names) > 0 {
		proposeVMs(a, inv)
	}
	return a
}

// proposeVMs proposes the powered-on Linux VMs of the chosen hosts, with free addresses of one network.
func proposeVMs(a *answers.Answers, inv *backends.Inventory) {
	chosen := entry.Members(a)
	var names []string
	for _, v := range inv.VMs {
		if chosen[v.Host] && v.Power == "poweredOn" && entry.Unfit(v) == "" && !strings.Contains(strings.ToLower(v.GuestID), "win") {
			names = append(names, v.Name)
		}
	}
	free := entry.FreeAddresses(nil, inv.VMs, len(names))
	for _, name := range names {
		a.VMs = append(a.VMs, entry.Completed(name, answers.VM{}, false, free))
	}
}

// Survey implements live.Fabric.
func (f *fabric) Survey(ctx context.Context, a *answers.Answers) (*backends.Inventory, error) {
	f.s.AskAgain()
	return f.s.Survey(ctx, a)
}

// Preflight implements live.Fabric.
func (f *fabric) Preflight(ctx context.Context, a *answers.Answers, inv *backends.Inventory) []checks.Finding {
	found := preflight(ctx, f.s, a, inv, planFlags{})
	f.last = &planned{inv: inv, findings: found}
	return found
}

// Plan implements live.Fabric.
func (f *fabric) Plan(a *answers.Answers, inv *backends.Inventory) (*plan.Plan, error) {
	p, err := recipe.Build(a, inv, plan.Options{})
	if f.last != nil {
		f.last.plan, f.last.until = p, windowEnd(f.s.Env, a)
	}
	return p, err
}

// Expected implements live.Fabric.
func (f *fabric) Expected(a *answers.Answers, p *plan.Plan) time.Duration {
	d, err := engine.Expected(jobOf(f.s, a, planFlags{}, nil, nil, nil), p)
	if err != nil {
		return 0
	}
	return d
}

// Apply implements live.Fabric.
func (f *fabric) Apply(ctx context.Context, a *answers.Answers, p *plan.Plan, stop <-chan struct{}, remote *engine.Remote,
	sink engine.Sink) (engine.Result, error) {
	f.last.plan = p
	return carryOut(ctx, f.s, a, f.last, planFlags{remote: remote}, stop, sink)
}

// Measure implements live.Fabric.
func (f *fabric) Measure(ctx context.Context, a *answers.Answers, stop <-chan struct{},
	progress func(perftest.Progress)) ([]perftest.Measurement, error) {
	f.s.Stop = stop
	all, err := f.s.Measure(ctx, a, nil, a.Measure.Pairs, progress)
	loads := perftest.Loads(a.Measure.Load)
	if err != nil || len(loads) == 0 {
		return all, err
	}
	var why error
	more, err := f.s.Load(ctx, a, loads, session.Loading{Stop: stop, Told: progress, Agree: func(plans []perftest.LoadPlan) (bool, error) {
		why = f.notLoaded(a, plans)
		return why == nil, nil
	}})
	switch {
	case err == nil:
		err = why
	case backends.KindOf(err) == backends.KindRefused:
		err = nil // too few VMs, which the plan did not report either
	}
	return append(all, more...), err
}

// notLoaded returns why loads with this cost are omitted; nil if they are not.
func (f *fabric) notLoaded(a *answers.Answers, plans []perftest.LoadPlan) error {
	if f.s.Simulated() || covers(f.loads, plans) {
		return nil
	}
	return backends.Refusedf("",
		"Run `rdma-setup bench --load "+a.Measure.Load+"`, which shows the cost and asks for consent.",
		"the fabric was not loaded: the load would cost more than you agreed to")
}

// Loads implements live.Fabric.
func (f *fabric) Loads(a *answers.Answers, inv *backends.Inventory) []perftest.LoadPlan {
	f.loads = session.LoadPlans(a, inv)
	return f.loads
}

// Report implements live.Fabric.
func (f *fabric) Report(ctx context.Context, a *answers.Answers, res engine.Result, found []checks.Finding,
	measured []perftest.Measurement) (*report.Report, error) {
	f.last.findings = found
	f.s.KeepLab(res.Status.Exit())
	after := lookAgain(ctx, f.s, a, f.last, planFlags{}, res, measured)
	return reportOf(f.s, a, f.last, res, measured, after, nil, after.err)
}

// ReplayCommand implements live.Fabric.
func (f *fabric) ReplayCommand(answersPath string) string {
	cmd := "rdma-setup apply -f " + plain.ShellWord(answersPath)
	if f.s.Lab != nil {
		cmd += " --lab"
	}
	return cmd
}

var errNoTerminal = errors.New("the wizard needs a terminal")

// noTerminal returns the error for a missing terminal, with alternatives.
func noTerminal() error {
	return console.Usage(`without one:
rdma-setup apply --lab --yes             tries everything on a simulated data centre: no vCenter needed
rdma-setup discover --url VCENTER        lists the site, writes nothing
rdma-setup generate answers              prints answers to start from
rdma-setup apply -f answers.yaml --yes   applies answers`, "%w", errNoTerminal)
}

var _ live.Fabric = (*fabric)(nil)
