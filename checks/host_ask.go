package checks

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// eachNIC asks row id about the RDMA pNIC of every selected host.
func eachNIC(id string, ask func(f *Facts, h *backends.Host, n *backends.NIC) Answer) func(*Facts) []Answer {
	return eachHost(func(f *Facts, h *backends.Host) Answer {
		n := f.nic(h)
		switch {
		case n != nil:
			return ask(f, h, n)
		case f.passedOn(h) || f.blame(h) != id:
			return Answer{}
		}
		return fail(backends.HostRef(h.Name), "no pNIC is what the answers describe (%s); there are %s", describe(f.Answers.NIC, h), nicList(h))
	})
}

func describe(n answers.NIC, h *backends.Host) string {
	var parts []string
	if s := n.Speed.String(); s != "" {
		parts = append(parts, s)
	}
	for _, s := range []string{n.Driver, n.Device, string(n.MACs[h.Name])} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return "any RDMA pNIC"
	}
	return strings.Join(parts, ", ")
}

func nicList(h *backends.Host) string {
	var out []string
	for _, n := range h.NICs {
		speed := "no link"
		if n.SpeedMbps > 0 {
			speed = strconv.Itoa(n.SpeedMbps) + " Mbps"
		}
		out = append(out, n.Device+" ("+n.Driver+", "+speed+")")
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}

// shellCall asks about the firmware of the RDMA pNIC's card, which only tools in the ESXi shell read.
func shellCall(ask func(f *Facts, h *backends.Host, n *backends.NIC, card CardFirmware) Answer) func(*Facts) []Answer {
	return nicCall(func(f *Facts, h *backends.Host, n *backends.NIC, facts HostFacts) Answer {
		t := backends.HostRef(h.Name)
		card, read := facts.Firmware[function0(n.PCI)]
		switch {
		case read:
			return ask(f, h, n, card)
		case facts.ShellErr != nil && f.Answers.Mode != answers.PVRDMA:
			return unknown(t, "the firmware of %s could not be read: %v", n.Device, facts.ShellErr)
		}
		return waiting(t, "the firmware of %s was not read: that takes the ESXi shell and MFT (check --esxi-shell)", n.Device)
	})
}
