package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/nmlx5"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// sriovChecks look at the VFs of each host: what the driver was asked for, what the firmware gives, what is there.
func sriovChecks() []checks.Check {
	return []checks.Check{
		maxVFs("HOST-MAXVFS-LEN-005", "one entry for each nmlx5 port, or unset and set through the API / fewer / more",
			"Rewrite the list for all ports in PCI order.", "RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022); Broadcom KB 309346", func(t backends.Ref, _ int, ports []string, list []int) checks.Answer {
				const shifted = ": a card was added or taken out, and each entry may be for another port than before"
				switch {
				case len(list) > len(ports):
					return row.Fail(t, "max_vfs %s has %d entries for %d nmlx5 ports"+shifted, joined(list), len(list), len(ports))
				case len(list) > 1 && len(list) < len(ports):
					return row.Warn(t, "max_vfs %s has %d entries for %d nmlx5 ports"+shifted, joined(list), len(list), len(ports))
				}
				return row.WarnIf(len(list) < len(ports), t, "max_vfs %s has %d entries for %d nmlx5 ports", joined(list), len(list), len(ports))
			}),
		maxVFs("HOST-MAXVFS-ORDER-006", "the entry of the chosen port is not 0 / - / it is, or missing",
			"Compute the order again, by segment, bus, device and function.", "Broadcom KB 309346", func(t backends.Ref, at int, ports []string, list []int) checks.Answer {
				return row.PassIf(at < len(list) && list[at] > 0, t, "max_vfs %s; %s is number %d in PCI order", joined(list), ports[at], at+1)
			}),
		maxVFs("HOST-MAXVFS-LOWPF-007", "no card asks for VFs on a later function only / one does, with more than 8 / -",
			"Enable VFs on function 0 first.", "Broadcom KB 2039824", func(t backends.Ref, _ int, ports []string, list []int) checks.Answer {
				cards := map[string][]int{}
				for i, p := range ports {
					if i < len(list) {
						cards[row.Function0(p)] = append(cards[row.Function0(p)], list[i])
					}
				}
				for card, vfs := range cards {
					if sizing.LowFunctionEmpty(vfs) {
						return row.Warn(t, "max_vfs %s gives card %s the entries %s", joined(list), card, joined(vfs))
					}
				}
				return row.Pass(t, "max_vfs %s", joined(list))
			}),
		{
			ID: "HOST-NUMVFS-008", Scope: checks.Host, Link: checks.InFirmware, Modes: row.SRIOV, Fix: checks.Reboot, Source: "RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022); sriov-network-operator PR 218",
			Criteria: "NUM_OF_VFS covers the largest max_vfs of the card / - / less",
			Remedy:   "Raise NUM_OF_VFS and reboot.",
			Run: shellCall(func(f *checks.Facts, h *backends.Host, n *backends.NIC, card backends.Firmware) checks.Answer {
				want := f.Answers.SRIOV.VFs
				if n.SRIOV != nil {
					want = max(want, n.SRIOV.Requested)
				}
				has := nmlx5.Number(card.Current["NUM_OF_VFS"])
				return row.PassIf(sizing.EnoughVFs(has, []int{want}), backends.HostRef(h.Name), "%s: NUM_OF_VFS is %s, %d are wanted", n.Device, cmp.Or(card.Current["NUM_OF_VFS"], "unset"), want)
			}),
		},
		{
			ID: "HOST-SRIOVEN-009", Scope: checks.Host, Link: checks.InFirmware, Modes: row.SRIOV, Fix: checks.Reboot, Source: "RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022)",
			Criteria: "SRIOV_EN is on / on after the next boot only / off",
			Remedy:   "Enable SRIOV_EN and reboot.",
			Run: shellCall(func(_ *checks.Facts, h *backends.Host, n *backends.NIC, card backends.Firmware) checks.Answer {
				now, next := row.IsTrue(card.Current["SRIOV_EN"]), row.IsTrue(card.Next["SRIOV_EN"])
				t := backends.HostRef(h.Name)
				if !now && !next {
					return row.Fail(t, "%s: SRIOV_EN is off", n.Device)
				}
				return row.WarnIf(!now, t, "%s: SRIOV_EN is %s now, %s after the next boot", n.Device, row.OnOff(now), row.OnOff(next))
			}),
		},
		{
			ID: "HOST-VF-COUNT-010", Scope: checks.Host, Link: checks.InDriver, Modes: row.SRIOV, Quick: true, Fix: checks.Reboot, Source: "vSphere API, HostSriovInfo",
			Criteria: "as many VFs as requested, SR-IOV active / - / fewer",
			Remedy:   "Reboot the host; then check BIOS and firmware.",
			Run: eachNIC("HOST-VF-COUNT-010", func(_ *checks.Facts, h *backends.Host, n *backends.NIC) checks.Answer {
				t := backends.HostRef(h.Name)
				if n.SRIOV == nil {
					return row.Fail(t, "%s tells nothing of SR-IOV", n.Device)
				}
				return row.PassIf(n.SRIOV.Active && n.SRIOV.VFs > 0 && n.SRIOV.VFs >= n.SRIOV.Requested, t, "%s has %d of %d requested VFs, SR-IOV active %t", n.Device, n.SRIOV.VFs, n.SRIOV.Requested, n.SRIOV.Active)
			}),
		},
		{
			ID: "HOST-VF-FREE-011", Scope: checks.Host, Link: checks.InDriver, Modes: row.SRIOV, Quick: true, HostCall: true, Fix: checks.Reboot, Source: "Broadcom KB 309346",
			Criteria: "enough free VFs for the VMs that have none yet / - / not enough",
			Remedy:   "Increase the VFs, or move a VM to another host.",
			Run:      row.NICCall(freeVFs),
		},
		{
			ID: "HOST-VF-INTR-012", Scope: checks.Host, Link: checks.InDriver, Modes: row.SRIOV, Quick: true, Fix: checks.Reboot, Source: "vSphere Networking, SR-IOV and interrupt vectors",
			Criteria: "three vectors for each VF stay below 3072 / they do not (formula of Intel and Emulex) / -",
			Remedy:   "Reduce the VFs.",
			Run: row.EachHost(func(_ *checks.Facts, h *backends.Host) checks.Answer {
				sum := 0
				for _, n := range h.NICs {
					if n.SRIOV != nil {
						sum += n.SRIOV.VFs
					}
				}
				return row.WarnIf(sizing.VectorsFor(sum) >= sizing.VectorLimit, backends.HostRef(h.Name), "%d VFs take %d of %d vectors", sum, sizing.VectorsFor(sum), sizing.VectorLimit)
			}),
		},
	}
}

