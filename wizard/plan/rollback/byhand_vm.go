package rollback

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

const off = "The VM must be off."

func vmByHand(c plan.Change) (string, []string) {
	vm := word(c.Target.Name)
	change := func(format string, args ...any) []string {
		return []string{"govc vm.change -vm " + vm + " " + fmt.Sprintf(format, args...)}
	}
	var text string
	var number int64
	var on bool
	switch c.Kind {
	case backends.KindMemory:
		var was backends.MemorySpec
		if c.From.Decode(&was) == nil {
			return off, change("-memory-pin=%t -mem.reservation=%d", was.Locked, was.ReservationMB)
		}
	case backends.KindCPU:
		if c.From.Decode(&number) == nil {
			return off, change("-cpu.reservation=%d", number)
		}
	case backends.KindLatency:
		if c.From.Decode(&text) == nil {
			return off, change("-latency %s", word(text))
		}
	case backends.KindNested:
		if c.From.Decode(&on) == nil {
			return off, change("-nested-hv-enabled=%t", on)
		}
	case backends.KindExtra:
		if c.From.IsAbsent() {
			return off + " The key did not exist; an empty value removes it.", change("-e %s", word(c.Name+"="))
		}
		if c.From.Decode(&text) == nil {
			return off, change("-e %s", word(c.Name+"="+text))
		}
	case backends.KindAdapter:
		if c.From.IsAbsent() {
			return off + " The adapter on port group " + c.Name +
					" did not exist. Find its name (ethernet-N) in the list, then remove it; vms.json has the adapters from before.",
				[]string{"govc device.info -vm " + vm + " 'ethernet-*'", "govc device.remove -vm " + vm + " ethernet-N"}
		}
		return off + " The adapter on port group " + c.Name + " was: " + c.From.String() + "; vms.json has all its settings.", nil
	case backends.KindVGPU:
		return off + " vGPUs " + c.Name + " that it had: " + map[bool]string{true: "none", false: c.From.String()}[c.From.IsAbsent()] +
				". Find them (pcipassthrough-N) in the list and remove those that were added.",
			[]string{"govc device.info -vm " + vm + " 'pcipassthrough-*'"}
	case backends.KindDeviceGroup:
		return off + " The VM did not have the vendor device group " + c.Name +
			". Remove it as a whole in the vSphere Client: VM, Edit Settings.", nil
	case backends.KindDevice:
		if c.From.IsAbsent() {
			return off + " The VM did not have the device at " + c.Name + ". Find its name (pcipassthrough-N) in the list, then remove it.",
				[]string{"govc device.info -vm " + vm + " 'pcipassthrough-*'", "govc device.remove -vm " + vm + " pcipassthrough-N"}
		}
	}
	return strings.TrimSpace(off + " " + before(c)), nil
}

// guestByHand returns the steps that are known before a guest's items are recorded; the items have the rest.
func guestByHand(c plan.Change) (string, []string) {
	var was, to backends.PackageSpec
	if c.Kind == backends.KindPackages && c.From.Decode(&was) == nil && c.To.Decode(&to) == nil {
		added := slices.DeleteFunc(to.Installed, func(p string) bool { return slices.Contains(was.Installed, p) })
		return "In the guest, remove the packages that were not installed before, with apt-get or dnf: " + strings.Join(added, " "), nil
	}
	var loaded, load []string
	if c.Kind == backends.KindModules && c.From.Decode(&loaded) == nil && c.To.Decode(&load) == nil {
		extra := slices.DeleteFunc(load, func(m string) bool { return slices.Contains(loaded, m) })
		return "In the guest, unload the modules that were not loaded before; the next boot does it as well.",
			[]string{"sudo modprobe -r " + strings.Join(extra, " ")}
	}
	return "In the guest. " + before(c), nil
}

// itemsInOrder puts units first: systemctl disables a unit only while its file exists.
func itemsInOrder(items []backends.Item) []backends.Item {
	units, rest := []backends.Item{}, []backends.Item{}
	for _, i := range items {
		if i.Kind == backends.ItemUnit {
			units = append(units, i)
		} else {
			rest = append(rest, i)
		}
	}
	return append(units, rest...)
}

// itemByHand returns how to restore one recorded item of a guest.
func itemByHand(i backends.Item) (string, []string) {
	name := word(i.Name)
	absent := i.State.IsAbsent()
	switch i.Kind {
	case backends.ItemFile, backends.ItemLink:
		if absent {
			return "", []string{"sudo rm -f " + name}
		}
		return fmt.Sprintf("%s existed (%s); its content is in journal.jsonl (base64), in the record of this change.", i, i.State), nil
	case backends.ItemDirectory:
		if absent {
			return "", []string{"sudo rmdir " + name}
		}
	case backends.ItemUnit:
		if absent {
			return "", []string{"sudo systemctl disable --now " + name}
		}
	case backends.ItemPackage:
		if absent {
			return i.String() + " was not installed: remove it with apt-get or dnf.", nil
		}
	case backends.ItemModule:
		if absent {
			return "", []string{"sudo modprobe -r " + name}
		}
	case backends.ItemInitramfs:
		// update-initramfs(8) and dracut(8); a directory stands for the initial RAM disks of all kernels.
		if strings.HasPrefix(i.Name, "/") {
			return "Build the initial RAM disks again: sudo update-initramfs -u -k all, or sudo dracut -f --regenerate-all.", nil
		}
		return "Build the initial RAM disk of kernel " + i.Name + " again: sudo update-initramfs -u -k " + i.Name +
			", or sudo dracut -f --kver " + i.Name + ".", nil
	case backends.ItemInterface:
		return "The interface with MAC " + i.Name + " (see: ip -br link) was: " + i.State.String() +
			". Set that with ip address and ip link; if its adapter is removed from the VM, this is not needed.", nil
	case backends.ItemSysctl:
		if !absent {
			return "", []string{"echo " + strings.Trim(i.State.String(), `"`) + " | sudo tee /proc/sys/" + i.Name}
		}
	case backends.ItemGPUPersist:
		if !absent {
			return "", []string{"sudo nvidia-smi -i " + name + " -pm " + map[bool]string{false: "0", true: "1"}[i.State == backends.ValueOf(true)]}
		}
	case backends.ItemTrafficClass: // Linux, Documentation/ABI/testing/configfs-rdma_cm
		return "RDMA-CM on the interface with MAC " + i.Name + " was: " + i.State.String() +
			". It is lost at the next boot of the guest; until then it is in /sys/kernel/config/rdma_cm/DEVICE/ports/1/default_roce_tos.", nil
	}
	if absent {
		return i.String() + " did not exist: remove it.", nil
	}
	return i.String() + " was: " + i.State.String(), nil
}
