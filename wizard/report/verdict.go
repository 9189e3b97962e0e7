package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// A Command is what a report is the result of. It decides the exit code of a verdict.
type Command string

// The commands with a verdict; Apply is also resume and the wizard.
const (
	Apply Command = "apply"
	Bench Command = "bench"
	Check Command = "check"
)

// A Name is the verdict in one word.
type Name string

// The verdicts.
const (
	Works         Name = "works"               // what was read passed, and what was measured is as expected
	SetUp         Name = "set_up"              // what was read passed; not measured here
	WithWarnings  Name = "works_with_warnings" // warnings, or checks that could not be evaluated beside measurements as expected
	NotSetUp      Name = "not_set_up"          // nothing that RDMA needs is configured
	Broken        Name = "broken"              // a check failed, or a measurement is below the expectation
	NotMeasured   Name = "not_measured"        // a measurement, or with none a check, should have a result and has none
	PartlyApplied Name = "partly_applied"      // some targets failed
	NotApplied    Name = "not_applied"         // refused, or nothing was achieved
	Unknown       Name = "unknown"             // nothing could be evaluated
)

// exits are the exit codes of the verdicts.
var exits = map[Name]map[Command]int{
	Works:         {Apply: 0, Bench: 0, Check: 0},
	SetUp:         {Apply: 0, Bench: 0, Check: 0},
	WithWarnings:  {Apply: 0, Bench: 0, Check: 1},
	NotSetUp:      {Apply: 3, Bench: 3, Check: 1},
	Broken:        {Apply: 1, Bench: 1, Check: 2},
	NotMeasured:   {Apply: 1, Bench: 1, Check: 1},
	PartlyApplied: {Apply: 5, Bench: 5, Check: 2},
	NotApplied:    {Apply: 3, Bench: 3, Check: 2},
	Unknown:       {Apply: 4, Bench: 4, Check: 3},
}

// A Verdict is what a report means: headline, chain and exit code. Every format is a view of it.
type Verdict struct {
	Name    Name
	Summary string // the headline: one sentence, worst news first
	Cause   string // the first cause of a problem: what, where, and what was seen; "" if there is no problem
	Chain   []checks.Link
	Exit    int
}

// Mark returns the severity of the verdict as that of a check.
func (v Verdict) Mark() checks.Status {
	switch v.Name {
	case Works, SetUp:
		return checks.Pass
	case WithWarnings, NotSetUp, NotMeasured:
		return checks.Warn
	case Unknown:
		return checks.Unknown
	}
	return checks.Fail
}

// Line returns the verdict and its exit code: "works, exit code 0".
func (v Verdict) Line() string { return fmt.Sprintf("%s, exit code %d", v.Name, v.Exit) }

// Word returns the status of monitoring plug-ins: ok, warning, critical or unknown.
func (v Verdict) Word() string {
	return [...]string{"ok", "warning", "critical", "unknown"}[exits[v.Name][Check]]
}

// RolledBack is the status of a run that was rolled back after its report was made.
const RolledBack = "rolled back"

// HalfRolledBack is the status of a run whose rollback began after its report was made, and has not finished.
const HalfRolledBack = "rollback not finished"

// undoing reports whether a rollback has begun, so that checks and measurements of the run no longer apply.
func (r *Report) undoing() bool { return r.Status == RolledBack || r.Status == HalfRolledBack }

// Decide returns the verdict. If a lossless class is configured, the headline also says, separately, whether the class and its
// losslessness were proven.
func Decide(r *Report) Verdict {
	d := decision{r: r, n: countOf(r)}
	v := Verdict{Chain: r.chain()}
	v.Name, v.Summary = d.ended()
	if v.Name == "" {
		v.Name, v.Summary = d.works()
		v.Summary += r.instead()
	}
	if v.Name == Works && slices.ContainsFunc(r.Measurements, openTogether) {
		v.Summary += "; all rails at once measured, not judged"
	}
	if !r.undoing() && v.Name != NotSetUp {
		v.prove(r.Measurements)
	}
	v.Cause, v.Exit = d.cause(v.Name), exits[v.Name][r.command()]
	switch {
	case r.Status == "interrupted":
		v.Exit = 130
	case r.Status == "failed":
		v.Exit = 1
	}
	// The error that ended a run or kept it from starting has its own code; that of a check is always 3, except if it was stopped.
	if r.ErrExit == 130 || r.ErrExit > 0 && r.command() != Check && (v.Exit <= 1 || len(r.Changes) == 0) {
		v.Exit = r.ErrExit
	}
	return v
}