// maxVFs is a row about the list max_vfs of nmlx5_core. ports are the functions of the driver in PCI order, at is the
// place of the chosen one.
func maxVFs(id, criteria, remedy, source string, ask func(t backends.Ref, at int, ports []string, list []int) checks.Answer) checks.Check {
	return checks.Check{
		ID: id, Scope: checks.Host, Link: checks.InDriver, Modes: row.SRIOV, Quick: true, HostCall: true, Fix: checks.Reboot, Source: source, Criteria: criteria, Remedy: remedy,
		Run: row.NICCall(func(_ *checks.Facts, h *backends.Host, n *backends.NIC, sys *backends.HostSystem) checks.Answer {
			t := backends.HostRef(h.Name)
			if core := sys.Modules[nmlx5.Core]; n.Driver == nmlx5.Core && !core.Known() {
				return row.Unread(t, "max_vfs of "+nmlx5.Core, core)
			}
			if n.Driver != nmlx5.Core {
				return row.Waiting(t, "%s: max_vfs of driver %s was not read", n.Device, cmp.Or(n.Driver, "none"))
			}
			ports := nmlx5.Ports(h)
			text := nmlx5.Param(sys, nmlx5.Core, "max_vfs")
			if text == "" && n.SRIOV != nil && n.SRIOV.VFs > 0 {
				return row.Pass(t, "max_vfs is unset; the %d VFs of %s were asked for through the API", n.SRIOV.VFs, n.Device)
			}
			var list []int
			for entry := range strings.SplitSeq(text, ",") {
				if v := nmlx5.Number(entry); v >= 0 {
					list = append(list, v)
				} else if entry != "" {
					return row.Fail(t, "max_vfs is %q: %q is no number", text, entry)
				}
			}
			return ask(t, slices.Index(ports, n.PCI), ports, list)
		}),
	}
}

func joined(list []int) string {
	if len(list) == 0 {
		return "unset"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// freeVFs counts by esxcli's list, or where that was not read by the VMs' adapters.
func freeVFs(f *checks.Facts, h *backends.Host, n *backends.NIC, sys *backends.HostSystem) checks.Answer {
	t := backends.HostRef(h.Name)
	if n.SRIOV == nil {
		return row.Fail(t, "%s tells nothing of SR-IOV", n.Device)
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
