package vm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// vmAdapterChecks examine the network adapters of the VMs.
func vmAdapterChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "VM-NIC-FIRST-014", Scope: checks.VM, Link: checks.InVM, Modes: row.PVRDMA, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   row.BitfusionGuide + ", Creating a Bitfusion Server",
			Criteria: "the first adapter is not PVRDMA / - / it is, or there is none", Remedy: "Add a vmxnet3 adapter as the first one.",
			Run: row.EachVM(func(_ *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				if len(v.Adapters) == 0 {
					return row.Fail(t, "the VM has no network adapter")
				}
				return row.PassIf(v.Adapters[0].Type != "pvrdma", t, "the first adapter is a %s", v.Adapters[0].Type)
			}),
		},
		{
			ID: "VM-NIC-MAX-015", Scope: checks.VM, Link: checks.InVM, Modes: row.PVRDMA, Quick: true, Fix: checks.Manual,
			Source: row.BitfusionGuide +
				"; vSphere Virtual Machine Administration, Hardware Features Available with Virtual Machine Compatibility Settings",
			Criteria: "at most 10 adapters / - / more", Remedy: "Remove adapters.",
			Run: row.EachVM(func(_ *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				return row.PassIf(len(v.Adapters) <= 10, t, "%d adapters (a Bitfusion appliance takes 4, a VM 10)", len(v.Adapters))
			}),
		},
		{
			ID: "VM-NIC-PVCOUNT-016", Scope: checks.VM, Link: checks.InVM, Modes: row.PVRDMA, Quick: true, Fix: checks.Manual,
			Source: "Broadcom KB 328676; vSphere Virtual Machine Administration 7.0, Hardware Features Available with Virtual Machine " +
				"Compatibility Settings",
			Criteria: "one PVRDMA adapter, from ESXi 7.0 U2 on up to ten / several on one port group / more than the host allows",
			Remedy:   "Remove the additional adapters.",
			Run:      row.EachVM(pvrdmaCount),
		},
		{
			ID: "VM-NIC-PROTO-017", Scope: checks.VM, Link: checks.InVM, Modes: row.PVRDMA, Quick: true,
			Fixes:    []backends.Kind{backends.KindAdapter},
			Source:   "vSphere API",
			Criteria: "all adapters use the planned protocol / - / mixed", Remedy: "Set the same device protocol on every VM.",
			Run: eachAdapter("pvrdma", func(f *checks.Facts, t backends.Ref, _ *backends.VM, a *backends.Adapter) checks.Answer {
				return row.PassIf(a.Protocol == f.Answers.PVRDMA.Protocol, t, "%s: protocol %s, wanted %s", a.Label, cmp.Or(a.Protocol, "none"),
					f.Answers.PVRDMA.Protocol)
			}),
		},
		{
			ID: "VM-NIC-CONNECT-018", Scope: checks.VM, Link: checks.InVM, Quick: true, Fixes: []backends.Kind{backends.KindAdapter},
			Source:   row.BitfusionGuide + ", step 6",
			Criteria: "connected and connected at power-on / at power-on only / no", Remedy: "Connect the adapter, also at power-on.",
			Run: eachAdapter("pvrdma sriov", func(_ *checks.Facts, t backends.Ref, v *backends.VM, a *backends.Adapter) checks.Answer {
				if !a.Start {
					return row.Fail(t, "%s is not connected at power-on", a.Label)
				}
				return row.WarnIf(!a.Connected && v.Power == "poweredOn", t, "%s connected %t, at power-on %t", a.Label, a.Connected, a.Start)
			}),
		},
		{
			ID: "VM-NIC-DVS-019", Scope: checks.VM, Link: checks.InVM, Modes: row.PVRDMA, Quick: true,
			Fixes:    []backends.Kind{backends.KindAdapter},
			Source:   row.KubernetesGuide,
			Criteria: "a PVRDMA adapter is connected to each planned port group of the DVS / - / connected elsewhere, or there is none",
			Remedy:   "Reconnect the adapter to the right port group.",
			Run:      row.EachVM(onGroups),
		},
		{
			ID: "VM-NIC-GUESTOS-032", Scope: checks.VM, Link: checks.InVM, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   "vSphere Web Services API, GuestOsDescriptor.supportedEthernetCard",
			Criteria: "vCenter supports the adapter for the guest OS and hardware version, or the VM has one / it does not / -",
			Remedy:   "Set the VM's guest OS to what runs in it, or skip this check: the adapter works in guests that vCenter does not list.",
			Run:      row.EachVM(guestOS),
		},
		{
			ID: "VM-SRIOV-MTU-020", Scope: checks.VM, Link: checks.InVM, Modes: row.SRIOV, Quick: true,
			Fixes:    []backends.Kind{backends.KindAdapter},
			Source:   row.SRIOVStudy + "; vhpc-toolkit",
			Criteria: "the guest may change the MTU / it may not, and 1500 is planned / it may not", Remedy: "Allow the guest to change the MTU.",
			Run: eachAdapter("sriov", func(f *checks.Facts, t backends.Ref, _ *backends.VM, a *backends.Adapter) checks.Answer {
				if a.GuestMTU {
					return row.Pass(t, "%s: the guest may change the MTU", a.Label)
				}
				if f.Answers.Switch.MTU <= 1500 {
					return row.Warn(t, "%s: the guest may not change the MTU, and %d is planned", a.Label, f.Answers.Switch.MTU)
				}
				return row.Fail(t, "%s: the guest may not change the MTU, and %d is planned", a.Label, f.Answers.Switch.MTU)
			}),
		},
		{
			ID: "VM-SRIOV-PF-021", Scope: checks.VM, Link: checks.InVM, Modes: row.SRIOV, Quick: true,
			Fixes:    []backends.Kind{backends.KindAdapter},
			Source:   "Broadcom KB 309346",
			Criteria: "the PF of the adapter is on this host and has VFs / - / it is not, or there is no adapter", Remedy: "Choose the PF again.",
			Run: row.EachVM(pfIsHere),
		},
	}
}

