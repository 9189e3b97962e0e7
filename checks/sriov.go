package checks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// sriovChecks look at the VFs of each host: what the driver was asked for, what the firmware gives, what is there.
func sriovChecks() []Check {
	return []Check{
		maxVFs("HOST-MAXVFS-LEN-005", "one entry for each nmlx5 port, or unset and set through the API / fewer / more",
			"Rewrite the list for all ports in PCI order.", "seed 002; Broadcom KB 309346", func(t backends.Ref, _ int, ports []string, list []int) Answer {
				const shifted = ": a card was added or taken out, and each entry may be for another port than before"
				switch {
				case len(list) > len(ports):
					return fail(t, "max_vfs %s has %d entries for %d nmlx5 ports"+shifted, joined(list), len(list), len(ports))
				case len(list) > 1 && len(list) < len(ports):
					return warn(t, "max_vfs %s has %d entries for %d nmlx5 ports"+shifted, joined(list), len(list), len(ports))
				}
				return warnIf(len(list) < len(ports), t, "max_vfs %s has %d entries for %d nmlx5 ports", joined(list), len(list), len(ports))
			}),
		maxVFs("HOST-MAXVFS-ORDER-006", "the entry of the chosen port is not 0 / - / it is, or missing",
			"Compute the order again, by segment, bus, device and function.", "Broadcom KB 309346", func(t backends.Ref, at int, ports []string, list []int) Answer {
				return passIf(at < len(list) && list[at] > 0, t, "max_vfs %s; %s is number %d in PCI order", joined(list), ports[at], at+1)
			}),
		maxVFs("HOST-MAXVFS-LOWPF-007", "no card asks for VFs on a later function only / one does, with more than 8 / -",
			"Enable VFs on function 0 first.", "Broadcom KB 2039824", func(t backends.Ref, _ int, ports []string, list []int) Answer {
				cards := map[string][]int{}
				for i, p := range ports {
					if i < len(list) {
						cards[function0(p)] = append(cards[function0(p)], list[i])
					}
				}
				for card, vfs := range cards {
					if sizing.LowFunctionEmpty(vfs) {
						return warn(t, "max_vfs %s gives card %s the entries %s", joined(list), card, joined(vfs))
					}
				}
				return pass(t, "max_vfs %s", joined(list))
			}),
		{
			ID: "HOST-NUMVFS-008", Scope: Host, Link: InFirmware, Modes: sriovOnly, Fix: Reboot, Source: "seed 002; sriov-network-operator PR 218",
			Criteria: "NUM_OF_VFS covers the largest max_vfs of the card / - / less",
			Remedy:   "Raise NUM_OF_VFS and reboot.",
			Run: shellCall(func(f *Facts, h *backends.Host, n *backends.NIC, card CardFirmware) Answer {
				want := f.Answers.SRIOV.VFs
				if n.SRIOV != nil {
					want = max(want, n.SRIOV.Requested)
				}
				has := number(card.Current["NUM_OF_VFS"])
				return passIf(sizing.EnoughVFs(has, []int{want}), backends.HostRef(h.Name), "%s: NUM_OF_VFS is %s, %d are wanted", n.Device, cmp.Or(card.Current["NUM_OF_VFS"], "unset"), want)
			}),
		},
		{
			ID: "HOST-SRIOVEN-009", Scope: Host, Link: InFirmware, Modes: sriovOnly, Fix: Reboot, Source: "seed 002",
			Criteria: "SRIOV_EN is on / on after the next boot only / off",
			Remedy:   "Enable SRIOV_EN and reboot.",
			Run: shellCall(func(_ *Facts, h *backends.Host, n *backends.NIC, card CardFirmware) Answer {
				now, next := isTrue(card.Current["SRIOV_EN"]), isTrue(card.Next["SRIOV_EN"])
				t := backends.HostRef(h.Name)
				if !now && !next {
					return fail(t, "%s: SRIOV_EN is off", n.Device)
				}
				return warnIf(!now, t, "%s: SRIOV_EN is %s now, %s after the next boot", n.Device, onOff(now), onOff(next))
			}),
		},
		{
			ID: "HOST-VF-COUNT-010", Scope: Host, Link: InDriver, Modes: sriovOnly, Quick: true, Fix: Reboot, Source: "vSphere API, HostSriovInfo",
			Criteria: "as many VFs as requested, SR-IOV active / - / fewer",
			Remedy:   "Reboot the host; then check BIOS and firmware.",
			Run: eachNIC("HOST-VF-COUNT-010", func(_ *Facts, h *backends.Host, n *backends.NIC) Answer {
				t := backends.HostRef(h.Name)
				if n.SRIOV == nil {
					return fail(t, "%s tells nothing of SR-IOV", n.Device)
				}
				return passIf(n.SRIOV.Active && n.SRIOV.VFs > 0 && n.SRIOV.VFs >= n.SRIOV.Requested, t, "%s has %d of %d requested VFs, SR-IOV active %t", n.Device, n.SRIOV.VFs, n.SRIOV.Requested, n.SRIOV.Active)
			}),
		},
		{
			ID: "HOST-VF-FREE-011", Scope: Host, Link: InDriver, Modes: sriovOnly, Quick: true, HostCall: true, Fix: Reboot, Source: "Broadcom KB 309346",
			Criteria: "enough free VFs for the VMs that have none yet / - / not enough",
			Remedy:   "Increase the VFs, or move a VM to another host.",
			Run:      nicCall(freeVFs),
		},
		{
			ID: "HOST-VF-INTR-012", Scope: Host, Link: InDriver, Modes: sriovOnly, Quick: true, Fix: Reboot, Source: "vSphere Networking, SR-IOV and interrupt vectors",
			Criteria: "three vectors for each VF stay below 3072 / they do not (formula of Intel and Emulex) / -",
			Remedy:   "Reduce the VFs.",
			Run: eachHost(func(_ *Facts, h *backends.Host) Answer {
				sum := 0
				for _, n := range h.NICs {
					if n.SRIOV != nil {
						sum += n.SRIOV.VFs
					}
				}
				return warnIf(sizing.VectorsFor(sum) >= sizing.VectorLimit, backends.HostRef(h.Name), "%d VFs take %d of %d vectors", sum, sizing.VectorsFor(sum), sizing.VectorLimit)
			}),
		},
	}
}

