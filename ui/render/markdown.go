package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render/page"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// keepMatrix is the largest number of nodes for which the map of all pairs is printed as a table of figures.
const keepMatrix = 16

// Markdown prints the report for a ticket or a wiki: the same page as HTML, with GitHub's tables.
func Markdown(w io.Writer, r *report.Report) error {
	p := page.Of(r)
	m := &marked{}
	m.line("# %s", md(p.Title))
	m.line("\n**%s %s**", symbol(p.Status), md(p.Verdict))
	if p.Simulated {
		m.line("\n> **SIMULATED**: created on the embedded lab; it says nothing about real hardware")
	}
	for _, what := range p.Insecure {
		m.line("\n> **INSECURE**: %s", md(what))
	}
	m.causes(p)
	m.line("")
	for _, f := range p.Facts {
		m.line("- %s: %s", md(f.Label), md(f.Text))
	}
	m.chain(p.Chain)
	m.measured(p)
	if len(p.NCCL) > 0 {
		m.line("\n## For NCCL\n\nIn the environment of jobs on these guests:\n")
	}
	for _, v := range p.NCCL {
		m.line("- %s", md(v))
	}
	for i, w := range p.NCCLWhy {
		if i == 0 {
			m.line("")
		}
		m.line("%s", md(w))
	}
	m.checked(p)
	m.changed(p)
	if len(p.Environment) > 0 {
		m.line("\n## Environment")
	}
	for _, t := range p.Environment {
		m.table(t)
	}
	if len(p.Method) > 0 {
		m.line("\n## How it was measured\n")
	}
	for _, f := range p.Method {
		m.line("- %s: %s", md(f.Label), md(f.Text))
	}
	if len(p.Notes) > 0 {
		m.line("\n## Notes\n")
	}
	for _, n := range p.Notes {
		m.line("- %s", md(n))
	}
	_, err := io.WriteString(w, m.b.String())
	return err
}

// A marked writer collects lines of Markdown.
type marked struct{ b strings.Builder }

func (m *marked) line(format string, args ...any) { fmt.Fprintf(&m.b, format+"\n", args...) }

func (m *marked) row(cells ...string) {
	m.line("| %s |", strings.Join(plain.Mapped(cells, md), " | "))
}

// head prints the header of a table, after a blank line.
func (m *marked) head(cells ...string) {
	m.line("")
	m.row(cells...)
	m.line("|%s", strings.Repeat("---|", len(cells)))
}

func (m *marked) table(t page.Table) {
	m.line("\n### %s", md(t.Caption))
	m.head(t.Head...)
	for _, r := range t.Rows {
		m.row(r...)
	}
}

func (m *marked) chain(links []page.Link) {
	if len(links) == 0 {
		return
	}
	m.line("\n## The chain")
	m.head("link", "status", "checks", "first problem", "remedy")
	for _, l := range links {
		m.row(l.Name, symbol(l.Status)+" "+plain.LinkWord(l.Status), l.Tally, l.First, l.Remedy)
	}
	for _, l := range links {
		if l.Broken {
			m.line("\nBegin with the link %s.", l.Name)
		}
	}
}

func (m *marked) measured(p *page.Page) {
	if len(p.Tests) == 0 {
		return
	}
	m.line("\n## Measured\n\n%s", md(p.PairTally))
	for _, t := range p.Tests {
		m.line("\n### %s", md(t.Name))
		m.pairs(t)
		if t.Map != nil {
			m.heat(t.Map)
		}
		if len(t.Sizes.Rows) > 0 {
			m.table(t.Sizes)
		}
	}
	for _, t := range p.Load {
		m.table(t)
	}
}

func (m *marked) pairs(t page.Test) {
	head := []string{"pair", "hosts", "achieved", "expected", "verdict", "remarks"}
	if t.Latency {
		head = []string{"pair", "hosts", "typical", "99 % us", "99.9 % us", "good", "verdict", "remarks"}
	}
	if t.Curved {
		head = slices.Insert(head, 3, "curve")
	}
	if t.Classed {
		head = slices.Insert(head, len(head)-2, "class", "lost packets")
	}
	m.head(head...)
	for _, x := range t.Pairs {
		cells := []string{x.From + " -> " + x.To, x.Hosts, x.Result}
		if t.Curved {
			cells = append(cells, x.Shape.Line(theme.Theme{}))
		}
		if t.Latency {
			cells = append(cells, x.P99, x.P999)
		}
		cells = append(cells, x.Expected)
		if t.Classed {
			cells = append(cells, x.Class, x.Lost)
		}
		m.row(append(cells, symbol(x.Status)+" "+x.Word, strings.Join(x.Remarks, "; "))...)
	}
	if t.More > 0 {
		m.line("\n%d more pairs are not listed: these are the worst.", t.More)
	}
}

