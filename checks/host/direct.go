package host

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// directHostChecks examine what the host itself needs for SR-IOV and passthrough.
func directHostChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "HOST-SSH-011", Scope: checks.Host, Link: checks.InHost, Modes: row.SRIOV, Quick: true, Fix: checks.Manual, Source: "ours",
			Criteria: "SSH runs, or nothing needs it now / stopped before a run that needs it / -",
			Remedy:   "No action needed: the run starts SSH and stops it afterwards.",
			Run: row.EachHost(func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				s, read := h.Services["TSM-SSH"]
				if !read {
					return row.Waiting(t, "the state of the SSH service was not read")
				}
				return row.WarnIf(f.Before && !s.Running, t, "the SSH service is %s", row.OnOff(s.Running))
			}),
		},
		{
			ID: "HOST-LOCKDOWN-012", Scope: checks.Host, Link: checks.InHost, Modes: row.SRIOV, Quick: true, Fix: checks.Manual, Unverified: true,
			Source:   "unverified",
			Criteria: "lockdown mode disabled / normal / strict",
			Remedy:   "Add the account as an exception user, or use a mode that does not need the ESXi shell.",
			Run: row.EachHost(func(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				switch h.Lockdown {
				case "":
					return row.Waiting(t, "the lockdown mode was not read")
				case "strict":
					return row.Fail(t, "lockdown mode %s", h.Lockdown)
				}
				return row.WarnIf(h.Lockdown != "disabled", t, "lockdown mode %s", h.Lockdown)
			}),
		},
		{
			ID: "HOST-SECBOOT-013", Scope: checks.Host, Link: checks.InDriver, Modes: row.SRIOV, Fix: checks.Manual, Unverified: true,
			Source:   "VMware vSphere 7.0 ESXi STIG: secureBoot.py -s; that an unsigned MFT does not load is unverified",
			Criteria: "secure boot off, or MFT is signed / on without MFT / on and MFT is not signed",
			Remedy:   "Use a signed build of MFT.",
			Run:      row.HostCall(secureBoot),
		},
		{
			ID: "HOST-ACCEPT-014", Scope: checks.Host, Link: checks.InDriver, Modes: row.SRIOV, Fix: checks.Manual,
			Source:   row.SRIOVStudy + " (installs with -f)",
			Criteria: "no RDMA VIB is below the host's acceptance level / - / one is",
			Remedy:   "Use certified VIBs; do not force the installation with -f.",
			Run:      row.HostCall(acceptance),
		},
		{
			ID: "HOST-INTR-015", Scope: checks.Host, Link: checks.InDriver, Modes: row.Direct, Fix: checks.Reboot,
			Source:   "Broadcom KB 313395; vSphere Networking 6.5, p. 163",
			Criteria: "vmkernel.log reports no shortage of interrupt vectors / - / it does",
			Remedy:   "Reduce the number of VFs, or raise intrFirstMsixVector on ESXi 7.0.1 to 8.0.",
			Run:      logged(backends.LogVectors),
		},
		{
			ID: "HOST-HOTPLUG-016", Scope: checks.Host, Link: checks.InBIOS, Modes: row.GPUDirect, Fix: checks.Reboot,
			Source:   "HPE a00121002; Broadcom KB that links to it",
			Criteria: "no device lost passthrough because of PCIe hot-plug / - / one did",
			Remedy:   "Disable PCIe hot-plug in the ESXi kernel settings.",
			Run:      logged(backends.LogPassthrough, backends.LogHotPlug),
		},
		{
			ID: "HOST-USBBOOT-017", Scope: checks.Host, Link: checks.InHost, Modes: row.GPUDirect, Quick: true, Fix: checks.Manual,
			Source:   "vSphere Networking, Enable Passthrough for a Network Device on a Host",
			Criteria: "no USB controller is passed through, or ESXi does not boot from it / - / it does",
			Remedy:   "Do not pass the USB controller through.",
			Run:      row.EachHost(usbBoot),
		},
		{
			ID: "HOST-UPTIME-018", Scope: checks.Host, Link: checks.InHost, Modes: row.Direct, Quick: true, Fix: checks.Reboot,
			Source:   row.SRIOVStudy,
			Criteria: "booted after the last recorded parameter change / - / not booted since",
			Remedy:   "Reboot the host: the change is not active yet.",
			Run: row.EachHost(func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				changed, known := f.Changed[h.Name]
				switch {
				case f.Changed == nil || h.BootTime.IsZero():
					return row.Waiting(t, "the journals of earlier runs or the boot time were not read")
				case !known:
					return row.Pass(t, "no run of this program changed its parameters")
				}
				return row.PassIf(h.BootTime.After(changed), t, "booted %s, parameters changed %s", h.BootTime.UTC().Format("2006-01-02 15:04:05 MST"),
					changed.UTC().Format("2006-01-02 15:04:05 MST"))
			}),
		},
	}
}