func guestOS(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
	kind := f.Answers.AdapterType()
	supported, known := v.SupportsAdapter(kind)
	switch {
	case kind == "":
		return row.Pass(t, "the VM gets the card itself, and no adapter")
	case slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.Type == kind }):
		return row.Pass(t, "the VM has a %s adapter", kind)
	case f.Hardware(v) != v.Hardware:
		return row.Waiting(t, "vmx-%d is upgraded to vmx-%d first, and the adapters of that version were not read", v.Hardware, f.Hardware(v))
	case !known:
		return row.Waiting(t, "vCenter did not list the adapters for guest OS %s", cmp.Or(v.GuestID, "unknown"))
	}
	return row.WarnIf(!supported, t, "guest OS %s on vmx-%d: vCenter lists %s", v.GuestID, v.Hardware,
		cmp.Or(strings.Join(v.GuestAdapters, ", "), "no adapters"))
}

// eachAdapter evaluates every adapter of the types (separated by blanks) of every selected VM; a VM without one has its own row
// (VM-NIC-DVS-019, VM-SRIOV-PF-021).
func eachAdapter(types string, ask func(f *checks.Facts, t backends.Ref, v *backends.VM,
	a *backends.Adapter) checks.Answer) func(*checks.Facts) []checks.Answer {
	return func(f *checks.Facts) []checks.Answer {
		found, _ := f.VMs()
		var out []checks.Answer
		for _, v := range found {
			for i := range v.Adapters {
				if a := &v.Adapters[i]; a.Type != "" && strings.Contains(types, a.Type) {
					out = row.Said(out, ask(f, backends.VMRef(v.Name), v, a))
				}
			}
		}
		return out
	}
}

func pvrdmaCount(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
	limit := 1
	if h := f.Inventory.Host(v.Host); h != nil {
		limit = sizing.AdaptersForPVRDMA(h.Version)
	}
	n, on := 0, map[string]int{}
	for _, a := range v.Adapters {
		if a.Type == "pvrdma" {
			n++
			on[a.PortGroup]++
		}
	}
	if n > limit {
		return row.Fail(t, "%d PVRDMA adapters, but the host allows %d", n, limit)
	}
	for group, times := range on {
		if times > 1 {
			return row.Warn(t, "%d PVRDMA adapters on %s", times, group)
		}
	}
	return row.Pass(t, "%d PVRDMA adapters, the host allows %d", n, limit)
}

func onGroups(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
	want := []string{f.Answers.Switch.PortGroup}
	if nets := f.Networks(v.Name); len(nets) > 0 {
		want = nil
		for _, n := range nets {
			want = append(want, n.PortGroup)
		}
	}
	var seen []string
	for _, group := range want {
		ok := false
		for _, a := range v.Adapters {
			if a.Type == "pvrdma" {
				ok = ok || a.PortGroup == group && a.Switch == f.Answers.Switch.Name
				seen = append(seen, a.PortGroup+" of "+cmp.Or(a.Switch, "none"))
			}
		}
		if !ok {
			return row.Fail(t, "no PVRDMA adapter on %s of %s; there are: %s", group, f.Answers.Switch.Name,
				cmp.Or(strings.Join(seen, ", "), "none"))
		}
	}
	return row.Pass(t, "PVRDMA adapters on %s of %s", strings.Join(want, ", "), f.Answers.Switch.Name)
}

func pfIsHere(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
	a, h := f.Adapter(v, "sriov"), f.Inventory.Host(v.Host)
	switch {
	case a == nil:
		return row.Fail(t, "the VM has no SR-IOV adapter")
	case h == nil:
		return row.Waiting(t, "the VM's host is not known")
	case a.PF == "":
		return row.Pass(t, "%s leaves the choice of the PF to ESXi", a.Label)
	}
	for _, n := range h.NICs {
		if n.PCI == a.PF {
			return row.PassIf(n.SRIOV != nil && n.SRIOV.VFs > 0, t, "%s has a VF of %s (%s) on %s", a.Label, n.Device, a.PF, h.Name)
		}
	}
	return row.Fail(t, "%s needs a VF of %s, which %s does not have", a.Label, a.PF, h.Name)
}
