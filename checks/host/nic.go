package host

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// nicChecks examine the RDMA pNIC of each host: its type and its state.
func nicChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "HOST-PNIC-RDMA-001", Scope: checks.Host, Link: checks.InDriver, Modes: row.PVRDMA, Quick: true, Preflight: true, Fix: checks.Reboot,
			Source:   "vSphere API, HostRdmaDevice",
			Criteria: "an RDMA device is paired with the pNIC, or the answers allow a host without an RDMA card (pvrdma.allow_no_hca) / - / none",
			Remedy:   "Load the RDMA driver (" + strings.Join(nic.RDMAModules(), ", ") + ") or choose another NIC.",
			Run: eachNIC("HOST-PNIC-RDMA-001", func(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
				if n.DPU != "" {
					return row.Fail(t, "%s belongs to the DPU %s", n.Device, n.DPU)
				}
				if f.Before && nic.RDMAOff(h, n) {
					return row.Warn(t, "%s (%s): RDMA is disabled in its driver; the plan enables it", n.Device, n.Driver)
				}
				return row.PassIf(n.RDMADevice != "", t, "%s (%s): RDMA device %s", n.Device, n.Driver, cmp.Or(n.RDMADevice, "none"))
			}),
		},
		{
			ID: "HOST-PNIC-ROCEV2-002", Scope: checks.Host, Link: checks.InDriver, Modes: row.PVRDMA, Quick: true, Preflight: true,
			Fix:      checks.Reboot,
			Source:   "vSphere API; release notes of Intel's RDMA driver for ESXi, 1.4.4.0",
			Criteria: "RoCE v2 / v1 only / none (iWARP)",
			Remedy:   "Switch an Intel NIC to RoCE v2, or use pvrdma.protocol rocev1.",
			Run:      eachNIC("HOST-PNIC-ROCEV2-002", rocev2),
		},
		{
			ID: "HOST-PNIC-STATE-003", Scope: checks.Host, Link: checks.InHost, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   "vSphere API",
			Criteria: "link up / - / down",
			Remedy:   "Check cable, optics and switch port.",
			Run: eachNIC("HOST-PNIC-STATE-003", func(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
				if n.SpeedMbps == 0 {
					return row.Fail(t, "%s has no link", n.Device)
				}
				up := n.RDMAState == "" || n.RDMAState == "active" || n.RDMAState == "activeDefer" || n.RDMAState == "unknown"
				return row.PassIf(up, t, "%s is up at %s, RDMA device %s", n.Device, backends.Speed(n.SpeedMbps), cmp.Or(n.RDMAState, "none"))
			}),
		},
		{
			ID: "HOST-PNIC-SPEED-004", Scope: checks.Host, Link: checks.InHost, Quick: true, Fix: checks.Manual,
			Source: row.BitfusionGuide + ", section 2",
			Criteria: "at the pNIC's maximum speed, full duplex, the same on all hosts / slower, or the answers name pNICs of different speeds / " +
				"below 10 Gbps or mixed",
			Remedy: "Fix negotiation, cable or FEC.",
			Run:    eachNIC("HOST-PNIC-SPEED-004", speed),
		},
		{
			ID: "HOST-PNIC-MAC-005", Scope: checks.Host, Link: checks.InHost, Quick: true, Fix: checks.Manual,
			Source:   row.BitfusionGuide + ", section 2",
			Criteria: "the MAC of the answers, in the slot of the baseline / moved to another slot / not found",
			Remedy:   "Choose the NIC again.",
			Run:      eachNIC("HOST-PNIC-MAC-005", sameCard),
		},
		{
			ID: "HOST-PNIC-DRIVER-006", Scope: checks.Host, Link: checks.InDriver, Quick: true, Fix: checks.Reboot,
			Source: row.SRIOVStudy + ", section 2.2.2",
			Criteria: "a native driver that is known to support RoCE v2 / one for an old card, or not listed although the host reports RoCE v2 / " +
				"another driver, or too old for RDMA",
			Remedy: "Install the card's native driver, or choose a pNIC that supports RoCE v2.",
			Run:    eachNIC("HOST-PNIC-DRIVER-006", driver),
		},
		{
			ID: "HOST-PNIC-FWMATRIX-007", Scope: checks.Host, Link: checks.InFirmware, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   row.SRIOVStudy + ", Fig. 9",
			Criteria: "firmware not below the minimum of the driver (unknown where none is known for this driver and card) / - / below",
			Remedy: "Update the NIC's firmware (an OEM's card: from the server's vendor), or accept the risk with --skip and the id of " +
				"this check.",
			Run: eachNIC("HOST-PNIC-FWMATRIX-007", firmwareMatrix),
		},
	}
}

