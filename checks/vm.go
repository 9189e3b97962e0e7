package checks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// vmRows gives the rows of VMs.
func vmRows() []Check {
	return slices.Concat(vmChecks(), vmTuningChecks(), vmAdapterChecks(), vmGPUChecks())
}

// vmChecks look at the VMs in vCenter: state, hardware version, memory.
func vmChecks() []Check {
	return []Check{
		{
			ID: "VM-POWER-001", Scope: VM, Link: InVM, Quick: true, Fix: Automatic, Source: "Broadcom KB 328676",
			Criteria: "off, or on while nothing is planned / on before a run, which shuts it down / suspended, inaccessible, a template or vCenter itself",
			Remedy:   "Shut the guest down by VMware Tools, or resume it first where it is suspended.",
			Run: eachVM(func(f *Facts, v *backends.VM) Answer {
				t := backends.VMRef(v.Name)
				if v.Template || v.VCenterVM || v.Power == "suspended" || v.State != "" && v.State != "connected" {
					return fail(t, "%s, %s, template %t, vCenter's own VM %t", v.Power, cmp.Or(v.State, "none"), v.Template, v.VCenterVM)
				}
				return warnIf(f.Before && v.Power == "poweredOn", t, "the VM is %s", v.Power)
			}),
		},
		{
			ID: "VM-HWVER-002", Scope: VM, Link: InVM, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Source: "Broadcom KB 328676; VMware: PVRDMA support",
			Criteria: "vmx >= 17 / 13 to 16 / below 13", Remedy: "Upgrade the hardware version; it cannot be lowered again.",
			Run: eachVM(func(_ *Facts, v *backends.VM) Answer {
				return grade(-float64(v.Hardware), -17, -13, backends.VMRef(v.Name), "vmx-%d", v.Hardware)
			}),
		},
		{
			ID: "VM-HWVER-DDIO-003", Scope: VM, Link: InVM, Modes: gpuOnly, Quick: true, Fix: Automatic, Source: "bosh-vsphere-cpi PR 370",
			Criteria: "vmx >= 17, or nothing is passed through dynamically / - / below 17", Remedy: "Upgrade the hardware version to 17 for Dynamic DirectPath.",
			Run: eachVM(func(_ *Facts, v *backends.VM) Answer {
				dynamic := slices.ContainsFunc(v.Passthrough, func(p string) bool { return strings.HasPrefix(p, "dynamic") })
				return passIf(v.Hardware >= 17 || !dynamic, backends.VMRef(v.Name), "vmx-%d, devices: %s", v.Hardware, cmp.Or(strings.Join(v.Passthrough, ", "), "none"))
			}),
		},
		{
			ID: "VM-HWVER-SLOT-004", Scope: VM, Link: InVM, Quick: true, Fix: NoFix, Source: "Broadcom KB 407595",
			Criteria: "the hardware version is that of the baseline, or no PCI slots move / an EFI VM was raised to 20 or later / -",
			Remedy:   "Match interfaces by MAC: their names may have changed.",
			Run: eachVM(func(f *Facts, v *backends.VM) Answer {
				t := backends.VMRef(v.Name)
				if f.Baseline != nil {
					if was := f.Baseline.VM(v.Name); was != nil {
						return warnIf(v.Firmware == "efi" && was.Hardware < 20 && v.Hardware >= 20, t, "vmx-%d, vmx-%d in the baseline, firmware %s", v.Hardware, was.Hardware, v.Firmware)
					}
				}
				return pass(t, "vmx-%d, firmware %s; this program raises no VM to 20", v.Hardware, v.Firmware)
			}),
		},
		{
			ID: "VM-SNAP-005", Scope: VM, Link: InVM, Modes: directModes, Quick: true, Preflight: true, Fix: Manual, Source: "vSphere Networking 6.5, p. 153",
			Criteria: "no snapshot / - / some", Remedy: "Delete or consolidate the snapshots first.",
			Run: eachVM(func(_ *Facts, v *backends.VM) Answer {
				return passIf(v.Snapshots == 0, backends.VMRef(v.Name), "%d snapshots", v.Snapshots)
			}),
		},
		{
			ID: "VM-SNAP-P-006", Scope: VM, Link: InVM, Modes: pvrdmaOnly, Quick: true, Fix: NoFix, Source: "VM administration guide 6.5, p. 110",
			Criteria: "no snapshot / some, which PVRDMA allows / -", Remedy: "Know that reverting to a snapshot brings old devices back, but not the old reservation.",
			Run: eachVM(func(_ *Facts, v *backends.VM) Answer {
				return warnIf(v.Snapshots > 0, backends.VMRef(v.Name), "%d snapshots", v.Snapshots)
			}),
		},
		{
			ID: "VM-MEMRES-007", Scope: VM, Link: InVM, Quick: true, Fix: Automatic, Source: "vSphere Networking 6.5, p. 167",
			Criteria: "all memory reserved / PVRDMA without / SR-IOV or GPUDirect without", Remedy: "Reserve all guest memory.",
			Run: eachVM(func(f *Facts, v *backends.VM) Answer {
				t := backends.VMRef(v.Name)
				switch {
				case v.MemoryLocked && v.Reservation >= v.MemoryMB:
					return pass(t, "%d MB, all reserved", v.MemoryMB)
				case f.Answers.Mode == answers.PVRDMA:
					return warn(t, "%d of %d MB reserved, locked to the maximum %t", v.Reservation, v.MemoryMB, v.MemoryLocked)
				}
				return fail(t, "%d of %d MB reserved, locked to the maximum %t", v.Reservation, v.MemoryMB, v.MemoryLocked)
			}),
		},
		{
			ID: "VM-PCIADDR-050", Scope: VM, Link: InVM, Modes: directModes, Quick: true, Fix: Automatic, Source: "VMX keys pciPassthruN.id and .pfId (decimal bus)",
			Criteria: "the VMX keys name the devices / no keys yet / they name others", Remedy: "Remove the device and add it again, so that both agree.",
			Run: eachVM(addressesAgree),
		},
		{
			ID: "VM-MEMFIT-008", Scope: VM, Link: InVM, Quick: true, Fix: Manual, Source: "ours",
			Criteria: "runs, or its memory fits into the host's free memory / takes over 90 % of it / does not fit", Remedy: "Shrink the VM or move it.",
			Run: eachVM(func(f *Facts, v *backends.VM) Answer {
				t, h := backends.VMRef(v.Name), f.Inventory.Host(v.Host)
				switch {
				case v.Power == "poweredOn":
					return pass(t, "the VM runs with %d MB", v.MemoryMB)
				case h == nil || h.MemoryMB == 0:
					return waiting(t, "the memory of host %s is not known", cmp.Or(v.Host, "none"))
				}
				free := h.MemoryMB - h.MemoryUsedMB
				return grade(float64(v.MemoryMB), 0.9*float64(free), float64(free), t, "%d MB to reserve, %s has %d MB free", v.MemoryMB, h.Name, free)
			}),
		},
	}
}

