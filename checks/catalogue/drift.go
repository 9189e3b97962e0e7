package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
)

// drifts are the comparisons with the baseline, except for rows that only compare with the baseline (HOST-PNIC-MAC-005,
// VM-HWVER-SLOT-004, GST-NAME-017).
func drifts() map[string]checks.Drift {
	return map[string]checks.Drift{
		"VC-CONN-001": func(f *checks.Facts, _ backends.Ref) string {
			return was("certificate", f.Inventory.VCenter.Thumbprint, f.Baseline.VCenter.Thumbprint)
		},
		"CL-VER-002": hostDrift("ESXi", func(_ *checks.Facts, h *backends.Host) string {
			return strings.TrimSpace(h.Version + " build " + h.Build)
		}),
		"CL-SLOT-007":          hostDrift("GPUs at", gpuSlots),
		"CL-PARAM-009":         parameterDrift,
		"HOST-POWER-009":       hostDrift("power policy", func(_ *checks.Facts, h *backends.Host) string { return h.PowerPolicy }),
		"HOST-PNIC-STATE-003":  linksLost,
		"HOST-PNIC-SPEED-004":  nicDrift("speed", func(n *backends.NIC) string { return speed(n.SpeedMbps) }),
		"HOST-PNIC-DRIVER-006": nicDrift("driver", func(n *backends.NIC) string { return strings.TrimSpace(n.Driver + " " + n.DriverVersion) }),

		"HOST-PNIC-FWMATRIX-007": nicDrift("firmware", func(n *backends.NIC) string { return n.Firmware }),
		"HOST-VF-COUNT-010":      nicDrift("VFs", vfs),
		"HOST-VMKNIC-SET-001": hostDrift(backends.VMKNICOption,
			func(_ *checks.Facts, h *backends.Host) string { return h.Options[backends.VMKNICOption] }),
		"HOST-VMKNIC-EXIST-002": vmkDrift("address", func(v *backends.VMKernelNIC) string { return fmt.Sprintf("%s/%d", v.IP, v.PrefixLen) }),
		"HOST-VMKNIC-MTU-006":   vmkDrift("MTU", func(v *backends.VMKernelNIC) string { return strconv.Itoa(v.MTU) }),
		"HOST-FW-ALLOW-008":     hostDrift("allowed", allowed),

		"DVS-VERSION-002": drift("version", backends.TypeSwitch, (*backends.Inventory).Switch, func(_ *checks.Facts, s *backends.Switch) string {
			return s.Version
		}),
		"DVS-MEMBER-003": memberDrift,
		"DVS-MTU-006": drift("MTU", backends.TypeSwitch, (*backends.Inventory).Switch,
			func(_ *checks.Facts, s *backends.Switch) string { return strconv.Itoa(s.MTU) }),
		"DVS-PG-VLAN-008": drift("VLAN", backends.TypePortGroup, (*backends.Inventory).PortGroup,
			func(_ *checks.Facts, g *backends.PortGroup) string { return g.VLAN }),

		"VM-NIC-DVS-019": drift("RDMA adapters", backends.TypeVM, (*backends.Inventory).VM, adapters),

		"GST-OS-001":  guestDrift("kernel", func(_ *checks.Facts, g *backends.Guest) string { return g.Kernel }),
		"GST-MTU-012": guestDrift("MTU", guestMTUs),
		"GST-GID-019": guestDrift("GIDs", guestGIDs),
	}
}

// was returns the value in the baseline if both values are known and differ.
func was(what, now, then string) string {
	if now == "" || then == "" || now == then {
		return ""
	}
	return what + " " + then
}

// drift compares a value of a target of one type, which both inventories have.
func drift[T any](what string, of backends.TargetType, find func(inv *backends.Inventory, name string) *T,
	is func(*checks.Facts, *T) string) checks.Drift {
	return func(f *checks.Facts, t backends.Ref) string {
		now, then := find(f.Inventory, t.Name), find(f.Baseline, t.Name)
		if t.Type != of || now == nil || then == nil {
			return ""
		}
		return was(what, is(f, now), is(f, then))
	}
}

func hostDrift(what string, of func(*checks.Facts, *backends.Host) string) checks.Drift {
	return drift(what, backends.TypeHost, (*backends.Inventory).Host, of)
}

// nicDrift compares the chosen pNIC with the baseline entry of the same MAC; a new card has its own row.
func nicDrift(what string, of func(*backends.NIC) string) checks.Drift {
	return func(f *checks.Facts, t backends.Ref) string {
		h, then := f.Inventory.Host(t.Name), f.Baseline.Host(t.Name)
		if t.Type != backends.TypeHost || h == nil || then == nil {
			return ""
		}
		n := f.NIC(h)
		if n == nil {
			return ""
		}
		i := slices.IndexFunc(then.NICs, func(old backends.NIC) bool { return strings.EqualFold(old.MAC, n.MAC) })
		if i < 0 {
			return ""
		}
		return was(what, of(n), of(&then.NICs[i]))
	}
}

// vmkDrift compares the vmknic of PVRDMA's control plane.
func vmkDrift(what string, of func(*backends.VMKernelNIC) string) checks.Drift {
	return hostDrift(what, func(f *checks.Facts, h *backends.Host) string {
		if v := h.VMK(f.VMKNIC(h)); v != nil {
			return v.Device + " " + of(v)
		}
		return ""
	})
}

