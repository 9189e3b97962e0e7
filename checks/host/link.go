package host

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// nicLinkChecks examine the environment of the RDMA pNIC: card, slot, use, counters.
func nicLinkChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "HOST-PNIC-PSID-008", Scope: checks.Host, Link: checks.InFirmware, Modes: row.SRIOV, Fix: checks.Manual,
			Source:   "NVIDIA, Firmware Tools (MFT) Documentation, Assigning PSID",
			Criteria: "PSID of NVIDIA (MT_*) / of an OEM / -",
			Remedy:   "For a PSID that is not MT_*, get firmware from the server vendor (OEM).",
			Run: shellCall(func(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, card backends.Firmware) checks.Answer {
				if card.PSID == "" {
					return row.Waiting(t, "the PSID of %s was not read", n.Device)
				}
				return row.WarnIf(!strings.HasPrefix(card.PSID, "MT_"), t, "%s has PSID %s", n.Device, card.PSID)
			}),
		},
		{
			ID: "HOST-PNIC-CVE-018", Scope: checks.Host, Link: checks.InFirmware, Modes: row.SRIOV, Quick: true, Fix: checks.Manual,
			Source: "NVIDIA, Security Bulletins 5699 (June 2026) and 5847 (September 2026)",
			Criteria: "no published vulnerability that a user of a VF can reach, by the bulletins that this program holds (the newest of " +
				"2026-09-29) / one / -",
			Remedy: "Update the NIC's firmware (sriov.firmware in the answers; an OEM's card: with the image of the server's vendor), and until " +
				"then give VFs to trusted VMs only.",
			Run: eachNIC("HOST-PNIC-CVE-018", vulnerable),
		},
		{
			ID: "HOST-PNIC-LINKTYPE-009", Scope: checks.Host, Link: checks.InFirmware, Fix: checks.Reboot,
			Fixes: []backends.Kind{backends.KindFirmware},
			Source: "RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022); NVIDIA, Accelerated IO (XLIO) Documentation, Type " +
				"Management / VPI Cards Configuration",
			Criteria: "LINK_TYPE is ETH, or the card has no such key / - / InfiniBand",
			Remedy:   "Set LINK_TYPE to ETH (2) and reboot.",
			Run: shellCall(func(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, card backends.Firmware) checks.Answer {
				key := "LINK_TYPE_P1"
				if strings.HasSuffix(n.PCI, ".1") {
					key = "LINK_TYPE_P2"
				}
				v, has := card.Current[key]
				return row.PassIf(!has || v == "2" || strings.HasPrefix(v, "ETH"), t, "%s: %s is %s", n.Device, key, cmp.Or(v, "none"))
			}),
		},
		{
			ID: "HOST-PNIC-MODE-019", Scope: checks.Host, Link: checks.InFirmware, Fix: checks.Manual,
			Source:   "NVIDIA, DOCA documentation: BlueField Modes of Operation",
			Criteria: "a BlueField is in NIC mode, now and after the next boot, or the card is not a BlueField / - / in DPU mode",
			Remedy: "Set NIC mode (INTERNAL_CPU_OFFLOAD_ENGINE=1 in the card's firmware) and power-cycle the server; a reset of the card's " +
				"firmware configuration sets DPU mode again.",
			Run: shellCall(func(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, card backends.Firmware) checks.Answer {
				for when, keys := range map[string]map[string]string{"now": card.Current, "from the next boot on": card.Next} {
					if nic.NICMode(h.Name, n.PCI, keys) != nil {
						return row.Fail(t, "%s: in DPU mode %s, in which the card's own CPU owns the ports", n.Device, when)
					}
				}
				return row.Pass(t, "%s: its ports belong to the host", n.Device)
			}),
		},
		{
			ID: "HOST-PNIC-PCIE-010", Scope: checks.Host, Link: checks.InBIOS, Fix: checks.Manual,
			Source:   "NVIDIA, MFT documentation: mlxlink; PCI Express bandwidth as the Linux kernel prints it",
			Criteria: "the slot is fast enough for the link / carries 60 to 100 % of it / less",
			Remedy:   "Move the card to a wider or faster slot.",
			Run:      shellCall(slotCarries),
		},
		{
			ID: "HOST-PNIC-NUMA-011", Scope: checks.Host, Link: checks.InBIOS, Quick: true, Fix: checks.Manual, Source: "vhpc-toolkit",
			Criteria: "NIC on the same NUMA node as the GPUs and the pinned VMs / on another / -",
			Remedy:   "Pin the VM to the NIC's node, or move the card.",
			Run:      eachNIC("HOST-PNIC-NUMA-011", sameNode),
		},
		{
			ID: "HOST-PNIC-USED-012", Scope: checks.Host, Link: checks.InHost, Modes: row.OnDVS, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   "PVRDMA and vSphere Bitfusion (VMware, 2021), section 3",
			Criteria: "free / uplink of the target DVS / in use",
			Remedy:   "Choose another NIC or migrate its traffic first.",
			Run: eachNIC("HOST-PNIC-USED-012", func(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
				if why := h.Usage(n, sizing.PNICWish(f.Answers, h.Name)); why != "" {
					return row.Fail(t, "%s %s", n.Device, why)
				}
				if n.Switch != "" {
					return row.Pass(t, "%s is an uplink of the target DVS %s", n.Device, n.Switch)
				}
				return row.Pass(t, "%s is free", n.Device)
			}),
		},
		{
			ID: "HOST-PNIC-ONLYUPLINK-013", Scope: checks.Host, Link: checks.InSwitch, Modes: row.PVRDMA, Quick: true,
			Fixes:    []backends.Kind{backends.KindMember},
			Source:   "vSphere Networking, PVRDMA Support",
			Criteria: "exactly one pNIC on the DVS (at most one of a host without an RDMA card) / - / none or several",
			Remedy:   "Keep the RDMA NIC as the only uplink of the switch (no teaming).",
			Run: onSwitch(func(f *checks.Facts, t backends.Ref, h *backends.Host, m backends.Member) checks.Answer {
				return row.PassIf(len(m.PNICs) == 1 || len(m.PNICs) == 0 && f.NoHCA(h), t, "uplinks on %s: %s", f.Answers.Switch.Name,
					cmp.Or(strings.Join(m.PNICs, ", "), "none"))
			}),
		},
		pauseCheck(),
		dcbCheck(),
		{
			ID: "HOST-PNIC-ERR-016", Scope: checks.Host, Link: checks.InHost, Quick: true, HostCall: true, Fix: checks.Manual, Source: "ours",
			Criteria: "no errors or drops between two reads / up to 10 a second / more",
			Remedy:   "Check cable and optics.",
			Run: row.NICCall(func(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, sys *backends.HostSystem) checks.Answer {
				s, unread := row.Traffic(t, n, sys)
				if unread != nil {
					return *unread
				}
				bad := s.Errors + s.Dropped
				return row.Grade(float64(bad)/max(1, s.Over.Seconds()), 0, 10, t, "%s: %s", n.Device, s.Grown("errors", s.Errors, "drops", s.Dropped))
			}),
		},
		{
			ID: "HOST-ENS-017", Scope: checks.Host, Link: checks.InSwitch, Modes: row.PVRDMA, Quick: true, Fix: checks.Manual,
			Source: "vSphere Web Services API: ensEnabled, ensInterruptEnabled; release notes of Intel's RDMA driver for ESXi, 1.4.4.0; " +
				"NVIDIA, native ESXi driver 4.17.15.16, Enhanced Network Stack; of other makers: unverified",
			Criteria: "the DVS runs in standard mode / in enhanced data path mode (ENS), and the driver vendor does not exclude RDMA / in ENS, " +
				"and the vendor excludes RDMA",
			Remedy: "Disable ENS for the host on the RDMA switch, or measure whether RDMA works: only some drivers exclude it.",
			Run: onSwitch(func(f *checks.Facts, t backends.Ref, h *backends.Host, m backends.Member) checks.Answer {
				if !m.ENS {
					return row.Pass(t, "%s runs in %s", f.Answers.Switch.Name, m.DataPath())
				}
				a := row.Warn(t, "%s runs in %s", f.Answers.Switch.Name, m.DataPath())
				for _, device := range m.PNICs {
					n := h.NIC(device)
					if n == nil || a.Status == checks.Fail {
						continue
					}
					says, excluded := nic.ENS(n.Driver, false)
					if a = row.Warn(t, "%s runs in %s; %s", f.Answers.Switch.Name, m.DataPath(), says); excluded {
						a.Status = checks.Fail
					}
				}
				return a
			}),
		},
	}
}

