package form

import (
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// The smallest screen that holds every page, and from which width the side panel fits.
const (
	minWidth, minHeight = 80, 24
	sidePanelFrom       = 116
	sidePanelWidth      = 36
)

// View draws the whole screen.
func (w *wizard) View() tea.View {
	v := tea.NewView(w.draw())
	v.AltScreen = true
	v.WindowTitle = "rdma-setup"
	return v
}

func (w *wizard) draw() string {
	if w.width == 0 {
		return ""
	}
	if w.width < minWidth || w.height < minHeight {
		return fmt.Sprintf("This screen is %dx%d.\nrdma-setup needs %dx%d:\nmake it larger.", w.width, w.height, minWidth, minHeight)
	}
	footer := w.footer()
	head := w.header()
	body := w.height - lipgloss.Height(head) - lipgloss.Height(footer)
	width := w.width - 2
	side := ""
	if w.width >= sidePanelFrom {
		width -= sidePanelWidth + 2
		side = w.sidePanel(body)
	}
	var content string
	if w.help {
		content = helpText
	} else {
		content = w.page().view(w, width, body-1)
	}
	box := lipgloss.NewStyle().Width(width).Height(body).MaxHeight(body).Render(content)
	if side != "" {
		box = lipgloss.JoinHorizontal(lipgloss.Top, box, "  ", side)
	}
	return head + "\n" + lipgloss.NewStyle().PaddingLeft(1).Render(box) + "\n" + footer
}

func (w *wizard) header() string {
	left := w.theme.Title.Render(" rdma-setup") + w.theme.Quiet.Render(fmt.Sprintf("  %d/%d  ", w.at+1, len(w.pages))) + w.theme.Title.Render(w.page().title())
	right := ""
	if w.fabric.Simulated() {
		right = w.theme.Warning.Render("SIMULATED ")
	}
	gap := max(1, w.width-lipgloss.Width(left)-lipgloss.Width(right))
	return left + strings.Repeat(" ", gap) + right + "\n" + w.theme.Quiet.Render(strings.Repeat(w.rule(), w.width))
}

func (w *wizard) rule() string {
	if w.theme.ASCII {
		return "-"
	}
	return "─"
}

// footer shows what is waited for or what is wrong, then the keys.
func (w *wizard) footer() string {
	status := ""
	switch {
	case w.leave:
		status = w.theme.Warning.Render(" Leave? Nothing was changed that is not in the journal. y leaves, any other key stays")
	case w.busy != "":
		status = w.theme.Accent.Render(" " + w.busy + " ...  Esc cancels")
	case w.err != nil:
		status = w.problem()
	}
	keys := " Enter accept  Esc back  ? help  q leave"
	if h := w.page().hints(); h != "" {
		keys = " " + h + "  " + keys[1:]
	}
	return w.theme.Quiet.Render(strings.Repeat(w.rule(), w.width)) + "\n" + status + "\n" + w.theme.Quiet.Render(clip(keys, w.width))
}

func (w *wizard) problem() string {
	what, hint := w.err.Error(), backends.HintOf(w.err)
	var refused *plan.Refused
	if errors.As(w.err, &refused) && len(refused.Refusals) > 0 {
		hint = refused.Refusals[0].Remedy
	}
	s := w.theme.Bad.Render(wrap(" error: "+plain.Clean(what), w.width))
	if hint != "" {
		s += "\n" + wrap(" hint:  "+plain.Clean(hint), w.width)
	}
	return s
}

func wrap(s string, width int) string {
	return lipgloss.NewStyle().Width(width).Render(s)
}

func clip(s string, width int) string {
	if lipgloss.Width(s) <= width {
		return s
	}
	return lipgloss.NewStyle().MaxWidth(max(1, width)).Render(s)
}

// sidePanel shows the answers so far and what they cost.
func (w *wizard) sidePanel(height int) string {
	a := w.answers
	var b strings.Builder
	line := func(label, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s\n  %s\n", w.theme.Quiet.Render(label), clip(plain.Clean(value), sidePanelWidth-6))
		}
	}
	b.WriteString(w.theme.Title.Render("Answers so far") + "\n")
	line("vCenter", a.VCenter.URL)
	line("Hosts", hostsInWords(w))
	line("Mode", string(a.Mode)+", "+costOf(string(a.Mode)))
	line("NIC", nicInWords(a))
	line("Switch", fmt.Sprintf("%s / %s, MTU %d", a.Switch.Name, a.Switch.PortGroup, a.Switch.MTU))
	line("vmknic", a.PVRDMA.VMKNic)
	line("VMs", fmt.Sprintf("%d", len(a.VMs)))
	if w.plan != nil {
		line("Cost", "")
		b.WriteString(lipgloss.NewStyle().Width(sidePanelWidth-4).Render(plain.Cost(w.plan)) + "\n")
	}
	return lipgloss.NewStyle().Border(w.theme.Border).Padding(0, 1).Width(sidePanelWidth).Height(height - 2).MaxHeight(height).Render(b.String())
}

const helpText = `Keys

  Enter        accept the page and go on
  Esc          back to the page before; nothing is lost
  Tab          next field        Shift+Tab  field before
  Up Down      move              PgUp PgDn Home End
  Space        choose            a          choose all, or none
  /            filter a list     Esc        clear the filter
  e            edit the line under the cursor
  q            leave             Ctrl-C     stop: once lets running steps finish,
                                            twice stops at once
  ?            this help

Nothing is written to vCenter, a host or a guest before you accept the plan.
A run can be resumed (rdma-setup resume) and taken back (rdma-setup rollback).

Any key closes this help.`