func (m *marked) heat(h *page.Map) {
	if len(h.Nodes) <= keepMatrix {
		m.line("\n%s, %s: from the machine of the row to that of the column", md(h.Title), h.Unit)
		head := []string{""}
		for _, n := range h.Nodes {
			head = append(head, n.Name)
		}
		m.head(head...)
		for i, n := range h.Nodes {
			cells := []string{n.Name}
			for j := range h.Nodes {
				cells = append(cells, h.Figure(i, j))
			}
			m.row(cells...)
		}
	}
	for i, s := range h.Suspects {
		if i == 0 {
			m.line("\nCheck these first; nearly all of their pairs are outliers:\n")
		}
		m.line("- %s", md(s))
	}
	if len(h.Outliers) > 0 {
		m.line("\nOutliers, furthest first:")
		m.head("pair", "hosts", "figure", "why")
	}
	for _, o := range h.Outliers {
		m.row(o.Pair, o.Hosts, o.Figure, o.Why)
	}
	if h.MoreOut > 0 {
		m.line("\n%d more outliers are not listed.", h.MoreOut)
	}
}

func (m *marked) checked(p *page.Page) {
	if p.CheckTally == "" {
		return
	}
	m.line("\n## Checked\n\n%s", md(p.CheckTally))
	if len(p.Amiss) > 0 {
		m.head("status", "check", "link", "where", "what was seen", "what to do")
	}
	for _, g := range p.Amiss {
		m.row(symbol(g.Status)+" "+word(g.Status), g.ID, g.Link, g.Targets, strings.Join(g.Evidence, "; "), g.Remedy)
	}
	for _, s := range []struct {
		title  string
		groups []page.Group
	}{{"Consequences of the causes above", p.Folded}, {"What passed", p.Passed}, {"Not evaluated", p.Waiting}} {
		if len(s.groups) == 0 {
			continue
		}
		m.line("\n### %s", s.title)
		m.head("check", "link", "where", "what was seen")
		for _, g := range s.groups {
			m.row(g.ID, g.Link, g.Targets, strings.Join(g.Evidence, "; "))
		}
	}
}

func (m *marked) changed(p *page.Page) {
	if len(p.Changes) == 0 {
		return
	}
	m.line("\n## Changed\n\n%s", md(p.ChangeTally))
	for _, c := range p.Changes {
		m.line("\n### %s", md(c.Heading))
		m.head("change", "who", "before", "after", "outcome", "remarks")
		for _, r := range c.Rows {
			var remarks []string
			if r.Err != "" {
				remarks = append(remarks, r.Err)
			}
			if r.Found != "" {
				remarks = append(remarks, "read back: "+r.Found)
			}
			m.row(r.What, r.Who, r.Before, r.After, symbol(r.Status)+" "+r.Outcome, strings.Join(remarks, "; "))
		}
	}
}

// causes prints what was left behind and failures before their consequences.
func (m *marked) causes(p *page.Page) {
	if len(p.LeftBehind)+len(p.Causes) > 0 {
		m.line("")
	}
	for _, l := range p.LeftBehind {
		m.line("- **Left behind**: %s", md(l))
	}
	if p.Continue != "" {
		m.line("- **Continue**: %s", md(p.Continue))
	}
	for _, c := range p.Causes {
		m.line("- **Cause**: %s: %s", md(c.What), md(c.Err))
		if c.Remedy != "" {
			m.line("  - remedy: %s", md(c.Remedy))
		}
		if c.Follow != "" {
			m.line("  - %s", md(c.Follow))
		}
	}
	if p.MoreCauses > 0 {
		m.line("- and %d more, below", p.MoreCauses)
	}
}

var mdEscape = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "&", "&amp;", "`", "'", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`,
	"~", `\~`, "#", `\#`)

// md escapes text for Markdown, including cells of a table.
func md(s string) string { return mdEscape.Replace(s) }
