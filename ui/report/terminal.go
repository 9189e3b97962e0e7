// Package report renders a report for people and machines.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// JSON prints the report as one document.
func JSON(w io.Writer, r *report.Report) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// Terminal prints the report for a person: the verdict first, then what is not well, what was measured and what was
// changed.
func Terminal(w io.Writer, r *report.Report, t theme.Theme) error {
	var b strings.Builder
	verdict, mark := r.Verdict()
	fmt.Fprintf(&b, "%s %s\n", t.Symbol(marks[mark]), t.Title.Render(plain.Clean(verdict)))
	if r.Simulated {
		fmt.Fprintln(&b, t.Warning.Render("SIMULATED: made on the embedded lab; it says nothing of real hardware"))
	}
	fmt.Fprintf(&b, "%s\n", t.Quiet.Render(plain.Clean(heading(r))))

	if len(r.Measurements) > 0 {
		fmt.Fprintf(&b, "\n%s\n", t.Title.Render("Measured"))
		for _, m := range r.Measurements {
			fmt.Fprintf(&b, "  %s %s\n", t.Symbol(marks[verdictStatus(m.Verdict)]), plain.Clean(measurement(m, t)))
			if m.Error != "" {
				fmt.Fprintf(&b, "      %s\n", t.Bad.Render(plain.Clean(m.Error)))
			}
			if m.Hint != "" {
				fmt.Fprintf(&b, "      hint: %s\n", plain.Clean(m.Hint))
			}
		}
	}
	findings(&b, r, t)
	changes(&b, r, t)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", plain.Clean(n))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var marks = map[checks.Status]theme.Mark{checks.Pass: theme.Pass, checks.Warn: theme.Warn, checks.Fail: theme.Fail, checks.Unknown: theme.Unknown}

func verdictStatus(v perftest.Verdict) checks.Status {
	switch v {
	case perftest.VerdictPass, perftest.VerdictNotApplicable:
		return checks.Pass
	case perftest.VerdictWarn:
		return checks.Warn
	case perftest.VerdictFail:
		return checks.Fail
	}
	return checks.Unknown
}

func heading(r *report.Report) string {
	parts := []string{r.Mode, "vCenter " + r.VCenter, r.Made.Format("2006-01-02 15:04:05 -0700"), "rdma-setup " + r.Tool}
	if r.Run != "" {
		parts = append([]string{"run " + r.Run}, parts...)
	}
	return strings.Join(parts, "  ")
}

// measurement is one line: "ib_send_bw   vm-01 -> vm-02   96.1 Gb/s of 98.0 expected  [bar]".
func measurement(m perftest.Measurement, t theme.Theme) string {
	head := fmt.Sprintf("%-12s %s -> %s", m.Test, m.From, m.To)
	switch {
	case m.Verdict == perftest.VerdictNotApplicable:
		return head + "  n/a: both on " + m.FromHost + ", the traffic never meets the fabric"
	case m.AchievedGbps > 0:
		s := fmt.Sprintf("%s  %.1f Gb/s", head, m.AchievedGbps)
		if m.ExpectedGbps > 0 {
			s += fmt.Sprintf(" of %.1f expected", m.ExpectedGbps)
		}
		return s
	case m.AchievedUs > 0:
		s := fmt.Sprintf("%s  %.2f us", head, m.AchievedUs)
		if m.ExpectedUs > 0 {
			s += fmt.Sprintf(", good up to %.0f us", m.ExpectedUs)
		}
		return s
	}
	return head
}

func findings(b *strings.Builder, r *report.Report, t theme.Theme) {
	if len(r.Checks) == 0 {
		return
	}
	n := plain.Count(r.Checks)
	fmt.Fprintf(b, "\n%s  %d passed, %d warnings, %d failed, %d unknown\n", t.Title.Render("Checked"),
		n[checks.Pass], n[checks.Warn], n[checks.Fail], n[checks.Unknown])
	for _, status := range []checks.Status{checks.Fail, checks.Warn} {
		for _, g := range plain.Grouped(r.Checks, status) {
			f := g.Findings[0]
			fmt.Fprintf(b, "  %s %s  %s: %s\n", t.Symbol(marks[status]), f.ID, plain.Clean(g.Targets()), plain.Clean(g.Evidence()))
			fmt.Fprintf(b, "      remedy: %s\n", plain.Clean(f.Remedy))
		}
	}
}

func changes(b *strings.Builder, r *report.Report, t theme.Theme) {
	if len(r.Changes) == 0 {
		return
	}
	n := map[string]int{}
	for _, c := range r.Changes {
		n[c.State]++
	}
	fmt.Fprintf(b, "\n%s  %d done, %d already so, %d failed, %d not tried\n", t.Title.Render("Changed"), n["done"], n["skipped"], n["failed"], n["blocked"]+n["pending"])
	for _, c := range r.Changes {
		if c.State == "failed" {
			fmt.Fprintf(b, "  %s %s: %s\n", t.Symbol(theme.Fail), plain.Clean(c.ID()), plain.Clean(c.Err))
		}
	}
}
