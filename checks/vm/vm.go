// Package vm contains the rows about VMs in vCenter: memory, CPUs, RDMA adapters and passed-through devices.
package vm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Checks returns the rows of VMs.
func Checks() []checks.Check {
	return slices.Concat(vmChecks(), vmTuningChecks(), vmAdapterChecks(), vmGPUChecks())
}

// vmChecks examine the VMs in vCenter: state, hardware version, memory.
func vmChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "VM-POWER-001", Scope: checks.VM, Link: checks.InVM, Quick: true, Fix: checks.Manual, Source: "Broadcom KB 328676",
			Criteria: "off, or on while nothing is planned / on before a run, which shuts it down / suspended, inaccessible, a template or " +
				"vCenter itself",
			Remedy: "Shut the guest down with VMware Tools, after resuming it if it is suspended.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				if v.Template || v.VCenterVM || v.Power == "suspended" || v.State != "" && v.State != "connected" {
					return row.Fail(t, "%s, %s, template %t, vCenter's own VM %t", v.Power, cmp.Or(v.State, "none"), v.Template, v.VCenterVM)
				}
				return row.WarnIf(f.Before && v.Power == "poweredOn", t, "the VM is %s", v.Power)
			}),
		},
		{
			ID: "VM-HWVER-002", Scope: checks.VM, Link: checks.InVM, Modes: row.PVRDMA, Quick: true, Fixes: []backends.Kind{backends.KindHardware},
			Source:   "Broadcom KB 328676; vSphere Networking, PVRDMA Support",
			Criteria: "vmx >= 17, or the newest of its host / 14 to 16 (RoCE v1: 13 to 16) / below",
			Remedy:   "Upgrade the hardware version (vms[].hardware: upgrade); it cannot be lowered again.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				need := sizing.HardwareForPVRDMA(f.Answers.PVRDMA.Protocol)
				good, newest := sizing.HardwareNamespaces, ""
				if h := f.Inventory.Host(v.Host); h != nil {
					if most := sizing.HardwareLimit(h.Version, h.Build); most > 0 && most < good { // its host supports no newer one
						good, newest = max(most, need), fmt.Sprintf("; ESXi %s runs up to vmx-%d", h.Version, most)
					}
				}
				return row.Grade(-float64(v.Hardware), -float64(good), -float64(need), t, "vmx-%d; %s needs vmx-%d, namespaces vmx-%d%s",
					v.Hardware, f.Answers.PVRDMA.Protocol, need, sizing.HardwareNamespaces, newest)
			}),
		},
		{
			ID: "VM-HWVER-DDIO-003", Scope: checks.VM, Link: checks.InVM, Modes: row.GPUDirect, Quick: true, Fix: checks.Manual,
			Fixes:    []backends.Kind{backends.KindHardware},
			Source:   "bosh-vsphere-cpi PR 370",
			Criteria: "vmx >= 17, or nothing is passed through dynamically / - / below 17",
			Remedy:   "Upgrade the hardware version to 17 for Dynamic DirectPath.",
			Run: row.EachVM(func(_ *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				dynamic := slices.ContainsFunc(v.Passthrough, func(p string) bool { return strings.HasPrefix(p, "dynamic") })
				return row.PassIf(v.Hardware >= 17 || !dynamic, t, "vmx-%d, devices: %s", v.Hardware, cmp.Or(strings.Join(v.Passthrough, ", "), "none"))
			}),
		},
		{
			ID: "VM-HWVER-SLOT-004", Scope: checks.VM, Link: checks.InVM, Quick: true, Fix: checks.NoFix, Source: "Broadcom KB 407595",
			Criteria: "the hardware version is that of the baseline, or no PCI slots move / an EFI VM was raised to 20 or later / -",
			Remedy:   "Match interfaces in the guest by MAC: their names may have changed.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				if f.Baseline != nil {
					if was := f.Baseline.VM(v.Name); was != nil {
						return row.WarnIf(v.Firmware == "efi" && was.Hardware < 20 && v.Hardware >= 20, t, "vmx-%d, vmx-%d in the baseline, firmware %s",
							v.Hardware, was.Hardware, v.Firmware)
					}
				}
				return row.Pass(t, "vmx-%d, firmware %s", v.Hardware, v.Firmware)
			}),
		},
		{
			ID: "VM-SNAP-005", Scope: checks.VM, Link: checks.InVM, Modes: row.Direct, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   "vSphere Networking 6.5, p. 153",
			Criteria: "no snapshot / - / some", Remedy: "Delete or consolidate the snapshots first.",
			Run: row.EachVM(func(_ *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				return row.PassIf(v.Snapshots == 0, t, "snapshots: %d", v.Snapshots)
			}),
		},
		{
			ID: "VM-SNAP-P-006", Scope: checks.VM, Link: checks.InVM, Modes: row.PVRDMA, Quick: true, Fix: checks.NoFix,
			Source:   "vSphere Virtual Machine Administration 6.5, p. 110",
			Criteria: "no snapshot / some, which PVRDMA allows / -",
			Remedy:   "Be aware that reverting to a snapshot restores the old devices, but not the old memory reservation.",
			Run: row.EachVM(func(_ *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				return row.WarnIf(v.Snapshots > 0, t, "snapshots: %d", v.Snapshots)
			}),
		},
		{
			ID: "VM-MEMRES-007", Scope: checks.VM, Link: checks.InVM, Quick: true, Fixes: []backends.Kind{backends.KindMemory},
			Source:   "vSphere Networking 6.5, p. 167",
			Criteria: "all memory reserved / not reserved, with PVRDMA / not reserved, with SR-IOV or GPUDirect",
			Remedy:   "Reserve all guest memory.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				switch {
				case v.MemoryLocked && v.Reservation >= v.MemoryMB:
					return row.Pass(t, "%d MB, all reserved", v.MemoryMB)
				case f.Answers.Mode == answers.PVRDMA:
					return row.Warn(t, "%d of %d MB reserved, locked to the maximum %t", v.Reservation, v.MemoryMB, v.MemoryLocked)
				}
				return row.Fail(t, "%d of %d MB reserved, locked to the maximum %t", v.Reservation, v.MemoryMB, v.MemoryLocked)
			}),
		},
		{
			ID: "VM-PCIADDR-050", Scope: checks.VM, Link: checks.InVM, Modes: row.Direct, Quick: true, Fix: checks.Manual,
			Fixes:    []backends.Kind{backends.KindDevice, backends.KindAdapter},
			Source:   "Broadcom KB 309986, decimal address of a PCI device; VMX key pfId unverified",
			Criteria: "the VMX keys match the devices / no keys yet / they name other devices",
			Remedy:   "Remove the device and add it again, so that both agree.",
			Run:      row.EachVM(addressesAgree),
		},
		{
			ID: "VM-MEMFIT-008", Scope: checks.VM, Link: checks.InVM, Quick: true, Fix: checks.Manual, Source: "ours",
			Criteria: "runs, or its memory fits into the host's free memory / needs more than 90 % of it / does not fit",
			Remedy:   "Give the VM less memory, or move it.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				h := f.Inventory.Host(v.Host)
				switch {
				case v.Power == "poweredOn":
					return row.Pass(t, "the VM runs with %d MB", v.MemoryMB)
				case h == nil || h.MemoryMB == 0:
					return row.Waiting(t, "the memory of host %s is not known", cmp.Or(v.Host, "none"))
				}
				free := h.MemoryMB - h.MemoryUsedMB
				return row.Grade(float64(v.MemoryMB), 0.9*float64(free), float64(free), t, "%d MB to reserve, %s has %d MB free", v.MemoryMB, h.Name,
					free)
			}),
		},
	}
}

// addressesAgree compares the devices of a VM with the VMX keys that were written at its last power-on.
func addressesAgree(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
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
		return row.Pass(t, "no device with a fixed address")
	}
	if v.Extra == nil {
		return row.Waiting(t, "the VMX keys were not read")
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
		return row.Warn(t, "%s", evidence)
	}
	return row.PassIf(!slices.ContainsFunc(want, func(a string) bool { return !slices.Contains(have, a) }), t, "%s", evidence)
}
