package recipe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// An ApplianceWish is a deployment with additions to the appliance's own hardware.
type ApplianceWish struct {
	backends.Deployment
	RDMA []string // port groups of PVRDMA adapters that are added before the first start
}

// The maximum number of adapters: VMware's guide "PVRDMA and vSphere Bitfusion" (2021, Creating a Bitfusion Server) allows its
// appliance four, ESXi any VM ten.
const (
	maxBitfusion = 4
	maxAdapters  = 10
)

// MaxAdapters returns how many adapters the appliance may have.
func MaxAdapters(a backends.Appliance) int {
	if strings.Contains(strings.ToLower(a.Product+" "+a.Name), "bitfusion") {
		return maxBitfusion
	}
	return maxAdapters
}

// CheckAppliance returns a plan.Refused with all reasons against a wish in this inventory.
func CheckAppliance(a backends.Appliance, w ApplianceWish, inv *backends.Inventory) error {
	var out []plan.Refusal
	bad := func(hint, format string, args ...any) {
		out = append(out, plan.Refusal{Target: backends.VMRef(w.Name), Why: fmt.Sprintf(format, args...), Remedy: hint})
	}
	if inv.VM(w.Name) != nil {
		bad("choose another with --name", "a VM %s exists already", w.Name)
	}
	for _, n := range slices.Sorted(maps.Keys(w.Networks)) {
		if !slices.Contains(a.Networks, n) {
			bad(didYouMean(n, a.Networks), "the appliance has no network %q", n)
		}
	}
	for _, n := range a.Networks {
		if w.Networks[n] == "" {
			bad(fmt.Sprintf("add --network %q", n+"=PORT GROUP"), "no port group is given for the appliance's network %q", n)
		}
	}
	applianceAdapters(a, w, inv.PortGroups, bad)
	applianceProperties(a, w, bad)
	if w.Configuration != "" && !slices.Contains(a.Configurations, w.Configuration) {
		bad(didYouMean(w.Configuration, a.Configurations), "the appliance has no configuration %q", w.Configuration)
	}
	if len(out) > 0 {
		return &plan.Refused{Refusals: out}
	}
	return nil
}

func didYouMean(name string, known []string) string {
	if n := answers.Nearest(name, known); n != "" {
		return "did you mean " + n + "?"
	}
	if len(known) == 0 {
		return "it has none"
	}
	return "it has: " + strings.Join(known, ", ")
}

// applianceAdapters checks the guide's rules: the first adapter must not be a PVRDMA one, and each must be in a network of its
// own, because Linux answers for all addresses of a subnet on any of its interfaces.
func applianceAdapters(a backends.Appliance, w ApplianceWish, groups []backends.PortGroup, bad func(string, string, ...any)) {
	if n, most := len(a.Adapters)+len(w.RDMA), MaxAdapters(a); n > most {
		bad("leave some --rdma out", "%d adapters are more than the %d that it may have", n, most)
	}
	if len(a.Adapters) == 0 && len(w.RDMA) > 0 {
		bad("use an appliance with a network adapter", "its first adapter would be a PVRDMA one, by which it is not managed")
	}
	seen := map[string]string{}
	for _, n := range a.Adapters {
		seen[w.Networks[n]] = "network " + n
	}
	for _, g := range w.RDMA {
		if who, taken := seen[g]; taken {
			bad("give every adapter a port group and a subnet of its own", "port group %s is asked for twice: for PVRDMA and by %s", g, who)
		}
		seen[g] = "another PVRDMA adapter"
		i := slices.IndexFunc(groups, func(p backends.PortGroup) bool { return p.Name == g })
		switch {
		case i < 0:
			var known []string
			for _, p := range groups {
				if !p.Uplink {
					known = append(known, p.Name)
				}
			}
			bad(didYouMean(g, known), "there is no distributed port group %s", g)
		case groups[i].Uplink:
			bad("name a port group for VMs", "%s is the uplink port group of %s", g, groups[i].Switch)
		case groups[i].Free == 0:
			bad("give it more ports, or elastic ones", "port group %s has no free port", g)
		}
	}
}

