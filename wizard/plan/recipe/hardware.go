package recipe

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// hardware returns the virtual hardware version that a VM should have, and why it differs from its own. It refuses a version that
// is too old for the adapter, cannot be reached, or is not supported by every host of the cluster: powering a VM off for an
// adapter that vCenter then refuses is an unnecessary outage.
func (b *builder) hardware(v *draft.VM) (to int, why string) {
	ref := backends.VMRef(v.Name)
	dynamic := b.Answers.GPUs() && b.Answers.GPUDirect.Backing == backends.DynamicBacking
	need := sizing.HardwareFor(b.Answers.AdapterType(), b.Answers.PVRDMA.Protocol, false)
	if need > 0 {
		why = fmt.Sprintf("PVRDMA with %s needs hardware version %d or later, it has %d (KB 328676)", b.Answers.PVRDMA.Protocol, need, v.Hardware)
	}
	most := sizing.HardwareFor(b.Answers.AdapterType(), b.Answers.PVRDMA.Protocol, dynamic)
	to = v.Wish.Hardware.From(v.Hardware, most)
	switch v.Wish.Hardware {
	case answers.HardwareKeep, "":
		if v.Hardware < need {
			b.Refuse(ref, "VM-HWVER-002",
				fmt.Sprintf("Set hardware: upgrade for this VM in the answers (to vmx-%d, which cannot be undone), or upgrade it in vCenter.", need),
				"has hardware version vmx-%d; PVRDMA with %s needs vmx-%d or later (KB 328676)", v.Hardware, b.Answers.PVRDMA.Protocol, need)
		}
		return v.Hardware, ""
	case answers.HardwareUpgrade:
		if most > need {
			why = fmt.Sprintf("dynamic devices need hardware version %d or later, it has %d", most, v.Hardware)
		}
	default:
		if to < v.Hardware || to < need {
			b.Refuse(ref, "VM-HWVER-002", fmt.Sprintf("Name version %d or later, or write keep or upgrade.", max(need, v.Hardware)),
				"cannot get hardware version vmx-%d: it has vmx-%d, and a version cannot be lowered; the mode needs vmx-%d or later", to, v.Hardware,
				max(need, 4))
			return v.Hardware, ""
		}
		if to > need {
			why = fmt.Sprintf("the answers ask for it; it has %d", v.Hardware)
		}
	}
	if to == v.Hardware {
		return to, ""
	}
	if host, limit := b.hardwareLimit(v); to > limit {
		b.Refuse(ref, "VM-HWVER-002", "Name a version that every host of the cluster runs.",
			"would not run on %s with hardware version vmx-%d: that host runs vmx-%d at most (KB 315655)", host, to, limit)
	}
	return to, why
}

// pvrdmaLacks returns what PVRDMA does not support on a hardware version.
func pvrdmaLacks(version int) string {
	peers := fmt.Sprintf(
		"its peers must be PVRDMA VMs: native endpoints (bare-metal peers) need vmx-%d and ESXi 7.0 Update 1 (vms[].hardware: %[1]d)",
		sizing.HardwareNativeEndpoints)
	if version >= sizing.HardwareNamespaces {
		return fmt.Sprintf("on vmx-%d %s", version, peers)
	}
	return fmt.Sprintf("on vmx-%d PVRDMA has no namespaces, which need vmx-%d, and %s", version, sizing.HardwareNamespaces, peers)
}

// slotsMove reports whether an upgrade changes the PCI slots of a VM's devices (Broadcom KB 407595).
func slotsMove(v *draft.VM, to int) bool {
	return v.Firmware == "efi" && v.Hardware < sizing.HardwareSlots && to >= sizing.HardwareSlots
}

// nicNames plans that the guest keeps the names of its interfaces by their MACs, before an upgrade would rename them, and returns
// the ids of these changes. It objects if that is not possible.
func (b *builder) nicNames(v *draft.VM, to int) (ids []string) {
	why := ""
	var pinned []backends.Interface
	switch g := v.Guest; {
	case !v.Wish.Guest.Managed():
		why = "guest.manage is false"
	case !v.On() || g == nil || g.Error != "":
		why = "the guest cannot be read while the VM is off"
	default:
		for _, i := range g.Interfaces {
			twin := slices.IndexFunc(pinned, func(p backends.Interface) bool { return strings.EqualFold(p.MAC, i.MAC) })
			switch {
			case i.Virtual:
				continue
			case kernelNamed.MatchString(i.Name):
				why = i.Name + " is a name that the kernel may also assign to other interfaces (systemd.link(5))"
			case twin >= 0: // members of a bond
				why = fmt.Sprintf("%s and %s have one MAC", pinned[twin].Name, i.Name)
			case !slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return strings.EqualFold(a.MAC, i.MAC) }):
				why = fmt.Sprintf("%s has the MAC %s, which is none of its adapters'", i.Name, i.MAC)
			}
			pinned = append(pinned, i)
		}
		if len(pinned) == 0 {
			why = "it shows none"
		}
	}
	if why != "" {
		b.Object(backends.VMRef(v.Name), "VM-HWVER-SLOT-004",
			fmt.Sprintf("Name a version below %d, or keep the names yourself and add --skip VM-HWVER-SLOT-004.", sizing.HardwareSlots),
			"would be upgraded to vmx-%d, which moves PCI devices of VMs with EFI firmware to new slots; the names of its guest's interfaces "+
				"cannot be kept: %s (KB 407595)", to, why)
		return nil
	}
	for _, i := range pinned {
		s := backends.Setting{Target: backends.GuestRef(v.Name), Kind: backends.KindNICName, Name: strings.ToLower(i.MAC)}
		b.Add(plan.Change{Setting: s, From: backends.Absent, To: backends.ValueOf(i.Name),
			Why: fmt.Sprintf("vmx-%d moves its adapter to another PCI slot, after which the guest would rename %s (KB 407595)", to, i.Name)})
		ids = append(ids, s.ID())
	}
	return ids
}

// kernelNamed matches a name that the kernel assigns by itself: a .link file with it races with the kernel (systemd.link(5),
// Name=).
var kernelNamed = regexp.MustCompile(`^(eth|wlan|wwan|ib)[0-9]+$`)

// hardwareLimit returns the newest hardware version that every host of the VM's cluster supports, with the host that limits it.
func (b *builder) hardwareLimit(v *draft.VM) (host string, limit int) {
	own := b.Inventory.Host(v.Host)
	for _, h := range b.Inventory.Hosts {
		if own != nil && h.Name != own.Name && (own.Cluster == "" || h.Cluster != own.Cluster) {
			continue
		}
		if n := sizing.HardwareLimit(h.Version, h.Build); n > 0 && (host == "" || n < limit) {
			host, limit = h.Name, n
		}
	}
	return host, limit
}
