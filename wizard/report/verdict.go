package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// RolledBack is the status of a run that was rolled back after its report was made.
const RolledBack = "rolled back"

// HalfRolledBack is the status of a run whose rollback began after its report was made, and has not finished.
const HalfRolledBack = "rollback not finished"

// undoing reports whether a rollback has begun, so that checks and measurements of the run no longer apply.
func (r *Report) undoing() bool { return r.Status == RolledBack || r.Status == HalfRolledBack }

// Verdict summarizes the state in one sentence, worst news first, with its severity. If a lossless class is configured it also
// says, separately, whether the class and its losslessness were proven.
func (r *Report) Verdict() (string, checks.Status) {
	words, status := r.works()
	words += r.instead()
	if status == checks.Pass && slices.ContainsFunc(r.Measurements, openTogether) {
		words += "; all rails at once measured, not judged"
	}
	class, lossless := perftest.Proofs(r.Measurements)
	if class == nil || lossless == nil || r.undoing() {
		return words, status
	}
	for _, p := range []struct {
		name  string
		proof *perftest.Proof
	}{{"class", class}, {"lossless", lossless}} {
		switch p.proof.Verdict {
		case perftest.VerdictPass:
			words += "; " + p.name + " proven"
		case perftest.VerdictFail:
			words, status = words+"; "+p.proof.Words(p.name), checks.Fail
		default:
			words += map[string]string{"class": "; class configured, not proven", "lossless": "; lossless not proven"}[p.name]
		}
	}
	return words, status
}

// openTogether reports whether a measurement of all rails at once has no verdict because the width of a shared PCIe link is not
// known: that is not a problem, and no change of the fabric affects it.
func openTogether(m perftest.Measurement) bool {
	return m.Load == perftest.LoadRails && m.Verdict == perftest.VerdictUnknown && m.Error == ""
}

// works summarizes the state without the proofs.
func (r *Report) works() (string, checks.Status) {
	failed := 0
	for _, c := range r.Changes {
		if c.State == "failed" {
			failed++
		}
	}
	slow, unmeasured, crossed, doubtful, measured, instead := 0, 0, 0, 0, 0, 0
	for _, m := range r.Measurements {
		between := m.Test == perftest.CrossRail
		switch {
		case openTogether(m):
		case m.Instead != "":
			instead++
		case m.Verdict == perftest.VerdictFail && between:
			crossed++
		case m.OnlyDisproven(): // works; the proofs say what is wrong
			doubtful++
		case m.Verdict == perftest.VerdictFail && m.Figure() == "":
			unmeasured++
		case m.Verdict == perftest.VerdictFail:
			slow++
		case m.Verdict == perftest.VerdictWarn || m.Verdict == perftest.VerdictUnknown:
			doubtful++
		case m.Verdict == perftest.VerdictPass && !between:
			measured++
		}
	}
	count := map[checks.Status]int{}
	first := catalogue.FirstBroken(r.Checks)
	for i, f := range r.Checks {
		if f.Status == checks.Fail && (first == nil || first.Status != checks.Fail) {
			first = &r.Checks[i] // an unknown row
		}
		count[f.Status]++
	}
	switch {
	case r.Status == RolledBack:
		return "The run was rolled back; the results below no longer apply", checks.Warn
	case r.Status == HalfRolledBack:
		return "The rollback of the run did not finish: run rdma-setup rollback again; the results below no longer apply", checks.Fail
	case r.Status == "interrupted":
		return "The run was interrupted: resume it", checks.Warn
	case failed > 0:
		return fmt.Sprintf("%s failed. Fix the cause, then run rdma-setup resume", plural(failed, "change")), checks.Fail
	case r.Status == "partial" || r.Status == "failed":
		return "The run did not finish. Fix the cause, then run rdma-setup resume", checks.Fail
	case slow+unmeasured > 0:
		return "RDMA does not work as it should: " + shortfall(slow, unmeasured, len(perftest.SameRail(r.Measurements))), checks.Fail
	case crossed > 0:
		return fmt.Sprintf("Rails are not connected as they should be: %s failed", plural(crossed, "cross_rail test")), checks.Fail
	case count[checks.Fail] > 0:
		return fmt.Sprintf("First broken link: %s on %s: %s", first.ID, first.Target.Name, first.Evidence), checks.Fail
	case doubtful > 0:
		return fmt.Sprintf("RDMA works, with warnings for %s", plural(doubtful, "measurement")), checks.Warn
	case measured > 0:
		return fmt.Sprintf("RDMA works: %s at expected line rate", plural(measured, "measurement")), checks.Pass
	case instead > 0:
		return "PVRDMA works, but no pair uses RDMA", checks.Pass
	case count[checks.Warn] > 0:
		return fmt.Sprintf("Nothing broken, %s; not measured", plural(count[checks.Warn], "warning")), checks.Warn
	case len(r.Checks) > 0:
		return "Nothing broken; not measured", checks.Pass
	}
	return "Nothing was checked or measured", checks.Unknown
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
func shortfall(slow, unmeasured, all int) string {
	of := " of " + plural(all, "measurement")
	switch {
	case unmeasured == 0:
		return fmt.Sprintf("%d%s below what the hardware can do", slow, of)
	case slow == 0:
		return fmt.Sprintf("%d%s without a result", unmeasured, of)
	}
	return fmt.Sprintf("%d%s below what the hardware can do, %d without a result", slow, of, unmeasured)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