// slotCarries compares the bandwidth of the PCIe slot with the speed of the port (PCI Express Base Specification: lanes
// times transfer rate times line coding).
func slotCarries(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, card backends.Firmware) checks.Answer {
	s := card.Slot
	has, need := sizing.PCIeGbps(s.Gen, s.Lanes), float64(cmp.Or(n.SpeedMbps, n.MaxSpeedMbps))/1000
	if has == 0 || need == 0 {
		return row.Waiting(t, "the PCIe link of %s was not read", n.Device)
	}
	return row.Grade(-has/need, -1, -0.6, t, "%s: PCIe Gen%d x%d carries %.0f Gbps, the port runs at %.0f", n.Device, s.Gen, s.Lanes, has,
		need)
}

// sameNode compares NUMA nodes. If no VM is pinned, ESXi's scheduler decides and there is nothing to compare.
func sameNode(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
	if n.NUMA < 0 {
		return row.Waiting(t, "the NUMA node of %s is not known", n.Device)
	}
	if list, chosen := f.NearGPUs(h); chosen {
		for _, g := range list {
			if g.NUMA >= 0 && g.NUMA != n.NUMA {
				return row.Warn(t, "%s is on node %d, GPU %s on node %d", n.Device, n.NUMA, g.PCI, g.NUMA)
			}
		}
	}
	found, _ := f.VMs()
	for _, v := range found {
		if v.Host != h.Name {
			continue
		}
		if v.NodeAffinity == nil {
			return row.Waiting(t, "%s is on node %d; whether %s is pinned was not read", n.Device, n.NUMA, v.Name)
		}
		if pinned := strings.FieldsFunc(*v.NodeAffinity, func(r rune) bool { return r == ',' || r == ' ' }); len(pinned) > 0 &&
			!slices.Contains(pinned, strconv.Itoa(n.NUMA)) {
			return row.Warn(t, "%s is on node %d, %s is pinned to %s", n.Device, n.NUMA, v.Name, *v.NodeAffinity)
		}
	}
	return row.Pass(t, "%s is on node %d, and no VM here is pinned to another", n.Device, n.NUMA)
}

// onSwitch evaluates a host's membership in the target DVS; a host that is not a member has its own row (DVS-MEMBER-003).
func onSwitch(ask func(f *checks.Facts, t backends.Ref, h *backends.Host,
	m backends.Member) checks.Answer) func(*checks.Facts) []checks.Answer {
	return row.EachHost(func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
		if sw := f.Inventory.Switch(f.Answers.Switch.Name); sw != nil {
			if m, member := sw.Members[h.Name]; member {
				return ask(f, t, h, m)
			}
		}
		return checks.Answer{}
	})
}