// maxVFs is a row about the list max_vfs of nmlx5_core. ports are the functions of the driver in PCI order, at is the
// place of the chosen one.
func maxVFs(id, criteria, remedy, source string, ask func(t backends.Ref, at int, ports []string, list []int) Answer) Check {
	return Check{
		ID: id, Scope: Host, Link: InDriver, Modes: sriovOnly, Quick: true, HostCall: true, Fix: Reboot, Source: source, Criteria: criteria, Remedy: remedy,
		Run: nicCall(func(_ *Facts, h *backends.Host, n *backends.NIC, facts HostFacts) Answer {
			t := backends.HostRef(h.Name)
			if n.Driver != coreModule || facts.Modules[coreModule] == nil {
				return waiting(t, "%s: max_vfs of driver %s was not read", n.Device, cmp.Or(n.Driver, "none"))
			}
			ports := corePorts(h)
			text := param(facts.Modules, coreModule, "max_vfs")
			if text == "" && n.SRIOV != nil && n.SRIOV.VFs > 0 {
				return pass(t, "max_vfs is unset; the %d VFs of %s were asked for through the API", n.SRIOV.VFs, n.Device)
			}
			var list []int
			for entry := range strings.SplitSeq(text, ",") {
				if v := number(entry); v >= 0 {
					list = append(list, v)
				} else if entry != "" {
					return fail(t, "max_vfs is %q: %q is no number", text, entry)
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
func freeVFs(f *Facts, h *backends.Host, n *backends.NIC, facts HostFacts) Answer {
	t := backends.HostRef(h.Name)
	if n.SRIOV == nil {
		return fail(t, "%s tells nothing of SR-IOV", n.Device)
	}
	used := 0
	if list, read := facts.VFs[n.Device]; read {
		for _, v := range list {
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
	found, _ := f.vms()
	for _, v := range found {
		if v.Host == h.Name && (f.adapter(v, "sriov") == nil || v.Power != "poweredOn") {
			need++
		}
	}
	return passIf(n.SRIOV.VFs-used >= need, t, "%s: %d of %d VFs in use, %d more VMs need one", n.Device, used, n.SRIOV.VFs, need)
}