func (r *Report) command() Command {
	return cmp.Or(r.Command, map[bool]Command{true: Apply, false: Check}[r.Run != ""])
}

// chain returns the chain of the checks; the link between guests is that of the measurements if no check is about it.
func (r *Report) chain() []checks.Link {
	out := catalogue.Chain(r.Checks, r.NotApplicable...)
	pair := &out[len(out)-1]
	if slices.ContainsFunc(r.Checks, func(f checks.Finding) bool { return catalogue.LinkOf(f.ID) == pair.Name }) {
		return out
	}
	for _, m := range r.Measurements {
		s := checks.StatusOf(m.Verdict)
		if s == "" {
			continue
		}
		if pair.Count[s]++; pair.Worst.Weight() == 0 && (s == checks.Pass || s.Weight() > 0) || s.Weight() > pair.Worst.Weight() {
			pair.Worst = s
			if s != checks.Pass {
				pair.First = found(m, s)
			}
		}
	}
	return out
}

// found returns a measurement as a finding about its pair.
func found(m perftest.Measurement, s checks.Status) *checks.Finding {
	evidence := cmp.Or(m.Error, m.Figure(), "not measured")
	if m.Error == "" && m.AchievedGbps > 0 && m.ExpectedGbps > 0 {
		evidence = fmt.Sprintf("%s of %.1f expected", m.Figure(), m.ExpectedGbps)
	}
	return &checks.Finding{ID: m.Test, Target: backends.Ref{Type: backends.TypePair, Name: m.Pair()}, Status: s, Evidence: evidence,
		Remedy: m.Hint}
}

// prove adds to the headline what the measurements say about the class and its losslessness.
func (v *Verdict) prove(all []perftest.Measurement) {
	class, lossless := perftest.Proofs(all)
	if class == nil || lossless == nil {
		return
	}
	for _, p := range []struct {
		name  string
		proof *perftest.Proof
	}{{"class", class}, {"lossless", lossless}} {
		switch p.proof.Verdict {
		case perftest.VerdictPass:
			v.Summary += "; " + p.name + " proven"
		case perftest.VerdictFail:
			v.Summary += "; " + p.proof.Words(p.name)
		default:
			v.Summary += map[string]string{"class": "; class configured, not proven", "lossless": "; lossless not proven"}[p.name]
		}
	}
}

// openTogether reports whether a measurement of all rails at once has no verdict because the width of a shared PCIe link is not
// known: that is not a problem, and no change of the fabric affects it.
func openTogether(m perftest.Measurement) bool {
	return m.Load == perftest.LoadRails && m.Verdict == perftest.VerdictUnknown && m.Error == ""
}

// tally counts what decides.
type tally struct {
	failedChanges                                         int
	slow, without, crossed, doubtful, rate, time, instead int // measurements
	rows                                                  map[checks.Status]int
	worst                                                 *checks.Finding // the first of the worst measurements
}

func countOf(r *Report) tally {
	n := tally{rows: map[checks.Status]int{}}
	for _, c := range r.Changes {
		if c.State == "failed" {
			n.failedChanges++
		}
	}
	for _, m := range r.Measurements {
		if s := checks.StatusOf(m.Verdict); s.Weight() > 0 && !openTogether(m) && (n.worst == nil || s.Weight() > n.worst.Status.Weight()) {
			n.worst = found(m, s)
		}
		between := m.Test == perftest.CrossRail
		switch {
		case openTogether(m):
		case m.Instead != "":
			n.instead++
		case m.Verdict == perftest.VerdictFail && between:
			n.crossed++
		case m.OnlyDisproven(): // works; the proofs say what is wrong
			n.doubtful++
		case m.Figure() == "" && (m.Verdict == perftest.VerdictFail || m.Verdict == perftest.VerdictUnknown && m.Error != "" && r.wanted(m)),
			m.Verdict == perftest.VerdictUnknown && m.Beside() != "":
			n.without++
		case m.Verdict == perftest.VerdictFail:
			n.slow++
		case m.Verdict == perftest.VerdictWarn || m.Verdict == perftest.VerdictUnknown:
			n.doubtful++
		case m.Verdict == perftest.VerdictPass && !between && m.AchievedGbps == 0 && m.AchievedUs > 0:
			n.time++
		case m.Verdict == perftest.VerdictPass && !between:
			n.rate++
		}
	}
	for _, f := range r.Checks {
		n.rows[f.State()]++
	}
	return n
}

