package vm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	goversion "github.com/hashicorp/go-version"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// The VMX keys of passthrough, as VMware and NVIDIA write them. Keys are case-insensitive.
const (
	keyUse64  = "pciPassthru.use64bitMMIO"
	keySize64 = "pciPassthru.64bitMMIOSizeGB"
	keyP2P    = "pciPassthru.allowP2P"
	keyACS    = "pciPassthru.RelaxACSforP2P"
)

// vmGPUChecks examine the settings of VMs with passed-through GPUs, and the placement of VMs.
func vmGPUChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "VM-FIRMWARE-022", Scope: checks.VM, Link: checks.InVM, Modes: row.GPUDirect, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   row.GPUDirectGuide + ", section 3.1",
			Criteria: "efi / - / bios", Remedy: "Install the guest again as UEFI; never change the firmware type of an installed guest.",
			Run: row.EachVM(func(_ *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				return row.PassIf(v.Firmware == "efi", t, "firmware %s", cmp.Or(v.Firmware, "none"))
			}),
		},
		{
			ID: "VM-MMIO-ON-023", Scope: checks.VM, Link: checks.InVM, Modes: row.GPUDirect, Quick: true,
			Fixes:    []backends.Kind{backends.KindExtra},
			Source:   row.GPUDirectGuide + "; Dell KB 000199172",
			Criteria: "TRUE, or the BARs fit below 4 GB / - / absent", Remedy: "Write " + keyUse64 + " = TRUE.",
			Run: row.EachVM(windowed(func(_ *checks.Facts, t backends.Ref, v *backends.VM, w sizing.Window) checks.Answer {
				on, _ := vmx(v, keyUse64)
				return row.PassIf(row.IsTrue(on), t, "%s is %s, BARs take %.2f GB", keyUse64, cmp.Or(on, "unset"), w.TotalGB)
			})),
		},
		{
			ID: "VM-MMIO-SIZE-024", Scope: checks.VM, Link: checks.InVM, Modes: row.GPUDirect, Quick: true,
			Fixes:    []backends.Kind{backends.KindExtra},
			Source:   "Broadcom KB 323402; " + row.GPUDirectGuide + ", section 3.6",
			Criteria: "a power of two, >= what the answers choose / >= the smallest that holds the BARs / smaller, or no power of two",
			Remedy:   "Calculate the size again (rdma-setup mmio).",
			Run:      row.EachVM(windowed(mmioSize)),
		},
		{
			ID: "VM-P2P-025", Scope: checks.VM, Link: checks.InVM, Modes: row.GPUDirect, Except: row.PVRDMA, Quick: true,
			Fixes:    []backends.Kind{backends.KindExtra},
			Source:   row.ScalingGuide + "; NVIDIA GPU Operator: GPUDirect RDMA",
			Criteria: "both keys TRUE, as far as the answers ask / only allowP2P / neither",
			Remedy:   "Write " + keyP2P + " and " + keyACS + " = TRUE.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				if v.Extra == nil {
					return row.Waiting(t, "the VMX keys were not read")
				}
				p2p, _ := vmx(v, keyP2P)
				acs, _ := vmx(v, keyACS)
				g := f.Answers.GPUDirect
				if g.AllowP2P && !row.IsTrue(p2p) {
					return row.Fail(t, "%s is %s, %s is %s", keyP2P, cmp.Or(p2p, "unset"), keyACS, cmp.Or(acs, "unset"))
				}
				return row.WarnIf(g.RelaxACS && !row.IsTrue(acs), t, "%s is %s, %s is %s", keyP2P, cmp.Or(p2p, "unset"), keyACS, cmp.Or(acs, "unset"))
			}),
		},
		{
			ID: "VM-PTCOUNT-026", Scope: checks.VM, Link: checks.InVM, Modes: row.GPUDirect, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   "Broadcom KB 309986",
			Criteria: "devices within the limit of the hardware version / - / more", Remedy: "Remove devices or upgrade the hardware version.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				u1 := false
				if h := f.Inventory.Host(v.Host); h != nil {
					has, err := goversion.NewVersion(h.Version)
					u1 = err == nil && !has.LessThan(goversion.Must(goversion.NewVersion("8.0.1")))
				}
				n := len(v.Passthrough)
				for _, a := range v.Adapters {
					if a.Type == "sriov" {
						n++
					}
				}
				limit := sizing.PassthroughLimit(v.Hardware, u1)
				return row.PassIf(n <= limit, t, "%d devices, vmx-%d allows %d", n, v.Hardware, limit)
			}),
		},
		{
			ID: "VM-NESTED-027", Scope: checks.VM, Link: checks.InVM, Modes: row.GPUDirect, Quick: true, Fix: checks.Manual,
			Source:   "Broadcom KB 437651",
			Criteria: "nested virtualisation off / - / on", Remedy: "Disable nested virtualisation.",
			Run: row.EachVM(func(_ *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				return row.PassIf(!v.Nested, t, "nested virtualisation is %s", row.OnOff(v.Nested))
			}),
		},
		{
			ID: "VM-FT-028", Scope: checks.VM, Link: checks.InVM, Modes: row.Direct, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   "vSphere Networking, DirectPath I/O",
			Criteria: "fault tolerance off / - / on", Remedy: "Disable fault tolerance.",
			Run: row.EachVM(func(_ *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				return row.PassIf(!v.FaultTolerant, t, "fault tolerance is %s", row.OnOff(v.FaultTolerant))
			}),
		},
		{
			ID: "VM-EXTRAKEYS-029", Scope: checks.VM, Link: checks.InVM, Modes: row.GPUDirect, Quick: true, Fix: checks.Manual,
			Source:   row.ScalingGuide + " (quotes in its listing)",
			Criteria: "each key once, in the usual spelling, without quotes / unusual spelling / twice, or quotes in a value",
			Remedy:   "Remove duplicate VMX keys, and quotes from their values.",
			Run:      row.EachVM(extraKeys),
		},
		{
			ID: "VM-PLACEMENT-030", Scope: checks.VM, Link: checks.InVM, Quick: true, Fix: checks.Manual, Source: row.KubernetesGuide,
			Criteria: "on a selected host, with a peer on another / not on a selected host, or all VMs on one / -",
			Remedy:   "Move the VM, so that the VMs of a pair are on different hosts that are set up.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				if !slices.ContainsFunc(f.Hosts(), func(h *backends.Host) bool { return h.Name == v.Host }) {
					return row.Warn(t, "the VM is on %s, which is not selected", cmp.Or(v.Host, "none"))
				}
				found, _ := f.VMs()
				alone := len(found) > 1 && !slices.ContainsFunc(found, func(o *backends.VM) bool { return o.Host != v.Host })
				return row.WarnIf(alone, t, "the VM is on %s, all %d selected VMs there: %t", v.Host, len(found), alone)
			}),
		},
		{
			ID: "VM-TOOLS-031", Scope: checks.VM, Link: checks.InVM, Quick: true, Fix: checks.Manual, Source: row.BitfusionGuide,
			Criteria: "VMware Tools run / not running / -", Remedy: "Install open-vm-tools.",
			Run: row.EachVM(func(_ *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				return row.WarnIf(v.Power == "poweredOn" && v.Tools != "guestToolsRunning", t, "Tools: %s", cmp.Or(v.Tools, "none"))
			}),
		},
	}
}

