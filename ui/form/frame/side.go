package frame

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// The pages up to the VMs, by position. Once its page has been passed, an answer counts as the operator's choice, no longer as a proposal.
const (
	connectAt  = iota
	PasswordAt // skipped after the login
	HostsAt
	ModeAt
	NICsAt
	SwitchAt
	VMsAt
)

// sidePanel shows the answers so far and their cost.
func (w *Wizard) sidePanel(height int) string {
	a := w.Answers
	width := sidePanelWidth - 4
	var b strings.Builder
	line := func(page int, label, value string) {
		if w.far <= page && (page != connectAt || w.Overview == nil) {
			return // not asked yet
		}
		text := clipLines(theme.Wrap(backends.Clean(value), width-2), width-2, 3)
		fmt.Fprintf(&b, "%s\n  %s\n", w.Theme.Quiet.Render(label), strings.ReplaceAll(text, "\n", "\n  "))
	}
	b.WriteString(w.Theme.Title.Render("Answers so far") + "\n")
	line(connectAt, "vCenter", w.Login.URL)
	line(HostsAt, "Hosts", hostsInWords(a))
	line(ModeAt, "Mode", string(a.Mode)+": "+costOf(a.Mode))
	line(NICsAt, "pNIC", nicInWords(a))
	if a.Mode == answers.GPUDirect {
		line(SwitchAt, "GPUs", fmt.Sprintf("card %s, MMIO %s, %s", a.GPUDirect.NIC, a.GPUDirect.MMIO, a.GPUDirect.Backing))
	}
	if !a.WholeCard() {
		line(SwitchAt, "Switch", fmt.Sprintf("%s, %s, MTU %d, VLAN %d", a.Switch.Name, a.Switch.PortGroup, a.Switch.MTU, a.Switch.VLAN))
	}
	if a.WholeCard() {
		line(SwitchAt, "MTU", strconv.Itoa(a.Switch.MTU))
	} else if a.VFs() {
		line(SwitchAt, "VFs", fmt.Sprintf("%d a host, %s", a.SRIOV.VFs, plain.Counted(len(a.SRIOV.Components), "component")))
		if words := entry.TuningWords(a.Tuning); words != "" {
			line(SwitchAt, "Tuning", words)
		}
	} else {
		line(SwitchAt, "vmknic", a.PVRDMA.VMKNic.String())
	}
	line(VMsAt, "VMs", plain.Counted(len(a.VMs), "VM"))
	if w.Plan != nil {
		b.WriteString("\n" + w.Theme.Title.Render("What it costs") + "\n" +
			w.Theme.Warning.Render(theme.Wrap(strings.ReplaceAll(plain.Cost(w.Plan), ", ", "\n"), width)) + "\n")
	}
	edge := lipgloss.NormalBorder()
	if w.Theme.ASCII {
		edge = lipgloss.ASCIIBorder()
	}
	return lipgloss.NewStyle().Border(edge, false, false, false, true).BorderForeground(w.Theme.Quiet.GetForeground()).PaddingLeft(1).
		Width(sidePanelWidth - 1).Height(height).MaxHeight(height).Render(strings.TrimRight(b.String(), "\n"))
}

func clipLines(s string, width, n int) string {
	l := strings.Split(s, "\n")
	if len(l) <= n {
		return s
	}
	l[n-1] = strings.TrimRight(theme.Clip(l[n-1], width-len(" ...")), " ") + " ..."
	return strings.Join(l[:n], "\n")
}

const helpText = `  Enter     next field; on the last, accept the page; a plan says what to type
  Esc       back to the page before; nothing is lost
  Up Down   move, also Tab and Shift+Tab     PgUp PgDn Home End
  F4        list the choices of a field      Left Right  change it
  Space     choose     a  all or none   i  invert   c  all of the cluster
  /         filter a list, search a report   Esc  clear the filter
  e l       edit the address, the login      E L  of all chosen VMs
  F2 F3     on the first page: read-only report, continue with kept answers
  r         read again; rehearse a plan      g  from a refusal to its answer
  Tab f F   choose a section of a report, fold it, fold all
  n N h     next and previous match in a report; write it as HTML
  p x R d   on the run page: pause or continue, skip, retry, details; f /
  s Ctrl-S  save the answers     e Ctrl-E  open them in $EDITOR
  q         leave      Ctrl-C  stop: once lets running steps finish,
                               twice stops at once
  ? F1      this help

Nothing is written before you accept the plan. Any key closes this help.`

func costOf(m answers.Mode) string {
	return map[answers.Mode]string{answers.PVRDMA: "VM power cycle, memory reserved", answers.SRIOV: "host reboots, no vMotion",
		answers.GPUDirect: "VM power cycle, no vMotion"}[m]
}

func hostsInWords(a *answers.Answers) string {
	switch h := a.Hosts; {
	case len(h.Names) > 0:
		return fmt.Sprintf("%d: %s", len(h.Names), plain.Names(h.Names))
	case h.Cluster != "":
		return "all of " + h.Cluster
	}
	return "every connected host"
}

func nicInWords(a *answers.Answers) string {
	if a.Several() {
		names := plain.Mapped(a.Rails, func(r answers.Rail) string { return r.Name })
		return fmt.Sprintf("%d rails: %s", len(names), plain.Names(names))
	}
	parts := []string{"", a.NIC.Speed.String(), a.NIC.Driver, a.NIC.Device}
	if n := len(a.NIC.MACs); n > 0 {
		parts[0] = fmt.Sprintf("%d by MAC", n)
	}
	return entry.OrNone(slices.DeleteFunc(parts, func(s string) bool { return s == "" }))
}