func rocev2(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
	switch {
	case n.RDMADevice == "":
		return checks.Answer{} // HOST-PNIC-RDMA-001 reports it
	case f.Answers.PVRDMA.Protocol == "rocev1" && !n.RoCEv1 && n.RoCEv2:
		return row.Fail(t, "%s supports RoCE v2 only, but the answers ask for v1", n.Device)
	case n.RoCEv2:
		return row.Pass(t, "%s supports RoCE v2", n.Device)
	case n.RoCEv1 && f.Answers.PVRDMA.Protocol == "rocev1":
		return row.Warn(t, "%s supports RoCE v1 only, as the answers ask for", n.Device)
	case n.RoCEv1:
		return row.Fail(t, "%s supports RoCE v1 only", n.Device)
	case n.IWARP:
		return row.Fail(t, "%s supports iWARP, not RoCE", n.Device)
	}
	return row.Fail(t, "%s has no RoCE", n.Device)
}

func speed(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
	count := map[int]int{}
	for _, other := range f.Connected() {
		if o := f.NIC(other); o != nil && o.SpeedMbps > 0 {
			count[o.SpeedMbps]++
		}
	}
	pinned := len(f.Answers.NIC.MACs) > 0 || f.Answers.NIC.Device != ""
	rare := false
	for other, times := range count {
		rare = rare || times > count[n.SpeedMbps] || times == count[n.SpeedMbps] && other > n.SpeedMbps
	}
	switch {
	case n.SpeedMbps == 0:
		return checks.Answer{} // HOST-PNIC-STATE-003 reports it
	case n.SpeedMbps < 10000:
		return row.Fail(t, "%s runs at %s", n.Device, backends.Speed(n.SpeedMbps))
	case rare && !pinned:
		return row.Fail(t, "%s runs at %s, the others at another speed", n.Device, backends.Speed(n.SpeedMbps))
	}
	return row.WarnIf(rare || n.MaxSpeedMbps > n.SpeedMbps || !n.FullDuplex, t, "%s runs at %s of %s, full duplex %t", n.Device,
		backends.Speed(n.SpeedMbps), backends.Speed(n.MaxSpeedMbps), n.FullDuplex)
}

// sameCard compares the pNIC with the baseline, if there is one. A MAC in the answers that no pNIC has is reported elsewhere.
func sameCard(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
	if f.Baseline != nil {
		if was := f.Baseline.Host(h.Name); was != nil {
			for _, old := range was.NICs {
				if strings.EqualFold(old.MAC, n.MAC) {
					return row.WarnIf(old.PCI != n.PCI, t, "%s (%s) is at %s, the baseline has it at %s", n.Device, n.MAC, n.PCI, old.PCI)
				}
			}
			return row.Fail(t, "%s has %s, which the baseline %s", n.Device, n.MAC, hadCard(f, n.MAC))
		}
	}
	if mac := f.Answers.NIC.MACs[h.Name]; mac != "" {
		return row.Pass(t, "%s has %s, as the answers say", n.Device, n.MAC)
	}
	return row.Pass(t, "%s has %s; the answers name no MAC", n.Device, n.MAC)
}

