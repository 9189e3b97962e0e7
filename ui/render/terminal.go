// Package render formats reports for terminals, browsers and machines.
package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render/page"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// JSON prints the report as one document; lists are never null.
func JSON(w io.Writer, r *report.Report) error {
	copied := *r
	copied.Changes = append([]report.Outcome{}, r.Changes...)
	copied.Checks = append([]checks.Finding{}, r.Checks...)
	copied.Measurements = append([]perftest.Measurement{}, r.Measurements...)
	for i := range copied.Measurements {
		copied.Measurements[i].Rows = append([]perftest.Row{}, copied.Measurements[i].Rows...)
	}
	return plain.WriteJSON(w, copied)
}

// columns is the width of the terminal report: the minimum of all terminals.
const columns = 78

// tableFrom is the smallest width of a screen, in columns, for a table of the pairs.
const tableFrom = 110

// Terminal prints the report for terminals, 78 columns wide: the verdict first, then what was left behind and why, the
// measurements, problems and changes.
func Terminal(w io.Writer, r *report.Report, t theme.Theme) error { return Screen(w, r, t, columns) }

// Screen prints the report of Terminal for a screen of the given width; a wide screen gets a table with a row for each pair.
func Screen(w io.Writer, r *report.Report, t theme.Theme, width int) error {
	if width < tableFrom {
		width = columns
	}
	p := &printer{t: t, columns: width}
	v := report.Decide(r)
	mark := v.Mark()
	colour := map[checks.Status]lipgloss.Style{checks.Pass: t.Good.Bold(t.Colour), checks.Fail: t.Bad}
	style, known := colour[mark]
	if !known {
		style = t.Warning.Bold(t.Colour)
	}
	v, laid, r := backends.Shown(v), page.Of(r), backends.Shown(r)
	p.line("%s %s", t.Symbol(theme.MarkOf(mark)), style.Render(v.Summary))
	if r.Simulated {
		p.line("%s", t.Warning.Render("SIMULATED: created on the embedded lab; it says nothing about real hardware"))
	}
	for _, what := range r.Insecure {
		p.line("%s", t.Bad.Render("INSECURE: "+what))
	}
	p.left(laid)
	p.causes(laid)
	p.heading(r, v)
	if len(r.Checks) > 0 {
		p.chain(laid.Chain)
	}
	p.measurements(r.Measurements)
	p.shapes(laid.Tests)
	p.loaded(r.Measurements)
	if len(laid.NCCL) > 0 {
		p.title("For NCCL", "in the environment of jobs on these guests")
	}
	for _, v := range laid.NCCL {
		p.line("      %s", v)
	}
	for _, w := range laid.NCCLWhy {
		p.line("    %s", w)
	}
	p.findings(r)
	p.changes(r.Changes, laid.ChangeTally)
	if len(r.Notes) > 0 {
		p.line("")
	}
	for _, n := range r.Notes {
		p.line("note: %s", n)
	}
	_, err := io.WriteString(w, theme.Fold(p.b.String(), width))
	return err
}

type printer struct {
	t    theme.Theme
	b    strings.Builder
	wide int // of the names of tests

	columns int // of the screen
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

func (p *printer) title(what, rest string) {
	p.line("\n%s  %s", p.t.Title.Render(what), rest)
}

func (p *printer) heading(r *report.Report, v report.Verdict) {
	row := func(label, value string) {
		p.line("%s%s", p.t.Quiet.Render(fmt.Sprintf("%-9s", label)), value)
	}
	row("verdict", v.Line())
	if r.Run != "" {
		row("run", r.Run+", "+r.Mode+", "+r.Status)
	} else {
		row("mode", r.Mode)
	}
	row("vCenter", r.VCenter)
	row("made", r.Made.Format("2006-01-02 15:04:05 -0700")+", rdma-setup "+r.Tool)
}

func (p *printer) findings(r *report.Report) {
	if len(r.Checks) == 0 {
		return
	}
	p.title("Checked", plain.Tally(r.Checks))
	all, folded := plain.Unexplained(r.Checks, r.Causes())
	for _, status := range []checks.Status{checks.Fail, checks.Warn, checks.Unknown} {
		for _, g := range plain.Grouped(all, status) {
			g.Findings = slices.DeleteFunc(g.Findings, func(f checks.Finding) bool { return f.Quiet }) // only in the JSON
			if len(g.Findings) == 0 {
				continue
			}
			f := g.Findings[0]
			p.line("  %s %s  %s", p.t.Symbol(theme.MarkOf(status)), f.ID, g.Targets())
			for _, e := range g.Evidence() {
				p.line("      %s", e)
			}
			if f.Remedy != "" && status != checks.Unknown {
				p.line("      remedy: %s", f.Remedy)
			}
		}
	}
	for _, g := range plain.Unverified(all) {
		p.line("  %s %s  %s: %s", p.t.Symbol(theme.Waiting), g.Findings[0].ID, g.Targets(), strings.Join(g.Evidence(), "; "))
	}
	if folded > 0 {
		p.line("  %s %s", p.t.Symbol(theme.Waiting), plain.Folded(folded))
	}
}

// changes counts the changes that were made, and lists those that were not, with the reasons.
func (p *printer) changes(all []report.Outcome, tally string) {
	if len(all) == 0 {
		return
	}
	var blocked plain.Gathered[backends.Ref, report.Outcome]
	for _, c := range all {
		if engine.NodeState(c.State).Word() == engine.NodeBlocked.Word() {
			blocked.Add(c.Target, c)
		}
	}
	p.title("Changed", tally)
	for _, c := range all {
		if c.State == "failed" {
			p.line("  %s %s", p.t.Symbol(theme.Fail), c.Target.Name+": "+plan.Title(c.Change))
			p.line("      %s", p.t.Bad.Render(strings.TrimPrefix(c.Err, c.Target.Name+": ")))
		}
	}
	if order := blocked.Keys; len(order) > 0 {
		p.line("  %s %s  %s", p.t.Symbol(theme.Waiting), engine.NodeBlocked.Word(), plain.Targets(order))
	}
}

// label formats the first column of the lines at the top.
func (p *printer) label(i int, what string) string {
	if i > 0 {
		what = ""
	}
	return p.t.Title.Render(fmt.Sprintf("%-13s", what))
}

func (p *printer) left(laid *page.Page) {
	for i, l := range laid.LeftBehind {
		p.line("%s%s", p.label(i, "Left behind"), l)
	}
	if laid.Continue != "" {
		p.line("%s%s", p.label(0, "Continue"), laid.Continue)
	}
}

// causes prints failures with their errors and remedies before their consequences.
func (p *printer) causes(laid *page.Page) {
	for _, c := range laid.Causes {
		p.line("%s%s", p.label(0, "Cause"), p.t.Bad.Render(c.What))
		p.line("%s%s", p.label(1, ""), c.Err)
		if c.Remedy != "" {
			p.line("%sremedy: %s", p.label(1, ""), c.Remedy)
		}
		if c.Follow != "" {
			p.line("%s%s", p.label(1, ""), p.t.Quiet.Render(c.Follow))
		}
	}
	if n := laid.MoreCauses; n > 0 {
		p.line("%sand %d more, below", p.label(1, ""), n)
	}
}
