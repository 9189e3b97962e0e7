package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// sriovChecks examine the VFs of each host: what is requested from the driver, what the firmware provides, and what exists.
func sriovChecks() []checks.Check {
	return []checks.Check{
		maxVFs("HOST-MAXVFS-LEN-005", "one entry for each port of the driver, or unset and set through the API / fewer / more",
			"Rewrite the list for all ports in PCI order.", row.SRIOVStudy+"; Broadcom KB 309346",
			func(t backends.Ref, _ int, l vfList) checks.Answer {
				const shifted = ": a card was added or removed, so that entries may now apply to other ports"
				evidence := fmt.Sprintf("%s %s has %d entries for %d %s ports", l.name, joined(l.vfs), len(l.vfs), len(l.ports), l.family)
				switch {
				case len(l.vfs) > len(l.ports):
					return row.Fail(t, "%s", evidence+shifted)
				case len(l.vfs) > 1 && len(l.vfs) < len(l.ports):
					return row.Warn(t, "%s", evidence+shifted)
				}
				return row.WarnIf(len(l.vfs) < len(l.ports), t, "%s", evidence)
			}, backends.KindModuleParams),
		maxVFs("HOST-MAXVFS-ORDER-006", "the entry of the chosen port is greater than 0 / - / 0 or missing",
			"Write the list again, with the ports ordered by segment, bus, device and function.", "Broadcom KB 309346",
			func(t backends.Ref, at int, l vfList) checks.Answer {
				return row.PassIf(at < len(l.vfs) && l.vfs[at] > 0, t, "%s %s; %s is number %d in PCI order", l.name, joined(l.vfs), l.ports[at], at+1)
			}, backends.KindModuleParams),
		maxVFs("HOST-MAXVFS-LOWPF-007", "no card has VFs only on a later function / one does, with more than 8 / -",
			"Enable VFs on function 0 first.", "Broadcom KB 2039824", func(t backends.Ref, _ int, l vfList) checks.Answer {
				cards := map[string][]int{}
				for i, p := range l.ports {
					if i < len(l.vfs) {
						cards[nic.CardAddress(p)] = append(cards[nic.CardAddress(p)], l.vfs[i])
					}
				}
				for card, vfs := range cards {
					if nic.LowFunctionEmpty(vfs) {
						return row.Warn(t, "%s %s gives card %s the entries %s", l.name, joined(l.vfs), card, joined(vfs))
					}
				}
				return row.Pass(t, "%s %s", l.name, joined(l.vfs))
			}),
		{
			ID: "HOST-NUMVFS-008", Scope: checks.Host, Link: checks.InFirmware, Modes: row.SRIOV, Fix: checks.Reboot,
			Fixes:    []backends.Kind{backends.KindFirmware},
			Source:   row.SRIOVStudy + "; sriov-network-operator PR 218",
			Criteria: "NUM_OF_VFS covers the largest max_vfs of the card / - / less",
			Remedy:   "Raise NUM_OF_VFS and reboot.",
			Run: shellCall(func(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, card backends.Firmware) checks.Answer {
				want := f.Answers.SRIOV.VFs
				if n.SRIOV != nil {
					want = max(want, n.SRIOV.Requested)
				}
				key := nic.FirmwareOf(nic.Of(n.Driver)).VFs
				return row.PassIf(nic.EnoughVFs(nic.Number(card.Current[key]), []int{want}), t, "%s: %s is %s, %d are needed", n.Device, key,
					cmp.Or(card.Current[key], "unset"), want)
			}),
		},
		{
			ID: "HOST-SRIOVEN-009", Scope: checks.Host, Link: checks.InFirmware, Modes: row.SRIOV, Fix: checks.Reboot,
			Fixes:    []backends.Kind{backends.KindFirmware},
			Source:   row.SRIOVStudy,
			Criteria: "SRIOV_EN is on / on after the next boot only / off",
			Remedy:   "Enable SRIOV_EN and reboot.",
			Run: shellCall(func(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, card backends.Firmware) checks.Answer {
				key := nic.FirmwareOf(nic.Of(n.Driver)).SRIOV
				now, next := row.IsTrue(card.Current[key]), row.IsTrue(card.Next[key])
				if !now && !next {
					return row.Fail(t, "%s: %s is off", n.Device, key)
				}
				return row.WarnIf(!now, t, "%s: %s is %s now, %s after the next boot", n.Device, key, row.OnOff(now), row.OnOff(next))
			}),
		},
		{
			ID: "HOST-VF-COUNT-010", Scope: checks.Host, Link: checks.InDriver, Modes: row.SRIOV, Quick: true, Fix: checks.Reboot,
			Fixes:    []backends.Kind{backends.KindVFs, backends.KindActiveVFs, backends.KindModuleParams},
			Source:   "vSphere API, HostSriovInfo",
			Criteria: "as many VFs as requested, SR-IOV active / - / fewer",
			Remedy:   "Reboot the host; then check BIOS and firmware.",
			Run: eachNIC("HOST-VF-COUNT-010", func(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
				if id, why, remedy := f.Unfit(h); id != "" {
					a := row.Fail(t, "%s", why)
					a.Remedy = remedy
					return a
				}
				if n.SRIOV == nil {
					return row.Fail(t, "%s reports nothing about SR-IOV", n.Device)
				}
				a := row.PassIf(n.SRIOV.Active && n.SRIOV.VFs > 0 && n.SRIOV.VFs >= n.SRIOV.Requested, t,
					"%s has %d VFs, %d are configured on the host, SR-IOV active %t",
					n.Device, n.SRIOV.VFs, n.SRIOV.Requested, n.SRIOV.Active)
				if n.SRIOV.Requested == 0 {
					a.Remedy = "Set the number of VFs (mode sriov does), then reboot the host."
				}
				return a
			}),
		},
		{
			ID: "HOST-VF-FREE-011", Scope: checks.Host, Link: checks.InDriver, Modes: row.SRIOV, Quick: true, HostCall: true, Fix: checks.Reboot,
			Fixes:    []backends.Kind{backends.KindVFs, backends.KindActiveVFs},
			Source:   "Broadcom KB 309346",
			Criteria: "enough free VFs for the VMs that have none yet / - / not enough",
			Remedy:   "Increase the VFs, or move a VM to another host.",
			Run:      row.NICCall(freeVFs),
		},
		{
			ID: "HOST-VF-INTR-012", Scope: checks.Host, Link: checks.InDriver, Modes: row.SRIOV, Quick: true, Fix: checks.Reboot,
			Source: "vSphere Networking, Virtual Machine That Uses an SR-IOV Virtual Function Fails to Power On Because the Host Is Out of " +
				"Interrupt Vectors",
			Criteria: "three vectors for each VF stay below 3072 / they do not (formula of Intel and Emulex) / -",
			Remedy:   "Reduce the VFs.",
			Run: row.EachHost(func(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				sum := 0
				for _, n := range h.NICs {
					if n.SRIOV != nil {
						sum += n.SRIOV.VFs
					}
				}
				return row.WarnIf(sizing.VectorsFor(sum) >= sizing.VectorLimit, t, "%d VFs take %d of %d vectors", sum, sizing.VectorsFor(sum),
					sizing.VectorLimit)
			}),
		},
	}
}