// windowed evaluates VMs whose GPUs need a 64-bit MMIO window; the others pass.
func windowed(ask func(f *checks.Facts, t backends.Ref, v *backends.VM, w sizing.Window) checks.Answer) func(f *checks.Facts,
	t backends.Ref, v *backends.VM) checks.Answer {
	return func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
		w, err := f.Window(v)
		switch {
		case err != nil:
			return row.Unknown(t, "the window cannot be calculated: %v", err)
		case !w.Needed:
			return row.Pass(t, "BARs of %d GPUs take %.2f GB: no window is needed", len(f.GPUsOf(v)), w.TotalGB)
		case v.Extra == nil:
			return row.Waiting(t, "the VMX keys were not read")
		}
		return ask(f, t, v, w)
	}
}

func mmioSize(f *checks.Facts, t backends.Ref, v *backends.VM, w sizing.Window) checks.Answer {
	text, _ := vmx(v, keySize64)
	gb, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return row.Fail(t, "%s is %s, wanted %d", keySize64, cmp.Or(text, "unset"), w.KB)
	}
	if err := w.Check(gb); err != nil {
		return row.Fail(t, "%s: %v", keySize64, err)
	}
	want := map[answers.MMIO]int{"minimal": w.Minimal, "guide": max(w.Guide, w.Minimal)}[f.Answers.GPUDirect.MMIO]
	if n := f.Answers.GPUDirect.MMIO.GB(); n > 0 {
		want = n
	}
	want = cmp.Or(want, w.KB)
	return row.WarnIf(gb < want, t, "%s is %d, wanted %d; the BARs take %.2f GB", keySize64, gb, want, w.TotalGB)
}

// vmx returns a VMX key, case-insensitively, with its spelling.
func vmx(v *backends.VM, key string) (value, spelling string) {
	for _, k := range slices.Sorted(maps.Keys(v.Extra)) {
		if strings.EqualFold(k, key) {
			return strings.Trim(v.Extra[k], `"“” `), k
		}
	}
	return "", ""
}

func extraKeys(_ *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
	if v.Extra == nil {
		return row.Waiting(t, "the VMX keys were not read")
	}
	usual := []string{keyUse64, keySize64, keyP2P, keyACS, "pciPassthru.relaxACSforP2P"}
	seen, odd := map[string]bool{}, ""
	for _, k := range slices.Sorted(maps.Keys(v.Extra)) {
		value := v.Extra[k]
		low := strings.ToLower(k)
		switch {
		case seen[low]:
			return row.Fail(t, "%s stands twice", k)
		case strings.ContainsAny(value, `"'“”`):
			return row.Fail(t, "%s = %s contains quotes", k, value)
		case !slices.Contains(usual, k) && slices.ContainsFunc(usual, func(u string) bool { return strings.EqualFold(u, k) }):
			odd = k
		}
		seen[low] = true
	}
	return row.WarnIf(odd != "", t, "%s",
		map[bool]string{true: "odd spelling: " + odd, false: fmt.Sprintf("%d VMX keys for passthrough", len(v.Extra))}[odd != ""])
}
