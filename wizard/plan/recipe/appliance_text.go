package recipe

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

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
func ApplianceSummary(a backends.Appliance, w ApplianceWish, manifest, signed bool) string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "  %-11s%s\n", label, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "VM %s from %s\n", w.Name, strings.TrimSpace(a.Name+" "+a.Version))
	line("hardware", "%d CPUs, %s of memory, %s to send, disks of %s (%s)", a.CPUs, backends.SizeText(a.MemoryMB<<20), backends.SizeText(a.Bytes), backends.SizeText(a.DiskBytes), w.Disk)
	if w.Host != "" {
		line("host", "%s", w.Host[strings.LastIndex(w.Host, "/")+1:])
	}
	for i, n := range a.Adapters {
		line(fmt.Sprintf("adapter %d", i+1), "%s (its network %s)", w.Networks[n], n)
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
	line("cost", "no reboot, no vMotion: a new VM, off; its memory is reserved from its first start on")
	return b.String()
}
