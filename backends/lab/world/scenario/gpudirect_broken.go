package scenario

import "github.com/rdma-setup/rdma-setup/backends/lab/world"

// gpuBroken returns variants of gpudirect-done with one fault that only a site with GPUs can have. Unless the text says
// otherwise, the fault is on the last host and in the last VM in the answers.
func gpuBroken() []brokenScenario {
	host := func(f func(*world.Host)) func(*world.State) {
		return func(s *world.State) {
			if v := lastAskedOf(s); v != nil {
				f(s.Host(v.Host))
			}
		}
	}
	defects := func(f ...world.Defect) func(*world.State) {
		return lastAsked(func(v *world.VM) { v.Guest.Defects = f })
	}
	key := func(name, value string) func(*world.State) {
		return lastAsked(func(v *world.VM) { v.Extra[name] = value })
	}
	off := func(v *world.VM) { v.On, v.Guest.Up, v.Adapters[0].Connected = false, false, false }
	return []brokenScenario{
		{name: "models", text: "a host has another model of GPU", inject: host(func(h *world.Host) {
			d := h.PCIDevice("0000:af:00.0")
			*d = *newGPU("h100-80g", d.Address, d.Parent, d.NUMA)
		})},
		{name: "inactive", text: "passthrough of a GPU is active only after a reboot; its VM is off", inject: func(s *world.State) {
			lastAsked(off)(s)
			host(func(h *world.Host) { d := h.PCIDevice("0000:3c:00.0"); d.PassthruActive, d.AtBoot = false, true })(s)
		}},
		{name: "graphics", text: "a host shares its GPUs by default", inject: host(func(h *world.Host) { h.Shared = "sharedDirect" })},
		{name: "p2p", text: "a VM has no pciPassthru.allowP2P", inject: lastAsked(func(v *world.VM) { delete(v.Extra, "pciPassthru.allowP2P") })},
		{name: "acs", text: "a VM has no pciPassthru.RelaxACSforP2P", inject: lastAsked(func(v *world.VM) { delete(v.Extra, "pciPassthru.RelaxACSforP2P") })},
		{name: "quotes", text: "pciPassthru.RelaxACSforP2P of a VM has quotes in it", inject: key("pciPassthru.RelaxACSforP2P", `"TRUE"`)},
		{name: "window-off", text: "a VM has no MMIO window above 4 GB, and is off", inject: lastAsked(func(v *world.VM) {
			off(v)
			delete(v.Extra, "pciPassthru.use64bitMMIO")
		})},
		{name: "window-small", text: "the MMIO window of a VM has the size in the guide, which is too small; the VM is off", inject: lastAsked(func(v *world.VM) {
			off(v)
			v.Extra["pciPassthru.64bitMMIOSizeGB"] = "128"
		})},
		{name: "memory", text: "a VM has less memory than its GPU", inject: lastAsked(func(v *world.VM) { v.MemoryMB, v.Reserved = 64<<10, 64<<10 })},
		{name: "reservation", text: "the memory of a VM is not reserved, and the VM is off", inject: lastAsked(func(v *world.VM) {
			off(v)
			v.Locked, v.Reserved = false, 0
		})},
		{name: "driver", text: "a guest has no NVIDIA driver", inject: defects(world.NoGPUDriver)},
		{name: "peermem", text: "a guest with the proprietary driver does not load nvidia_peermem", inject: defects(world.ClosedDriver, world.NoPeermem)},
		{name: "order", text: "MLNX_OFED was installed in a guest after the NVIDIA driver", inject: defects(world.ClosedDriver, world.OFEDLater)},
	}
}
