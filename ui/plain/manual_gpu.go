package plain

import (
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// deviceManual returns how to assign a GPU or a card to a VM manually, on its host and in its own settings.
func deviceManual(c plan.Change) (string, bool) {
	switch c.Kind {
	case backends.KindPassthrough:
		command := code("esxcli hardware pci pcipassthru set -d %s -e %t", shell(c.Name), c.To == backends.ValueOf(true))
		return "vSphere Client: host > Configure > Hardware > PCI Devices > " + cell(c.Name) + " > Toggle Passthrough; or " + command + " (7.0 and later; -a acts now, else reboot)", true
	case backends.KindActivePassthrough:
		return "vSphere Client: host > Configure > Hardware > PCI Devices: " + cell(c.Name) + " is Enabled, not Enabled / Needs reboot", true
	case backends.KindNested:
		return "vSphere Client: VM off > Edit Settings > CPU > Hardware virtualization: Expose hardware assisted virtualization to the guest OS is not ticked", true
	case backends.KindGraphics:
		var g backends.GraphicsSpec
		if c.To.Decode(&g) != nil {
			return "", false
		}
		return "vSphere Client: host > Configure > Hardware > Graphics > Host Graphics, and Graphics Devices: " +
			map[bool]string{true: "Shared Direct", false: "Shared"}[g.Default == backends.SharedDirect] + ", then reboot", true
	case backends.KindActiveGraphics:
		return "vSphere Client: host > Configure > Hardware > Graphics > Graphics Devices: the active type of the GPUs is Shared Direct", true
	case backends.KindVGPU:
		return "vSphere Client: VM off > Edit Settings > Add New Device > PCI Device > NVIDIA GRID vGPU: " + cell(c.Name) + ", " + cell(c.To.String()) + " in all", true
	case backends.KindDeviceGroup:
		return "vSphere Client: VM off > Edit Settings > Add New Device > PCI Device: the group " + cell(c.Name), true
	case backends.KindDevice:
		var d backends.DeviceSpec
		if c.To.Decode(&d) != nil {
			return "", false
		}
		way := "DirectPath I/O"
		if d.Backing == backends.DynamicBacking {
			way = "Dynamic DirectPath I/O"
		}
		return "vSphere Client: VM off > Edit Settings > Add New Device > PCI Device > " + way + ": " + cell(c.Name) + " (" + cell(d.Vendor+":"+d.Device) + ")", true
	}
	return "", false
}

// buildManual returns the commands that install the program in the guest.
func buildManual(c plan.Change) string {
	var file string
	_ = c.To.Decode(&file) // absent: to be removed
	switch {
	case c.Name == backends.BuildDriver && file == "":
		return "in the guest: " + code("nvidia-uninstall --silent")
	case c.Name == backends.BuildDriver:
		return "in the guest: " + code("sh %s --silent --dkms", shell(file))
	case file == "":
		return "in the guest: " + code("rm -rf %s", backends.PerftestPrefix(c.Name))
	}
	cuda := " CUDA_H_PATH=/usr/local/cuda/include/cuda.h"
	if c.Name == backends.BuildSamePerftest {
		cuda = ""
	}
	return "in the guest: unpack " + cell(file) + ", in it " + code("./configure --prefix=%s%s && make && make install", backends.PerftestPrefix(c.Name), cuda)
}

// unreadModules is the text for modules that only the guest can report, once its driver is installed.
func unreadModules(c plan.Change) string {
	if c.Name == plan.PeerModules {
		return "in the guest: " + code("modprobe nvidia-peermem") + ", unless " + code("modinfo -F license nvidia") + " says Dual MIT/GPL and the kernel is " +
			"5.12 or later: then DMA-BUF serves, and no module is needed"
	}
	return "in the guest: load the RDMA modules with modprobe"
}
