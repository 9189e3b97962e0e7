package host

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// eachNIC evaluates row id for the RDMA pNIC of every selected host.
func eachNIC(id string, ask func(f *checks.Facts, t backends.Ref, h *backends.Host,
	n *backends.NIC) checks.Answer) func(*checks.Facts) []checks.Answer {
	return row.EachHost(func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
		n := f.NIC(h)
		switch {
		case n != nil:
			a := ask(f, t, h, n)
			if row, why, remedy := f.Unfit(h); row == id && a.Status != "" {
				a.Status, a.Evidence, a.Remedy = checks.Fail, why, remedy
			}
			return a
		case f.PassedOn(h) || f.Blame(h) != id:
			return checks.Answer{}
		case f.NoHCA(h):
			return row.Pass(t, "no RDMA card, which pvrdma.allow_no_hca allows: VMs here use memory on this host and TCP to other hosts, no RDMA")
		}
		if n, turns := f.HiddenPort(h); n != nil {
			if f.Before && turns {
				return row.Warn(t, "%s %s; the plan sets it to Ethernet", n.PCI, n.Hidden)
			}
			return row.Fail(t, "%s %s, so the host has no pNIC there", n.PCI, n.Hidden)
		}
		return row.Fail(t, "no pNIC matches the answers (%s); the host has %s", describe(f.Answers.NIC, h), nicList(h))
	})
}

func describe(n answers.NIC, h *backends.Host) string {
	parts := []string{n.Speed.String(), n.Driver, n.Device, string(n.MACs[h.Name])}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return cmp.Or(strings.Join(parts, ", "), "any RDMA pNIC")
}

func nicList(h *backends.Host) string {
	out := backends.Each(h.NICs, func(n backends.NIC) string {
		return n.Device + " (" + n.Driver + ", " + backends.Speed(n.SpeedMbps) + ")"
	})
	return cmp.Or(strings.Join(out, ", "), "none")
}

// shellCall evaluates the firmware of the RDMA pNIC's card, which only tools in the ESXi shell can read.
func shellCall(ask func(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC,
	card backends.Firmware) checks.Answer) func(*checks.Facts) []checks.Answer {
	return row.NICCall(func(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, sys *backends.HostSystem) checks.Answer {
		card, read := sys.Firmware[nic.CardAddress(n.PCI)]
		switch {
		case read && nic.FirmwareOf(nic.Of(n.Driver)) == nil:
			return row.Waiting(t, "the keys of the firmware of %s are not known (driver %s)", n.Device, n.Driver)
		case read:
			return ask(f, t, h, n, card)
		case sys.ShellError != "" && f.Answers.Mode != answers.PVRDMA:
			return row.Unknown(t, "the firmware of %s could not be read: %s", n.Device, sys.ShellError)
		}
		return row.Waiting(t, "the firmware of %s was not read: this needs the ESXi shell and MFT (check --esxi-shell)", n.Device)
	})
}
