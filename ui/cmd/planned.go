package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
	"github.com/rdma-setup/rdma-setup/wizard/generate/containers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// planFlags are the flags that affect a plan in addition to the answers.
type planFlags struct {
	file     string
	skip     []string
	limit    []string
	forceNIC []string
	parallel int
	canary   bool
	given    func(flag string) bool // set on the command line
	only     []string               // ids of changes; the steps of check --fix

	barred    []plan.Refusal // guests whose login failed: only the logins to hosts are tested
	breakLock bool           // take over a shared lock that has expired
	ask       bool           // the operator can be prompted about one
	// operation bounds one operation; zero: the limit of its kind.
	operation time.Duration
	// remote passes on the keys of the wizard's run page; nil if there is none.
	remote *engine.Remote
}

func (f *planFlags) add(c *cobra.Command) {
	c.Flags().StringVarP(&f.file, "file", "f", "", "answers file; - for stdin")
	c.Flags().StringSliceVar(&f.skip, "skip", nil, "ids of checks or changes to skip")
	c.Flags().StringSliceVar(&f.limit, "limit", nil, "only these hosts and their VMs (try one pair first)")
	c.Flags().StringSliceVar(&f.forceNIC, "force-nic", nil, "HOST/vmnicN: use this pNIC even if it is in use")
	c.Flags().BoolVar(&f.canary, "canary", true,
		"reboot one host first, and the others only after it and its VMs are back; not given: run.reboot.canary of the answers")
	f.given = c.Flags().Changed
	c.Flags().IntVar(&f.parallel, "parallel", 0, "targets to change at the same time (default from the answers, 16)")
}

// operationFlag adds the flag of commands that change something.
func operationFlag(c *cobra.Command, limit *time.Duration) {
	c.Flags().DurationVar(limit, "operation-timeout", 0, "time limit for one operation (default: depends on its kind, up to 2h)")
}

func (f *planFlags) options() plan.Options {
	return plan.Options{Skip: f.skip, Limit: f.limit, ForceNIC: f.forceNIC, Only: f.only, Ourselves: ownAddresses(), Dockerfile: dockerfile}
}

// dockerfile returns the Dockerfile for container.base. It contains neither a release of this program nor a time, because the image
// would then be rebuilt for each.
func dockerfile(base string) (string, error) {
	return containers.Dockerfile{Base: base}.Text(generate.Origin{Tool: "rdma-setup", What: "container.base"})
}

// record stores the flags in the journal: resume needs the same. Names may have commas, so a list is stored as JSON.
func (f *planFlags) record() map[string]string {
	m := map[string]string{}
	for name, list := range map[string][]string{"skip": f.skip, "limit": f.limit, "force-nic": f.forceNIC, "only": f.only} {
		if b, err := json.Marshal(list); err == nil && len(list) > 0 {
			m[name] = string(b)
		}
	}
	if f.parallel > 0 {
		m["parallel"] = strconv.Itoa(f.parallel)
	}
	if f.given != nil && f.given("canary") {
		m["canary"] = strconv.FormatBool(f.canary)
	}
	return m
}

// recorded reads them from there.
func recorded(m map[string]string) (planFlags, error) {
	var f planFlags
	for name, list := range map[string]*[]string{"skip": &f.skip, "limit": &f.limit, "force-nic": &f.forceNIC, "only": &f.only} {
		if m[name] == "" {
			continue
		}
		if err := json.Unmarshal([]byte(m[name]), list); err != nil {
			return f, backends.Refusedf("", "", "the journal's --%s cannot be read: %w", name, err)
		}
	}
	f.parallel, _ = strconv.Atoi(m["parallel"]) // missing values are in the answers
	f.canary = m["canary"] == "true"
	f.given = func(flag string) bool { return flag == "canary" && m["canary"] != "" }
	return f, nil
}

// check refuses invalid words; whether they name something depends on the inventory.
func (f *planFlags) check() error {
	for _, id := range f.skip {
		if !strings.Contains(id, "/") && !knownCheck(id) { // ids of changes have slashes
			return console.Usage(nearestCheck(id)+", plan -o json the changes", "--skip %q: there is no check or change of this id", id)
		}
	}
	for _, spec := range f.forceNIC {
		if i := strings.LastIndex(spec, "/"); i < 1 || i == len(spec)-1 {
			return console.Usage("write the host as vCenter shows it and the device, such as esx-01/vmnic2",
				"--force-nic %q is not of the form HOST/vmnicN", spec)
		}
	}
	if f.operation < 0 {
		return console.Usage("", "--operation-timeout %s is negative", f.operation)
	}
	if f.parallel < 0 || f.parallel > 256 {
		return console.Usage("", "--parallel %d is not between 1 and 256", f.parallel)
	}
	return nil
}

// text returns the answers in the form of the journal.
func text(a *answers.Answers) (string, error) {
	var b strings.Builder
	err := answers.Save(&b, a)
	return b.String(), err
}

// load reads the answers of -f with the changes by other flags; with --lab and without -f they are the lab's own.
func (f *planFlags) load(e *console.Env, lab *session.Lab) (*answers.Answers, error) {
	a, err := session.Load(e, f.file, lab)
	if err == nil {
		f.into(a)
	}
	return a, err
}