func guestDrift(what string, of func(*checks.Facts, *backends.Guest) string) checks.Drift {
	return func(f *checks.Facts, t backends.Ref) string {
		now, then := f.Guest(t.Name), f.Baseline.Guest(t.Name)
		if t.Type != backends.TypeGuest || now == nil || then == nil || now.Error != "" || then.Error != "" {
			return ""
		}
		return was(what, of(f, now), of(f, then))
	}
}

// linksLost reports a link that is up but went down in between.
func linksLost(f *checks.Facts, t backends.Ref) string {
	h := f.Inventory.Host(t.Name)
	if t.Type != backends.TypeHost || h == nil {
		return ""
	}
	n := f.NIC(h)
	if n == nil || f.LinksLost[h.Name][n.Device] == 0 {
		return ""
	}
	if times := f.LinksLost[h.Name][n.Device]; times > 1 {
		return fmt.Sprintf("the link went down %d times since", times)
	}
	return "the link went down once since"
}

// memberDrift compares the uplinks of a host on the switch.
func memberDrift(f *checks.Facts, t backends.Ref) string {
	uplinks := func(inv *backends.Inventory) string {
		sw := inv.Switch(f.Answers.Switch.Name)
		if sw == nil {
			return ""
		}
		return strings.Join(sw.Members[t.Name].PNICs, ", ")
	}
	return was("uplinks", uplinks(f.Inventory), uplinks(f.Baseline))
}

// parameterDrift names the module parameters whose values differ. The current values come from esxcli.
func parameterDrift(f *checks.Facts, t backends.Ref) string {
	then := f.Baseline.Host(t.Name)
	h := f.Inventory.Host(t.Name)
	if t.Type != backends.TypeHost || then == nil || then.System == nil || h == nil || h.System == nil {
		return ""
	}
	var out []string
	for module, now := range h.System.Modules {
		params, old := now.Value.Params, then.System.Module(module).Params
		if !now.Known() || !then.System.Modules[module].Known() {
			continue
		}
		both := maps.Collect(maps.All(old))
		maps.Copy(both, params)
		for name := range both {
			if before := plainValue(old[name]); before != plainValue(params[name]) {
				out = append(out, fmt.Sprintf("%s %s %s", module, name, cmp.Or(before, "unset")))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// plainValue returns a parameter without quotes and blanks, which differ between builds.
func plainValue(s string) string { return strings.ReplaceAll(strings.Trim(s, `" `), " ", "") }

// speed returns "" if it is not known: the rows compare only known values.
func speed(mbps int) string {
	if mbps == 0 {
		return ""
	}
	return backends.Speed(mbps)
}

func vfs(n *backends.NIC) string {
	if n.SRIOV == nil {
		return ""
	}
	return strconv.Itoa(n.SRIOV.VFs)
}

func gpuSlots(f *checks.Facts, h *backends.Host) string {
	if !f.Answers.GPUs() {
		return ""
	}
	out := backends.Each(h.GPUs, func(g backends.GPU) string { return g.PCI })
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func allowed(_ *checks.Facts, h *backends.Host) string {
	r, known := h.Firewall[checks.PVRDMARuleset]
	switch {
	case !known:
		return ""
	case r.AllIP:
		return "all addresses"
	}
	list := slices.Sorted(slices.Values(r.Networks))
	return cmp.Or(strings.Join(list, ", "), "none")
}

func adapters(_ *checks.Facts, v *backends.VM) string {
	var out []string
	for _, a := range v.Adapters {
		if a.Type == "pvrdma" || a.Type == "sriov" {
			out = append(out, fmt.Sprintf("%s on %s", strings.ToLower(a.MAC), a.PortGroup))
		}
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}

// rdmaInterfaces returns the interfaces of a guest's RDMA ports, identified by MAC.
func rdmaInterfaces(f *checks.Facts, g *backends.Guest, of func(*backends.Interface) string) string {
	v := f.Inventory.VM(g.VM)
	if v == nil {
		return ""
	}
	var out []string
	for _, p := range f.Ports(v) {
		if i := p.Netdev(g); i != nil {
			out = append(out, of(i))
		}
	}
	return strings.Join(out, ", ")
}

func guestMTUs(f *checks.Facts, g *backends.Guest) string {
	return rdmaInterfaces(f, g, func(i *backends.Interface) string { return strconv.Itoa(i.MTU) })
}

// guestGIDs returns the GID indexes that tests and applications use for RoCE v2 over IPv4.
func guestGIDs(f *checks.Facts, g *backends.Guest) string {
	v := f.Inventory.VM(g.VM)
	if v == nil {
		return ""
	}
	var out []string
	for _, p := range f.Ports(v) {
		d := p.Verbs(g)
		if d == nil {
			continue
		}
		for _, id := range d.GIDs {
			if id.IPv4 != "" && strings.Contains(id.Type, "v2") {
				out = append(out, fmt.Sprintf("%s at index %d", id.IPv4, id.Index))
			}
		}
	}
	return strings.Join(out, ", ")
}
