package render

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render/page"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// label formats the first column of the lines at the top.
func (p *printer) label(i int, what string) string {
	if i > 0 {
		what = ""
	}
	return p.t.Title.Render(fmt.Sprintf("%-13s", what))
}

// left prints what the run has left behind.
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

// folded counts the findings that follow from the causes.
func (p *printer) folded(n int) {
	if n > 0 {
		p.line("  %s %s", p.t.Symbol(theme.Waiting), plain.Folded(n))
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