// begin loads the answers and opens the session for them.
func (f *planFlags) begin(ctx context.Context, e *console.Env, cmd *cobra.Command) (*session.Session, *answers.Answers, error) {
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	s, a, err := session.Begin(ctx, e, cmd, f.file)
	if err == nil {
		f.into(a)
	}
	return s, a, err
}

// into changes the answers according to flags.
func (f *planFlags) into(a *answers.Answers) {
	if f.parallel > 0 {
		a.Run.Parallel = f.parallel
	}
	if f.given != nil && f.given("canary") {
		a.Run.Reboot.Canary = f.canary
	}
}

// A planned is the result of survey, preflight and plan.
type planned struct {
	inv      *backends.Inventory
	findings []checks.Finding
	plan     *plan.Plan
	until    time.Time // the end of the window at planning time: a late answer does not move it to the next day
}

// windowEnd returns the end of the window of a run that begins now; zero: no end.
func windowEnd(e *console.Env, a *answers.Answers) time.Time {
	if e.Twin != nil {
		return time.Time{}
	}
	return a.Run.Window.End(e.Now())
}

// makePlan surveys, runs the preflight and plans. A failed check that is not skipped is a refusal.
func makePlan(ctx context.Context, s *session.Session, a *answers.Answers, f planFlags) (*planned, error) {
	until := windowEnd(s.Env, a)
	inv, err := s.Survey(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := knownLimit(inv, f.limit); err != nil {
		return nil, err
	}
	p := &planned{inv: inv, findings: preflight(ctx, s, a, inv, f), until: until}
	opts := f.options()
	opts.Until = until
	if p.plan, err = recipe.Build(a, inv, opts); err == nil {
		err = provenMoves(ctx, s, a, inv, p.plan)
	}
	return p, refusal(err, p.findings)
}

// refusal combines the plan's refusals with the failed checks: each reason of a target once.
func refusal(err error, findings []checks.Finding) error {
	var r plan.Refused
	if refused, ok := errors.AsType[*plan.Refused](err); ok {
		r.Refusals = refused.Refusals
	} else if err != nil {
		return err
	}
	for _, f := range findings {
		said := func(r plan.Refusal) bool {
			return r.Target == f.Target && (r.Check == "" || topic(r.Check) == topic(f.ID))
		}
		if f.Status == checks.Fail && !slices.ContainsFunc(r.Refusals, said) {
			r.Refusals = append(r.Refusals, plan.Refusal{Target: f.Target, Check: f.ID, Why: f.ID + ": " + f.Evidence, Remedy: f.Remedy})
		}
	}
	if len(r.Refusals) == 0 {
		return nil
	}
	return &r
}

// topic is the common prefix of checks about one subject: HOST-PNIC of HOST-PNIC-RDMA-001. An unsuitable pNIC is refused once, not
// by each of its checks.
func topic(check string) string {
	parts := strings.SplitN(check, "-", 3)
	return strings.Join(parts[:min(2, len(parts))], "-")
}

// ownAddresses returns the addresses of this machine, without loopback.
func ownAddresses() []string {
	var out []string
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil // then no VM is recognised as this machine
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() {
			out = append(out, n.IP.String())
		}
	}
	return out
}

// limited returns the answers and the inventory without the hosts that --limit does not name and without the VMs and
// guests on them. With no names it returns both unchanged.
func limited(a *answers.Answers, inv *backends.Inventory, hosts []string) (*answers.Answers, *backends.Inventory) {
	if len(hosts) == 0 {
		return a, inv
	}
	few, out := *a, *inv
	few.Hosts.Names = slices.DeleteFunc(slices.Clone(a.Hosts.Names), func(name string) bool { return !slices.Contains(hosts, name) })
	few.VMs = slices.DeleteFunc(slices.Clone(a.VMs), func(v answers.VM) bool {
		vm := inv.VM(v.Name)
		return vm != nil && !slices.Contains(hosts, vm.Host)
	})
	out.Hosts = slices.DeleteFunc(slices.Clone(inv.Hosts), func(h backends.Host) bool { return !slices.Contains(hosts, h.Name) })
	out.VMs = slices.DeleteFunc(slices.Clone(inv.VMs), func(v backends.VM) bool { return !slices.Contains(hosts, v.Host) })
	out.Guests = slices.DeleteFunc(slices.Clone(inv.Guests), func(g backends.Guest) bool { return out.VM(g.VM) == nil })
	return &few, &out
}

// knownLimit returns an error of KindRefused if --limit names a host that is not in the inventory.
func knownLimit(inv *backends.Inventory, hosts []string) error {
	for _, name := range hosts {
		if inv.Host(name) == nil {
			names := plain.Mapped(inv.Hosts, hostName)
			hint := console.Meant(name, names, "%s?", "use a host from the answers: "+plain.Names(names))
			return backends.Refusedf(name, hint, "--limit contains a host that is not in the answers")
		}
	}
	return nil
}

func hostName(h backends.Host) string { return h.Name }