// addressesAgree compares the devices of a VM with the VMX keys that were written when it was last powered on.
func addressesAgree(f *Facts, v *backends.VM) Answer {
	t := backends.VMRef(v.Name)
	var want, have []string
	for _, p := range v.Passthrough {
		if a := pciAddress(p); a != "" {
			want = append(want, a)
		}
	}
	for _, a := range v.Adapters {
		if p := pciAddress(a.PF); a.Type == "sriov" && p != "" {
			want = append(want, p)
		}
	}
	if len(want) == 0 {
		return pass(t, "no device with a fixed address")
	}
	if v.Extra == nil {
		return waiting(t, "the VMX keys were not read")
	}
	for key, value := range v.Extra {
		key = strings.ToLower(key)
		if a := pciAddress(value); a != "" && (strings.HasSuffix(key, ".id") || strings.HasSuffix(key, ".pfid")) {
			have = append(have, a)
		}
	}
	slices.Sort(have)
	evidence := "devices " + strings.Join(want, ", ") + "; VMX keys " + cmp.Or(strings.Join(have, ", "), "none")
	if len(have) == 0 {
		return warn(t, "%s", evidence)
	}
	return passIf(!slices.ContainsFunc(want, func(a string) bool { return !slices.Contains(have, a) }), t, "%s", evidence)
}