// wanted reports whether a test that could not run leaves its pair without a result: bench was asked for exactly these tests, other
// commands only want the pair to be measured, and perftest of the distribution does not support GPUs.
func (r *Report) wanted(m perftest.Measurement) bool {
	return r.command() == Bench || m.Refused || !slices.ContainsFunc(r.Measurements, func(o perftest.Measurement) bool {
		return o.Pair() == m.Pair() && o.Figure() != ""
	})
}

type decision struct {
	r *Report
	n tally
}

// ended is the verdict on a run that did not reach its end, or never began; "" for all others.
func (d decision) ended() (Name, string) {
	r := d.r
	switch {
	case r.Status == RolledBack:
		return NotApplied, "The run was rolled back; the results below no longer apply"
	case r.Status == HalfRolledBack:
		return PartlyApplied, "The rollback of the run did not finish: run rdma-setup rollback again; the results below no longer apply"
	case r.Status == "interrupted":
		return PartlyApplied, "The run was interrupted. Run rdma-setup resume"
	case r.Status == "failed":
		return NotApplied, d.unfinished()
	case d.n.failedChanges > 0 || r.Status == "partial":
		return PartlyApplied, d.unfinished()
	case r.Err != "" && r.Status != "" && r.Status != "refused":
		return NotMeasured, "The changes are made, but not measured: " + r.Err
	case r.Err != "" && len(r.Checks)+len(r.Measurements) == 0:
		switch {
		case r.Unconfigured:
			return NotSetUp, r.Err
		case r.command() == Apply && r.ErrExit != exits[Unknown][Apply]:
			return NotApplied, "Nothing was changed: " + r.Err
		}
		return Unknown, "Nothing could be evaluated: " + r.Err
	}
	return "", ""
}

func (d decision) unfinished() string {
	if n := d.n.failedChanges; n > 0 {
		return fmt.Sprintf("%s failed. Fix the cause, then run rdma-setup resume", plural(n, "change"))
	}
	return "The run did not finish. Fix the cause, then run rdma-setup resume"
}

func (d decision) works() (Name, string) {
	r, n := d.r, d.n
	first := d.first()
	met := d.met()
	switch {
	case r.Unconfigured && r.command() != Apply:
		return NotSetUp, "RDMA is not set up: no VM has an RDMA adapter, and no host or switch is prepared for it. To set it up, run " +
			"rdma-setup apply"
	case n.slow > 0:
		return Broken, "RDMA does not work as it should: " + shortfall(n.slow, n.without, len(perftest.SameRail(r.Measurements)))
	case n.crossed > 0:
		return Broken, fmt.Sprintf("Rails are not connected as they should be: %s failed", plural(n.crossed, "cross_rail test"))
	case n.rows[checks.Fail] > 0:
		return Broken, fmt.Sprintf("First broken link: %s on %s: %s", first.ID, first.Target.Name, first.Evidence)
	case n.without > 0:
		said := "Not measured: "
		if met != nothingBroken {
			said = met + "; not measured: "
		}
		return NotMeasured, said + shortfall(0, n.without, len(perftest.SameRail(r.Measurements)))
	case r.Err != "" && r.command() == Bench:
		return NotMeasured, "Not everything was measured: " + r.Err
	case perftest.Disproven(r.Measurements):
		return Broken, "RDMA works, with warnings for " + plural(max(n.doubtful, 1), "measurement")
	case n.doubtful > 0:
		return WithWarnings, "RDMA works, with warnings for " + plural(n.doubtful, "measurement") + d.alsoWarned()
	case d.unread():
		return NotMeasured, met + d.alsoWarned() + r.lastMeasured(met)
	case n.rows[checks.Warn]+n.rows[checks.Unknown] > 0:
		return WithWarnings, met + d.alsoWarned() + r.lastMeasured(met)
	case n.rate+n.time > 0:
		return Works, met
	case n.instead > 0:
		return Works, "PVRDMA works, but no pair uses RDMA"
	case len(r.Checks)+len(r.NotApplicable) > 0:
		return SetUp, met + r.lastMeasured(met)
	}
	return Unknown, "Nothing was checked or measured"
}

// unread reports whether rows were not read and nothing was measured that says that it works.
func (d decision) unread() bool {
	return d.n.rows[checks.Unknown] > 0 && d.n.rate+d.n.time+d.n.instead == 0
}

// nothingBroken is the headline of checks without a failure and without a measurement.
const nothingBroken = "Nothing broken"

