package render

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/render/page"
)

// tablePairs is the largest number of pairs for which the table has one row each.
const tablePairs = 400

// table prints a row for each pair with a column for each test, and below a row the explanation of its bad figures; if they make it
// too wide, without the shapes. It returns false and prints nothing if the table does not fit on the screen.
func (p *printer) table(pairs []*pair, said map[string]bool) bool {
	if p.columns < tableFrom || len(pairs) > tablePairs {
		return false
	}
	return p.rows(pairs, said, true) || p.rows(pairs, said, false)
}

func (p *printer) rows(pairs []*pair, said map[string]bool, shapes bool) bool {
	head := []string{"pair", "hosts"}
	for _, pr := range pairs {
		for _, m := range pr.tests {
			if name := column(m); !slices.Contains(head, name) {
				head = append(head, name)
			}
		}
	}
	rows := [][]string{head}
	for _, pr := range pairs {
		m := pr.tests[0]
		row := make([]string, len(head))
		row[0], row[1] = m.Pair(), m.FromHost+" -> "+m.ToHost
		for _, m := range pr.tests {
			row[slices.Index(head, column(m))] = p.cell(m, shapes)
		}
		rows = append(rows, row)
	}
	wide := make([]int, len(head))
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], lipgloss.Width(cell))
		}
	}
	all := 2
	for _, w := range wide {
		all += 2 + w
	}
	if all > p.columns {
		return false
	}
	for i, row := range rows {
		var b strings.Builder
		for j, cell := range row {
			if i == 0 {
				cell = p.t.Quiet.Render(cell)
			}
			b.WriteString("  " + cell + strings.Repeat(" ", wide[j]-lipgloss.Width(cell)))
		}
		mark := " "
		if i > 0 {
			mark = p.t.Symbol(pairs[i-1].mark)
		}
		p.line("  %s%s", mark, strings.TrimRight(b.String(), " ")[1:])
		if i > 0 {
			for _, m := range pairs[i-1].tests {
				p.trouble(m, said)
			}
		}
	}
	return true
}

func column(m perftest.Measurement) string {
	name := m.Test
	if m.GPU != nil {
		name += ", " + m.GPU.String()
	}
	return name
}

// cell formats the figure of a test, what was proven about its class, and its shape if asked for.
func (p *printer) cell(m perftest.Measurement, shapes bool) string {
	said := []string{m.Figure()}
	switch {
	case m.Verdict == perftest.VerdictNotApplicable && m.Instead == "":
		said[0] = "n/a"
	case said[0] == "":
		said[0] = "not measured"
	case m.AchievedGbps > 0 && m.ExpectedGbps > 0:
		said = append(said, fmt.Sprintf("%3.0f %% of %.1f", 100*m.AchievedGbps/m.ExpectedGbps, m.ExpectedGbps))
	case m.AchievedUs > 0 && m.ExpectedUs > 0:
		said = append(said, fmt.Sprintf("good up to %.0f", m.ExpectedUs))
	}
	if m.Repeats > 1 {
		said = append(said, m.Repeated())
	}
	if class := page.Proven(m.Class); class != "" {
		said = append(said, "class "+class+", lost "+page.LostLabel(m))
	}
	if curve := page.ShapeOf(m).Values; shapes && len(curve) > 0 {
		said = append(said, p.t.Spark(curve))
	}
	return strings.Join(said, "  ")
}