func applianceProperties(a backends.Appliance, w ApplianceWish, bad func(string, string, ...any)) {
	var known []string
	for _, p := range a.Properties {
		known = append(known, p.Key)
		value, given := w.Properties[p.Key]
		switch {
		case given && value == "" && p.Secret:
			bad(fmt.Sprintf("give it a value (--property %s=@FILE), or leave it out", p.Key), "property %s (%s) is a password and empty", p.Key,
				p.Label)
		case value != "" && !p.Asked:
			bad("leave it out", "property %s cannot be set by users", p.Key)
		case value == "" && p.Needed:
			bad(fmt.Sprintf("add --property %s=VALUE (or =@FILE)", p.Key), "property %s (%s) must not be empty: the VM would not start", p.Key,
				p.Label)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.Properties)) {
		if !slices.Contains(known, key) {
			bad(didYouMean(key, known), "the appliance has no property %q", key)
		}
	}
}

// roceV2 is the first hardware version that supports RoCE v2 (KB 328676).
const roceV2 = 14

// ApplianceChanges returns the settings for the VM's PVRDMA adapters, in order: the hardware version that RoCE v2 needs, all
// memory reserved, then one adapter per port group.
func ApplianceChanges(a backends.Appliance, w ApplianceWish, inv *backends.Inventory) []backends.Assignment {
	if len(w.RDMA) == 0 {
		return nil
	}
	vm := backends.VMRef(w.Name)
	at := func(kind backends.Kind, name string, to any) backends.Assignment {
		return backends.Assignment{Setting: backends.Setting{Target: vm, Kind: kind, Name: name}, To: backends.ValueOf(to)}
	}
	var out []backends.Assignment
	if a.Hardware < roceV2 {
		out = append(out, at(backends.KindHardware, "", roceV2))
	}
	out = append(out, at(backends.KindMemory, "", backends.MemorySpec{Locked: true, ReservationMB: a.MemoryMB}))
	for _, g := range w.RDMA {
		spec := backends.AdapterSpec{Type: "pvrdma", PortGroup: g, Protocol: "rocev2", Start: true}
		if p := inv.PortGroup(g); p != nil {
			spec.Switch = p.Switch
		}
		out = append(out, at(backends.KindAdapter, g, spec))
	}
	return out
}

// ApplianceSummary describes a deployment without values of secret properties.
func ApplianceSummary(a backends.Appliance, w ApplianceWish, inv *backends.Inventory, manifest, signed bool) string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "  %-11s%s\n", label, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "VM %s from %s\n", w.Name, strings.TrimSpace(a.Name+" "+a.Version))
	line("hardware", "%d CPUs, %s of memory, %s to send, disks of %s (%s)", a.CPUs, backends.SizeText(a.MemoryMB<<20),
		backends.SizeText(a.Bytes), backends.SizeText(a.DiskBytes), w.Disk)
	if w.Host != "" {
		line("host", "%s", w.Host[strings.LastIndex(w.Host, "/")+1:])
	}
	for i, n := range a.Adapters {
		plain := ""
		if carriesPVRDMA(inv, w.Networks[n]) {
			plain = "; other VMs have PVRDMA adapters there, this one is an ordinary adapter without RDMA: see --rdma"
		}
		line(fmt.Sprintf("adapter %d", i+1), "%s (its network %s)%s", w.Networks[n], n, plain)
	}
	for i, g := range w.RDMA {
		line(fmt.Sprintf("adapter %d", len(a.Adapters)+i+1), "%s, PVRDMA, RoCE v2; all memory of the VM is reserved for it", g)
	}
	for _, p := range a.Properties {
		switch value := w.Properties[p.Key]; {
		case value != "" && p.Secret:
			line("property", "%s = (not shown)", p.Key)
		case value != "":
			line("property", "%s = %s", p.Key, value)
		case p.Asked && p.Default == "":
			line("property", "%s stays empty (%s)", p.Key, p.Label)
		}
	}
	switch {
	case !manifest:
		line("note", "the package has no manifest: its integrity cannot be checked")
	case !signed:
		line("note", "the package is not signed: its manifest shows that it is complete, but not who created it")
	default:
		line("note", "the package is signed; rdma-setup does not verify the signature, ovftool does")
	}
	if MaxAdapters(a) == maxBitfusion {
		line("note", "VMware has ended Bitfusion; it asks for 50 us of latency at most between server and client (rdma-setup bench)")
	}
	memory := ""
	if len(w.RDMA) > 0 {
		memory = "; its memory is reserved from its first start on"
	}
	line("cost", "no reboot, no vMotion: a new VM, off%s", memory)
	return b.String()
}

// carriesPVRDMA reports whether VMs have PVRDMA adapters on a port group.
func carriesPVRDMA(inv *backends.Inventory, group string) bool {
	return slices.ContainsFunc(inv.VMs, func(v backends.VM) bool {
		return slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.Type == "pvrdma" && a.PortGroup == group })
	})
}
