package form

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	uireport "github.com/rdma-setup/rdma-setup/ui/report"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// Questions is the wizard for screen readers and dumb terminals: one question a line, Enter takes what stands in
// brackets. It asks the same and does the same as the screen.
func Questions(ctx context.Context, o Options, secret func(prompt string) (string, error)) (Outcome, error) {
	q := &questions{in: bufio.NewReader(o.In), out: o.Out, o: o, a: o.Answers}
	err := q.run(ctx, secret)
	return q.outcome, err
}

type questions struct {
	in      *bufio.Reader
	out     io.Writer
	o       Options
	a       *answers.Answers
	outcome Outcome
}

// errEnd is an input that ended in the middle: no default may be taken for an answer then.
var errEnd = errors.New("the input ended before all questions were answered: nothing was changed")

func (q *questions) ask(question, def string) (string, error) {
	if def != "" {
		question += " [" + def + "]"
	}
	fmt.Fprintf(q.out, "%s: ", plain.Clean(question))
	line, err := q.in.ReadString('\n')
	if err != nil {
		return "", errEnd
	}
	if line = strings.TrimSpace(line); line != "" {
		return line, nil
	}
	return def, nil
}

func (q *questions) run(ctx context.Context, secret func(string) (string, error)) error {
	inv, err := q.connect(ctx, secret)
	if err != nil {
		return err
	}
	q.a = q.o.Fabric.Propose(q.a, inv)
	for _, step := range []func(*backends.Inventory) error{q.hosts, q.mode, q.nics, q.network, q.vms} {
		if err := step(inv); err != nil {
			return err
		}
	}
	return q.carryOut(ctx)
}

func (q *questions) connect(ctx context.Context, secret func(string) (string, error)) (*backends.Inventory, error) {
	l := q.o.Fabric.Default()
	if q.o.Fabric.Simulated() {
		fmt.Fprintln(q.out, "SIMULATED: this is the embedded lab")
	}
	var err error
	if l.URL, err = q.ask("vCenter address", l.URL); err != nil {
		return nil, err
	}
	if l.Username, err = q.ask("Account", l.Username); err != nil {
		return nil, err
	}
	err = q.o.Fabric.Reachable(ctx, l)
	var unknown *live.Fingerprint
	if errors.As(err, &unknown) {
		word, askErr := q.ask(unknown.Error()+". Trust it? y or n", "n")
		if askErr != nil || !strings.HasPrefix(strings.ToLower(word), "y") {
			return nil, errors.Join(askErr, err)
		}
		l.Thumbprint, err = unknown.SHA256, nil
	}
	if err != nil {
		return nil, err
	}
	if l.Password == "" {
		if l.Password, err = secret("password of " + l.Username); err != nil {
			return nil, err
		}
	}
	q.a.VCenter.URL, q.a.VCenter.Username, q.a.VCenter.Thumbprint = l.URL, l.Username, l.Thumbprint
	return q.o.Fabric.Connect(ctx, l)
}

func (q *questions) hosts(inv *backends.Inventory) error {
	var usable []string
	for _, h := range inv.Hosts {
		fmt.Fprintf(q.out, "host %s, cluster %s, ESXi %s, %s\n", plain.Clean(h.Name), plain.Clean(h.Cluster), h.Version, h.State)
		if h.State == "connected" && !h.InMaintenance && (q.a.Hosts.Cluster == "" || q.a.Hosts.Cluster == h.Cluster) {
			usable = append(usable, h.Name)
		}
	}
	def := usable
	if len(q.a.Hosts.Names) > 0 {
		def = q.a.Hosts.Names
	}
	names, err := q.list("Hosts, separated by commas", def, func(name string) bool { return inv.Host(name) != nil })
	if err != nil {
		return err
	}
	sort.Strings(names)
	q.a.Hosts.Names = names
	q.a.Hosts.Datacenter = inv.Host(names[0]).Datacenter
	q.a = q.o.Fabric.Propose(q.a, inv)
	return nil
}

// list asks until every name is known.
func (q *questions) list(question string, def []string, known func(string) bool) ([]string, error) {
	for {
		line, err := q.ask(question, strings.Join(def, ","))
		if err != nil {
			return nil, err
		}
		var names, wrong []string
		for _, n := range strings.Split(line, ",") {
			if n = strings.TrimSpace(n); n == "" {
				continue
			} else if known(n) {
				names = append(names, n)
			} else {
				wrong = append(wrong, n)
			}
		}
		if len(wrong) == 0 && len(names) > 0 {
			return names, nil
		}
		fmt.Fprintf(q.out, "not known: %s\n", plain.Clean(strings.Join(wrong, ", ")))
	}
}

