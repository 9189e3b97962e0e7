package scenario

import (
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// gpudirect returns the scenarios of VMs with GPUs. Unless stated otherwise, each has two hosts with a ConnectX-5, an A100 on
// the same switch and another A100 on the other socket, and one VM on each host.
func gpudirect() []Scenario {
	var broken []Scenario
	for _, r := range gpuBroken() {
		broken = append(broken, Scenario{Name: "gpudirect-broken-" + r.name, Text: "gpudirect-done, " + r.text, Hosts: 2, VMs: 2,
			Apply: func(s *world.State) {
				gpuReady(s)
				gpuDone(s)
				r.inject(s)
			}})
	}
	one := func(name, text string, apply func(*world.State)) Scenario {
		return Scenario{Name: name, Text: text, Hosts: 2, VMs: 2, Apply: func(s *world.State) {
			gpuReady(s)
			apply(s)
		}}
	}
	return append([]Scenario{
		one("gpudirect", "GPUs and HCAs on one switch, nothing set up", func(*world.State) {}),
		one("gpudirect-done", "VMs have an HCA and a GPU on its switch, guests included", gpuDone),
		one("gpudirect-source", "guests have no perftest with CUDA, and a share with its source and NVIDIA's own installer",
			func(s *world.State) {
				s.Software = true
				for _, v := range s.Asked() {
					v.Guest.Preset = "gpu-source"
				}
			}),
		one("nouveau", "guests without NVIDIA's driver have a GPU, which the driver nouveau claimed at boot", func(s *world.State) {
			gpuDone(s)
			s.Software = true
			for _, v := range s.Asked() {
				v.Guest.Preset, v.Guest.Defects = "gpu-source", []world.Defect{world.Nouveau}
			}
		}),
		one("gpudirect-ats", "the HCAs are ConnectX-6 Dx, whose firmware supports ATS", gpuATS),
		one("gpudirect-split", "the only GPU of a host is below the other socket", gpuSplit),
		one("gpudirect-bios", "a guest was installed on BIOS firmware", func(s *world.State) {
			lastAsked(func(v *world.VM) { v.Firmware, v.Guest.BIOS = "bios", true })(s)
			s.Refused = map[string]string{"gpudirect": "3 (a guest was installed on BIOS firmware)"}
		}),
		one("gpudirect-busy", "a VM that is not in the answers has the GPU and the HCA of the last host", gpuBusy),
		one("gpu-other-vm", "the GPU and the HCA of the last host belong to a VM in another folder, which is off", gpuOtherVM),
		one("gpu-pvrdma", "the answers ask for GPUs beside PVRDMA adapters, nothing is set up", func(s *world.State) { s.Beside = true }),
		one("hgx-h100", "HGX H100 boards: eight SXM GPUs and four NVSwitches; the answers ask for all GPUs", hgxH100),
		one("hgx-no-manager", "hgx-h100 without the vGPU Manager's VIB; the answers ask for a vGPU", hgxNoManager),
		one("hgx-b200", "HGX B200 boards: eight SXM GPUs, their NVSwitches behind functions that look like ConnectX-7 adapters", hgxB200),
		one("vgpu-gdr",
			"the answers ask for C-series vGPUs beside whole HCAs; the hosts have the vGPU Manager, and their GPUs are not yet Shared Direct",
			vgpuGDR),
		one("vgpu-guests", "vgpu-gdr; the first guest has the driver for whole GPUs, the last one no license", vgpuGuests),
		one("vgpu-bare", "vgpu-gdr without the vGPU Manager on the hosts; its offline bundle is on the datastore and named in the answers",
			vgpuBare),
		one("vgpu-image", "vgpu-bare, the cluster is managed by an image, and a web server has the bundle", vgpuImage),
		one("gpudirect-vgpu", "GPUs are shared: VMs have vGPUs", gpuShared),
		one("gpudirect-old", "a VM with hardware version 13, little memory and a snapshot", func(s *world.State) {
			lastAsked(func(v *world.VM) {
				v.Hardware, v.MemoryMB = 13, 16<<10
				v.Snap("before patch 1", "")
			})(s)
			s.Refused = map[string]string{"gpudirect": "3 (a VM has a snapshot; --skip VM-SNAP-005 sets it up anyway)"}
		}),
		one("gpudirect-far", "VMs have an HCA and a GPU below the other socket, guests included", func(s *world.State) {
			gpuSplit(s)
			gpuDone(s)
			s.Refused = nil
		}),
		one("gpudirect-moved", "VMs have a GPU and an HCA, the last VM was moved there from another host", func(s *world.State) {
			gpuDone(s)
			if v := lastAskedOf(s); v != nil {
				v.On, v.Guest.Up = false, false
				v.Adapters[0].Connected = false
				for _, d := range v.Devices {
					d.System = s.Hosts[0].UUID
				}
			}
		}),
		one("gpudirect-models", "hosts with K80, T4, V100, A30, H100, an unknown GPU and a GPU with a sound device", gpuModels),
	}, broken...)
}

// lastAskedOf returns the last VM in the answers, or nil if there is none.
func lastAskedOf(s *world.State) *world.VM {
	asked := s.Asked()
	if len(asked) == 0 {
		return nil
	}
	return asked[len(asked)-1]
}

// lastAsked returns a function that applies f to the last VM in the answers.
func lastAsked(f func(*world.VM)) func(*world.State) {
	return func(s *world.State) {
		if v := lastAskedOf(s); v != nil {
			f(v)
		}
	}
}

// gpuReady makes one VM of each host large enough for a GPU. The card can be assigned to one VM only, so other VMs do not
// change.
func gpuReady(s *world.State) {
	s.GPUs, s.HCA = map[string][]string{}, "0000:3b:00.0"
	served := map[string]bool{}
	for _, v := range s.VMs {
		v.Guest.OS = "ubuntu-22.04"
		if served[v.Host] {
			s.Strangers = append(s.Strangers, v.Name)
			continue
		}
		served[v.Host] = true
		v.CPUs, v.MemoryMB, v.Guest.Preset = 16, 128<<10, "gpu"
		s.GPUs[v.Name] = []string{"0000:3c:00.0"}
	}
}

// drop removes functions from a host.
func drop(h *world.Host, addresses ...string) {
	h.PCI = slices.DeleteFunc(h.PCI, func(d *world.PCIDevice) bool { return slices.Contains(addresses, d.Address) })
}

func gpuATS(s *world.State) {
	const name = "MT2892 Family [ConnectX-6 Dx]"
	for _, h := range s.Hosts {
		h.Cards[1] = firmware.ConnectX6Dx("0000:3b:00.0", h.PNICs[2].MAC)
		for _, p := range h.PNICs {
			if h.Cards[1].Has(p.PCI) {
				p.Model, p.Firmware = name, h.Cards[1].Version
			}
		}
		for _, d := range h.PCI {
			if h.Cards[1].Has(d.Address) {
				d.Device, d.SubDevice, d.DeviceName = 0x101d, 0x0016, name
			}
		}
	}
}

func gpuSplit(s *world.State) {
	s.Refused = map[string]string{"gpudirect": "3 (no GPU can reach the RDMA card; --skip HOST-GPU-ROOT-016 sets it up anyway)"}
	for _, h := range s.Hosts {
		drop(h, "0000:3c:00.0")
	}
	for _, v := range s.Asked() {
		s.GPUs[v.Name] = []string{"0000:af:00.0"}
	}
}

// give enables passthrough of functions of a VM's host immediately and assigns them to the VM.
func give(s *world.State, v *world.VM, addresses ...string) {
	h := s.Host(v.Host)
	for _, at := range addresses {
		d := h.PCIDevice(at)
		d.PassthruEnabled, d.PassthruActive = true, true
		v.Devices = append(v.Devices, &world.Passthrough{Key: int32(13000 + len(v.Devices)), PCI: at, Vendor: d.Vendor, Device: d.Device,
			Slot: v.NextSlot()})
	}
	v.Locked, v.Reserved = true, v.MemoryMB
}

// gpuKeys sets the VMX keys that GPU and HCA require (rules of NVIDIA's GPU Operator guide; the window according to KB 323402).
func gpuKeys(v *world.VM, windowGB string) {
	v.Extra = map[string]string{"pciPassthru.use64bitMMIO": "TRUE", "pciPassthru.64bitMMIOSizeGB": windowGB,
		"pciPassthru.allowP2P": "TRUE", "pciPassthru.RelaxACSforP2P": "TRUE"}
}

func gpuDone(s *world.State) {
	for _, h := range s.Hosts {
		h.PowerPolicy = "static"
	}
	for _, v := range s.Asked() {
		give(s, v, "0000:3b:00.0", s.GPUs[v.Name][0])
		gpuKeys(v, "256")
		v.Guest.Preset = "gpudirect"
	}
}

// gpuOtherVM is like gpuBusy, but the VM is off and in a separate folder.
func gpuOtherVM(s *world.State) {
	gpuBusy(s)
	v := s.VMs[len(s.VMs)-1]
	f := &world.Folder{ID: fmt.Sprintf("group-v%d", s.NextID()), Name: "Rendering"}
	s.Folders = append(s.Folders, f)
	v.Folder, v.Path = f.ID, "/"+s.Datacenter+"/vm/"+f.Name+"/"+v.Name
	v.On, v.Guest.Up = false, false
	v.Adapters[0].Connected = false
}

// gpuBusy adds a VM of another owner to the last host.
func gpuBusy(s *world.State) {
	s.Refused = map[string]string{"gpudirect": "3 (another VM has the GPU and the RDMA card of the last host)"}
	last := lastAskedOf(s)
	if last == nil {
		return
	}
	v := newVM(s, len(s.VMs), len(s.VMs)+1, s.Hosts[0].BootTime)
	v.Name, v.Host, v.MemoryMB, v.Guest.OS = "render-01", last.Host, 96<<10, "ubuntu-22.04"
	v.Path = "/" + s.Datacenter + "/vm/" + v.Name
	v.Guest.Hostname = v.Name
	s.VMs = append(s.VMs, v)
	give(s, v, "0000:3b:00.0", "0000:3c:00.0")
	gpuKeys(v, "256")
	s.Strangers = append(s.Strangers, v.Name)
}

func gpuShared(s *world.State) {
	s.Refused = map[string]string{"gpudirect": "3 (the VMs have vGPUs, and whole GPUs are asked for)"}
	for _, h := range s.Hosts {
		h.Shared = "sharedDirect"
		manager(h, a100Profiles)
	}
	for _, v := range s.Asked() {
		v.Devices = []*world.Passthrough{{Key: 13000, Profile: "grid_a100d-40c", Slot: v.NextSlot()}}
		v.Locked, v.Reserved = true, v.MemoryMB
		v.Extra = map[string]string{"pciPassthru.use64bitMMIO": "TRUE", "pciPassthru.64bitMMIOSizeGB": "128"}
	}
}

// gpuModels adds GPUs of other models to the hosts: on the switch of the HCA and on the other socket.
func gpuModels(s *world.State) {
	for n, h := range s.Hosts {
		drop(h, "0000:3c:00.0", "0000:af:00.0")
		if n%2 == 0 {
			h.PCI = append(h.PCI,
				// A K80 is a board with a PCIe switch and two GPUs below it.
				bridgeAt("0000:3c:00.0", "0000:39:01.0", 0), bridgeAt("0000:3d:08.0", "0000:3c:00.0", 0), bridgeAt("0000:3d:10.0", "0000:3c:00.0", 0),
				newGPU("k80", "0000:3e:00.0", "0000:3d:08.0", 0), newGPU("k80", "0000:3f:00.0", "0000:3d:10.0", 0),
				newGPU("t4", "0000:af:00.0", "0000:ae:00.0", 1),
				bridgeAt("0000:d7:00.0", "", 1), newGPU("v100-16g", "0000:d8:00.0", "0000:d7:00.0", 1))
			continue
		}
		console := newGPU("a40", "0000:d8:00.0", "0000:d7:00.0", 1)
		console.Class, console.AtBoot = 0x0300, true // the GPU of the host's console
		sound := &world.PCIDevice{Address: "0000:d8:00.1", Parent: "0000:d7:00.0", Class: 0x0403, Vendor: nvidia, Device: 0x1aef,
			SubVendor: nvidia,
			SubDevice: 0x145a, VendorName: "NVIDIA Corporation", DeviceName: "GA102 High Definition Audio Controller", NUMA: 1,
			PassthruCapable: true,
			Dependent:       console.Address, BARs: []world.BAR{bar(0, 1, false)}}
		h.PCI = append(h.PCI,
			newGPU("a30", "0000:3c:00.0", "0000:39:01.0", 0),
			newGPU("h100-80g", "0000:af:00.0", "0000:ae:00.0", 1),
			bridgeAt("0000:d7:00.0", "", 1), console, sound,
			bridgeAt("0000:e1:00.0", "", 1), newGPU("unknown-x", "0000:e2:00.0", "0000:e1:00.0", 1))
	}
	s.GPUs = nil
	s.Refused = map[string]string{"gpudirect": "3 (nobody knows the size of a GPU)"}
}