// met says what was measured and is as expected: bandwidth and latency apart.
func (d decision) met() string {
	var said []string
	if n := d.n.rate; n > 0 {
		said = append(said, plural(n, "bandwidth measurement")+" at expected line rate")
	}
	if n := d.n.time; n > 0 {
		said = append(said, plural(n, "latency measurement")+" as expected")
	}
	if said == nil {
		return nothingBroken
	}
	return "RDMA works: " + strings.Join(said, ", ")
}

// lastMeasured says that this command measured nothing, and when the last one did.
func (r *Report) lastMeasured(met string) string {
	switch {
	case met != nothingBroken:
		return ""
	case r.LastMeasured.IsZero():
		return "; not measured"
	}
	return "; not measured, last measured " + r.LastMeasured.Format("2006-01-02 15:04 MST")
}

func (d decision) alsoWarned() string {
	said := ""
	if n := d.n.rows[checks.Warn]; n > 0 {
		said += ", " + plural(n, "warning")
	}
	if n := d.n.rows[checks.Unknown]; n > 0 {
		said += ", " + plural(n, "check") + " could not be evaluated"
	}
	return said
}

// first returns the finding to look at first; nil if there is no problem. It also knows rows that are not in the catalogue.
func (d decision) first() *checks.Finding {
	first := catalogue.FirstBroken(d.r.Checks)
	if first != nil && first.Status == checks.Warn && d.unread() { // the cause of what was not read comes before any other warning
		for _, r := range catalogue.Roots(d.r.Checks) {
			if slices.ContainsFunc(append(r.Follows, r.Finding), func(f *checks.Finding) bool { return f.State() == checks.Unknown }) {
				return r.Finding
			}
		}
	}
	for i, f := range d.r.Checks {
		if w := f.State().Weight(); w > 0 && (first == nil || w > first.Status.Weight() && w == checks.Fail.Weight()) {
			first = &d.r.Checks[i]
		}
	}
	return first
}

// cause returns the first cause of a verdict that is not good, with the number of the other findings that are as bad.
func (d decision) cause(name Name) string {
	var f *checks.Finding
	if name == NotMeasured && d.r.Err != "" && d.r.command() == Bench {
		return d.r.Err
	}
	switch name {
	case Works, SetUp, NotSetUp:
		return ""
	case PartlyApplied, NotApplied, Unknown:
		causes := d.r.Causes()
		if len(causes) == 0 {
			return ""
		}
		c, what := causes[0], ""
		if len(c.Targets) > 0 {
			what = c.Targets[0].Name + " "
		}
		if what = strings.TrimSpace(what + cmp.Or(c.Step, c.Check)); what != "" {
			what += ": "
		}
		return what + c.Err
	default:
		if f = d.first(); f == nil || d.n.worst != nil && d.n.worst.Status.Weight() > f.Status.Weight() {
			f = d.n.worst
		}
	}
	if f == nil {
		return d.r.Err
	}
	said := fmt.Sprintf("%s %s: %s", f.ID, f.Target.Name, f.Evidence)
	if n := d.n.rows[f.Status]; n > 1 && f != d.n.worst {
		said += fmt.Sprintf(" (and %d more %s)", n-1,
			map[checks.Status]string{checks.Fail: "failed", checks.Warn: "warned", checks.Unknown: "unknown"}[f.Status])
	}
	return said
}

// instead counts measurements on hosts without an RDMA card: they are not RDMA over the fabric, and are not judged.
func (r *Report) instead() string {
	count := map[string]int{}
	for _, m := range r.Measurements {
		count[m.Instead]++
	}
	var parts []string
	if n := count[perftest.InsteadTCP]; n > 0 {
		parts = append(parts, fmt.Sprintf("%s by TCP between hosts", plural(n, "measurement")))
	}
	if n := count[perftest.InsteadMemory]; n > 0 {
		parts = append(parts, fmt.Sprintf("%s of memory on one host", plural(n, "measurement")))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; where a host has no RDMA card, not judged: " + strings.Join(parts, ", ")
}

// shortfall says how many of all measurements were too slow, and how many had no result.
func shortfall(slow, without, all int) string {
	of := " of " + plural(all, "measurement")
	switch {
	case without == 0:
		return fmt.Sprintf("%d%s below what the hardware can do", slow, of)
	case slow == 0:
		return fmt.Sprintf("%d%s without a result", without, of)
	}
	return fmt.Sprintf("%d%s below what the hardware can do, %d without a result", slow, of, without)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