func (q *questions) mode(*backends.Inventory) error {
	fmt.Fprintln(q.out, costTable)
	for {
		word, err := q.ask("Mode: pvrdma, sriov or gpudirect", string(q.a.Mode))
		if err != nil {
			return err
		}
		if m := answers.Mode(strings.ToLower(word)); slices.Contains([]answers.Mode{answers.PVRDMA, answers.SRIOV, answers.GPUDirect}, m) {
			q.a.Mode = m
			return nil
		}
	}
}

func (q *questions) nics(inv *backends.Inventory) error {
	picks := q.o.Fabric.Choose(q.a, inv)
	macs := map[string]answers.MAC{}
	changed := false
	for _, name := range q.a.Hosts.Names {
		h := inv.Host(name)
		for _, n := range h.NICs {
			fmt.Fprintf(q.out, "%s %s, %s, %s, %s: %s\n", plain.Clean(name), n.Device, plain.Speed(n.SpeedMbps), n.MAC, rdmaWord(n), plain.Clean(n.Why))
		}
		device, err := q.list("pNIC of "+name, nonEmpty(picks[name]), func(d string) bool { n := h.NIC(d); return n != nil && n.Eligible })
		if err != nil {
			return err
		}
		macs[name] = answers.MAC(strings.ToLower(h.NIC(device[0]).MAC))
		changed = changed || device[0] != picks[name]
	}
	if changed {
		q.a.NIC = answers.NIC{MACs: macs}
	}
	return nil
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func (q *questions) network(*backends.Inventory) (err error) {
	for _, f := range []struct {
		question string
		into     *string
	}{{"Distributed switch", &q.a.Switch.Name}, {"Port group", &q.a.Switch.PortGroup}, {"vmknic for PVRDMA", &q.a.PVRDMA.VMKNic}} {
		if *f.into, err = q.ask(f.question, *f.into); err != nil {
			return err
		}
	}
	return nil
}

func (q *questions) vms(inv *backends.Inventory) error {
	known := map[string]answers.VM{}
	var def []string
	for _, v := range q.a.VMs {
		known[v.Name] = v
		def = append(def, v.Name)
	}
	names, err := q.list("VMs, separated by commas", def, func(name string) bool { return inv.VM(name) != nil })
	if err != nil {
		return err
	}
	q.a.VMs = nil
	for _, name := range names {
		v, ok := known[name]
		if !ok {
			v = answers.DefaultVM(name)
		}
		for {
			ip := ""
			if v.IP.IsValid() {
				ip = v.IP.String()
			}
			line, err := q.ask("RDMA address of "+name, ip)
			if err != nil {
				return err
			}
			if err := v.IP.UnmarshalText([]byte(line)); err == nil {
				break
			}
			fmt.Fprintln(q.out, "want an address with its prefix length, 192.168.50.11/24")
		}
		q.a.VMs = append(q.a.VMs, v)
	}
	return nil
}

func (q *questions) carryOut(ctx context.Context) error {
	f := q.o.Fabric
	inv, err := f.Survey(ctx, q.a)
	if err != nil {
		return err
	}
	found := f.Preflight(ctx, q.a, inv)
	if err := plain.Findings(q.out, found); err != nil {
		return err
	}
	p, err := f.Plan(q.a, inv)
	if err != nil {
		return err
	}
	if n := plain.Count(found)[checks.Fail]; n > 0 {
		return backends.Errorf(backends.KindRefused, "", "mend what is named above and start again", "%d checks failed: nothing was changed", n)
	}
	if err := plain.Plan(q.out, p); err != nil {
		return err
	}
	if q.outcome.Path, err = f.SaveAnswers(q.a); err != nil {
		return err
	}
	q.outcome.Answers = q.a
	if !p.Empty() {
		word, err := q.ask("Carry this out? yes or no", "no")
		if err != nil || strings.ToLower(word) != "yes" {
			fmt.Fprintf(q.out, "nothing was changed; the answers are in %s\n", q.outcome.Path)
			return err
		}
	}
	return q.finish(ctx, f, found, func() (engine.Result, error) {
		return f.Apply(ctx, q.a, p, q.o.Stop, plain.Lines(q.out))
	})
}

func (q *questions) finish(ctx context.Context, f live.Fabric, found []checks.Finding, apply func() (engine.Result, error)) error {
	var measured []perftest.Measurement
	q.outcome.Result, q.outcome.Err = apply()
	if s := q.outcome.Result.Status; q.outcome.Err == nil && (s == engine.StatusDone || s == engine.StatusUnchanged) {
		measured, q.outcome.Err = f.Measure(ctx, q.a, nil)
	}
	rep, err := f.Report(q.a, q.outcome.Result, found, measured)
	if err != nil {
		return err
	}
	q.outcome.Report = rep
	if err := uireport.Terminal(q.out, rep, q.o.Theme); err != nil {
		return err
	}
	fmt.Fprintf(q.out, "again: %s\n", f.ReplayCommand(q.outcome.Path))
	return nil
}