// hadCard returns where the baseline has a MAC that is no longer there.
func hadCard(f *checks.Facts, mac string) string {
	for _, h := range f.Baseline.Hosts {
		for _, n := range h.NICs {
			if strings.EqualFold(n.MAC, mac) {
				return "has in " + h.Name + " at " + n.PCI
			}
		}
	}
	return "does not know on this host"
}

// driver judges the driver of the pNIC. ESXi 8 dropped some; for the others RDMA is a separate module (RoCE SR-IOV Setup and
// Performance Study on vSphere 7.x, VMware, 2022, section 2.2.2; release notes of Intel's native RDMA driver for ESXi, 1.4.4.0).
func driver(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
	switch dropped := nic.Dropped(n.Driver); {
	case dropped != "" && (strings.HasPrefix(h.Version, "6.") || strings.HasPrefix(h.Version, "7.")):
		return row.Warn(t, "%s: %s %s is the driver of %s, which ESXi 8 no longer includes", n.Device, n.Driver, n.DriverVersion, dropped)
	case dropped != "":
		return row.Fail(t, "%s: %s is not for ESXi %s", n.Device, n.Driver, h.Version)
	case nic.TooOld(n) != "":
		return row.Fail(t, "%s: %s %s; RDMA needs at least %s", n.Device, n.Driver, n.DriverVersion, nic.TooOld(n))
	case nic.Known{}.RoCE(n.Driver):
		return row.Pass(t, "%s: %s %s", n.Device, n.Driver, n.DriverVersion)
	case n.RDMADevice != "" && n.RoCEv2:
		return row.Warn(t, "%s: driver %s is not listed; the host reports RoCE v2 for it (unverified)", n.Device, n.Driver)
	}
	return row.Fail(t, "%s: driver %s is not known to support RoCE v2", n.Device, cmp.Or(n.Driver, "none"))
}

// unreported says why the firmware of a pNIC is not known.
const unreported = "vCenter does not report it; a check without --quick asks the host (esxcli network nic get)"

// firmwareMatrix compares the firmware with the oldest version that the driver's family documents.
func firmwareMatrix(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
	if n.Firmware == "" {
		return row.Waiting(t, "the firmware of %s was not read: %s", n.Device, unreported)
	}
	pair, ok := nic.PairOf(n, n.DriverVersion, n.Firmware)
	if !ok {
		return row.Waiting(t, "%s: firmware %s; no minimum is known for %s %s and card %s:%s", n.Device, n.Firmware,
			cmp.Or(n.Driver, "no driver"), n.DriverVersion, n.Vendor, n.PCIDeviceID)
	}
	later := ""
	if pair.Later {
		later = fmt.Sprintf("; that %s needs no less is unverified", n.DriverVersion)
	}
	return row.PassIf(pair.Fits, t, "%s: firmware %s, at least %s is documented for %s %s%s", n.Device, n.Firmware, pair.Least, n.Driver,
		pair.Since, later)
}

// vulnerable warns of firmware that a user of a VF can attack. Version numbers of an OEM's firmware may differ from the maker's.
func vulnerable(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
	list, known := nic.Vulnerable(n)
	switch {
	case !nic.Listed(n):
		return row.Waiting(t, "%s: neither bulletin lists card %s:%s (%s)", n.Device, n.Vendor, n.PCIDeviceID, n.Model)
	case !known:
		return row.Waiting(t, "%s: its firmware version is not known (%s): %s", n.Device, cmp.Or(n.Firmware, "not read"), unreported)
	case len(list) == 0:
		return row.Pass(t, "%s: firmware %s has no published vulnerability that a user of a VF can reach", n.Device, n.Firmware)
	}
	return row.Warn(t, "%s: firmware %s: %s", n.Device, n.Firmware, nic.Named(list, n))
}
