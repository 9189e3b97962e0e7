package render

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/render/page"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// The map of all pairs is drawn if it shows more than the list of pairs, and fits.
const (
	mapLeast = 5
	mapMost  = 56
	mapWide  = 28 // up to this number of nodes there is space between the cells
)

// chain prints the chain in one line: start at the first cross.
func (p *printer) chain(links []page.Link) {
	var said []string
	for _, l := range links {
		name, mark := l.Name, theme.MarkOf(l.Status)
		switch l.Status {
		case checks.NotRead:
			mark = theme.Waiting
		case checks.PartlyRead:
			name, mark = name+" (partly read)", theme.Waiting
		}
		said = append(said, p.t.Symbol(mark)+" "+name)
	}
	p.line("%s%s", p.t.Quiet.Render(fmt.Sprintf("%-9s", "chain")), strings.Join(said, "  "))
	for _, l := range links {
		if !l.Broken {
			continue
		}
		first := theme.Fold(strings.Repeat(" ", 9)+l.Name+": "+l.First, p.columns)
		p.line("%s%s", p.t.Quiet.Render("start at "), first[9:])
		if l.Remedy != "" {
			p.line("%-9sremedy: %s", "", l.Remedy)
		}
	}
}

// shapes draws bandwidth and latency over message sizes, and the map of all pairs.
func (p *printer) shapes(tests []page.Test) {
	for _, t := range tests {
		if curve := t.Shape.Line(p.t); curve != "" && len(t.Pairs) > 1 {
			p.line("  %-*s %s  median, up to %s", p.wide, t.Name, curve, t.Shape.Highest)
		}
	}
	for _, t := range tests {
		if m := t.Map; m != nil && len(m.Nodes) >= mapLeast {
			p.heat(m)
		}
	}
}

// signs are the characters for a map's cells, and their styles.
func (p *printer) sign(class string) (string, lipgloss.Style) {
	i := slices.Index([]string{"h0", "h1", "h2", "h3", "h4", "h5", "same"}, class)
	if i < 0 {
		return "?", p.t.Warning
	}
	styles := [...]lipgloss.Style{p.t.Quiet, p.t.Good, p.t.Good, p.t.Warning, p.t.Warning, p.t.Bad, p.t.Quiet}
	return ".:+xX#o"[i : i+1], styles[i]
}

func (p *printer) heat(m *page.Map) {
	p.line("\n  %s, from the row to the column", m.Title)
	if len(m.Nodes) > mapMost {
		p.line("      %d machines are more than a terminal shows: rdma-setup report -o html", len(m.Nodes))
	} else {
		p.cells(m)
	}
	for _, s := range m.Suspects {
		p.line("    %s check first: %s", p.t.Symbol(theme.Warn), s)
	}
}

func (p *printer) cells(m *page.Map) {
	gap := " "
	if len(m.Nodes) > mapWide {
		gap = ""
	}
	const margin = 16 // of names
	var head strings.Builder
	for i := range m.Nodes {
		fmt.Fprintf(&head, "%s%d", gap, (i+1)%10)
	}
	p.line("%s", p.t.Quiet.Render(fmt.Sprintf("%*s%s", margin+5, "", head.String())))
	used := map[string]bool{}
	for i, n := range m.Nodes {
		var row strings.Builder
		for j := range m.Nodes {
			row.WriteString(gap)
			c := m.Cell(i, j)
			if c == nil {
				row.WriteByte(' ')
				continue
			}
			used[c.Class] = true
			sign, style := p.sign(c.Class)
			row.WriteString(style.Render(sign))
		}
		p.line("%s", strings.TrimRight(fmt.Sprintf("  %2d %s%s", i+1, short(n.Name, margin), row.String()), " "))
	}
	var legend []string
	for _, s := range m.Legend {
		if used[s.Class] {
			sign, _ := p.sign(s.Class)
			legend = append(legend, sign+" "+s.Label)
		}
	}
	p.line("     %s", p.t.Quiet.Render(strings.Join(legend, ", ")))
}

// short cuts a name to a number of cells and keeps its end, because names differ at their end.
func short(name string, cells int) string {
	r := []rune(name)
	if len(r) > cells {
		r = append([]rune("~"), r[len(r)-cells+1:]...)
	}
	return string(r) + strings.Repeat(" ", max(0, cells-lipgloss.Width(string(r))))
}