func secureBoot(_ *checks.Facts, t backends.Ref, h *backends.Host, sys *backends.HostSystem) checks.Answer {
	switch {
	case sys.SecureBoot == nil:
		return row.Waiting(t, "secure boot was not read: this needs the ESXi shell")
	case !*sys.SecureBoot:
		return row.Pass(t, "secure boot is off")
	case !sys.VIBs.Known():
		return row.Unread(t, "the list of VIBs", sys.VIBs)
	}
	modules := nic.FirmwareModules()
	for _, name := range slices.Sorted(maps.Keys(sys.VIBs.Value)) {
		is := func(module string) bool { return strings.Contains(strings.ToLower(name), module) }
		if v := sys.VIBs.Value[name]; slices.ContainsFunc(modules, is) {
			return row.PassIf(level(v.Acceptance) >= level("PartnerSupported"), t, "secure boot is on; %s is %s", name, v.Acceptance)
		}
	}
	return row.Warn(t, "secure boot is on, and %s is not installed yet", strings.ToUpper(strings.Join(modules, ", ")))
}

// level ranks acceptance levels; 0 for an unknown one.
func level(s string) int {
	all := []string{"", "communitysupported", "partnersupported", "vmwareaccepted", "vmwarecertified"}
	return max(0, slices.Index(all, strings.ToLower(s)))
}

func acceptance(_ *checks.Facts, t backends.Ref, h *backends.Host, sys *backends.HostSystem) checks.Answer {
	accepts, vibs := sys.Acceptance.Value, sys.VIBs.Value
	switch {
	case !sys.Acceptance.Known():
		return row.Unread(t, "the acceptance level", sys.Acceptance)
	case !sys.VIBs.Known():
		return row.Unread(t, "the list of VIBs", sys.VIBs)
	}
	for _, name := range slices.Sorted(maps.Keys(vibs)) {
		if v := vibs[name]; level(v.Acceptance) < level(accepts) {
			return row.Fail(t, "the host accepts %s; %s %s is %s", accepts, name, v.Version, cmp.Or(v.Acceptance, "none"))
		}
	}
	return row.Pass(t, "the host accepts %s; none of %d VIBs is below it", accepts, len(vibs))
}

// logged fails if vmkernel.log has a line with one of the texts.
func logged(texts ...string) func(*checks.Facts) []checks.Answer {
	return row.HostCall(func(_ *checks.Facts, t backends.Ref, h *backends.Host, sys *backends.HostSystem) checks.Answer {
		if sys.Log == nil {
			return row.Waiting(t, "vmkernel.log was not read: this needs the ESXi shell")
		}
		for _, line := range sys.Log {
			for _, text := range texts {
				if strings.Contains(strings.ToLower(line), text) {
					return row.Fail(t, "vmkernel.log: %s", line)
				}
			}
		}
		return row.Pass(t, "vmkernel.log has no such line since boot")
	})
}

func usbBoot(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
	var boot backends.Fact[string]
	if h.System != nil {
		boot = h.System.BootDevice
	}
	i := slices.IndexFunc(h.PCI, func(d backends.PCIDevice) bool { return d.Enabled && strings.HasPrefix(d.Class, "0c03") })
	switch {
	case i < 0:
		return row.Pass(t, "no USB controller is passed through")
	case !boot.Known():
		return row.Unread(t, "the USB controller "+h.PCI[i].Address+" is passed through; the boot device", boot)
	}
	return row.PassIf(boot.Value != "usb" && boot.Value != "sd", t, "the USB controller %s is passed through, ESXi boots from %s",
		h.PCI[i].Address, boot.Value)
}