// A vfList is the list of VFs of a driver: one number for each of its functions in PCI order.
type vfList struct {
	family string // its short name
	name   string // name of the parameter
	ports  []string
	vfs    []int
}

// maxVFs returns a row about the driver's list of VFs; at is the position of the chosen port.
func maxVFs(id, criteria, remedy, source string, ask func(t backends.Ref, at int, l vfList) checks.Answer,
	fixes ...backends.Kind) checks.Check {
	return checks.Check{
		ID: id, Scope: checks.Host, Link: checks.InDriver, Modes: row.SRIOV, Quick: true, HostCall: true, Fix: checks.Reboot, Fixes: fixes,
		Source: source, Criteria: criteria,
		Remedy: remedy,
		Run: row.NICCall(func(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, sys *backends.HostSystem) checks.Answer {
			family := nic.Of(n.Driver)
			switch {
			case family == nil:
				return row.Waiting(t, "%s has driver %s, whose parameters this program does not know", n.Device, cmp.Or(n.Driver, "none"))
			case family.VFs().Refused != "":
				return row.Waiting(t, "%s %s", n.Device, family.VFs().Refused)
			}
			l := vfList{family: family.Name(), name: family.VFs().Param, ports: nic.Addresses(h, family)}
			if core := sys.Modules[n.Driver]; !core.Known() {
				return row.Unread(t, l.name+" of "+n.Driver, core)
			}
			text := nic.VFParam(sys, family)
			if text == "" && n.SRIOV != nil && n.SRIOV.VFs > 0 {
				return row.Pass(t, "%s is unset; the %d VFs of %s were set through the API", l.name, n.SRIOV.VFs, n.Device)
			}
			for entry := range strings.SplitSeq(text, ",") {
				if v := nic.Number(entry); v >= 0 {
					l.vfs = append(l.vfs, v)
				} else if entry != "" {
					return row.Fail(t, "%s is %q: %q is not a number", l.name, text, entry)
				}
			}
			return ask(t, slices.Index(l.ports, n.PCI), l)
		}),
	}
}

func joined(list []int) string {
	if len(list) == 0 {
		return "unset"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// freeVFs counts by esxcli's list, or if that was not read, by the VMs' adapters.
func freeVFs(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, sys *backends.HostSystem) checks.Answer {
	if n.SRIOV == nil {
		return row.Fail(t, "%s reports nothing about SR-IOV", n.Device)
	}
	used := 0
	if list := sys.VFs[n.Device]; list.Known() {
		for _, v := range list.Value {
			if v.Active {
				used++
			}
		}
	} else {
		for _, v := range f.Inventory.VMs {
			for _, a := range v.Adapters {
				if a.Type == "sriov" && a.PF == n.PCI && v.Host == h.Name && v.Power == "poweredOn" {
					used++
				}
			}
		}
	}
	need := 0
	found, _ := f.VMs()
	for _, v := range found {
		if v.Host == h.Name && (f.Adapter(v, "sriov") == nil || v.Power != "poweredOn") {
			need++
		}
	}
	return row.PassIf(n.SRIOV.VFs-used >= need, t, "%s: %d of %d VFs in use, %d more VMs need one", n.Device, used, n.SRIOV.VFs, need)
}
