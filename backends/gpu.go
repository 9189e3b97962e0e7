package backends

import (
	"maps"
	"slices"
	"strings"
)

// ServeVGPUs reports, given the active graphics types of a host's GPUs (HostGraphicsInfo.graphicsType), whether vGPUs are
// available: at least one GPU is not passed through, and all such GPUs are shared as vGPUs. A GPU for which ESXi has no driver is
// "basic", whatever is configured.
func ServeVGPUs(active []string) bool {
	shared := slices.Contains(active, SharedDirect)
	return shared && !slices.Contains(active, "shared")
}

// ServesVGPUs reports whether VMs can use vGPUs of this host now.
func (h *Host) ServesVGPUs() bool {
	var active []string
	for i := range h.GPUs {
		active = append(active, h.GPUs[i].Graphics)
	}
	return ServeVGPUs(active)
}

// VGPUProfiles returns the vGPU profiles of a VM, one for each vGPU.
func (v *VM) VGPUProfiles() (out []string) {
	for _, d := range v.Devices {
		if d.Backing == VGPUBacking {
			out = append(out, d.Profile)
		}
	}
	return out
}

// VGPUs returns the number of vGPUs of a profile that a VM has.
func (v *VM) VGPUs(profile string) int {
	n := 0
	for _, d := range v.Devices {
		if d.Backing == VGPUBacking && d.Profile == profile {
			n++
		}
	}
	return n
}

// HasGroup reports whether a VM has the devices of a vendor device group.
func (v *VM) HasGroup(name string) bool {
	return slices.ContainsFunc(v.Devices, func(d AssignedDevice) bool { return d.Group == name })
}

// VGPUManager returns the NVIDIA vGPU Manager among the VIBs of a host; "" if there is none. NVIDIA AI
// Enterprise User Guide, "Installing the NVIDIA Virtual GPU Manager on VMware vSphere", names the component (NVD-VMware-x86_64-VERSION);
// public lists of VIBs have NVD-AIE_ESXi_8.0.0_Driver, NVIDIA-AIE_ESXi_8.0.0_Driver and NVIDIA-VMware_ESXi_7.0.2_Driver.
func VGPUManager(vibs map[string]VIB) (name string, v VIB) {
	for _, name := range slices.Sorted(maps.Keys(vibs)) {
		if IsVGPUManager(name) {
			return name, vibs[name]
		}
	}
	return "", VIB{}
}

// IsVGPUManager reports whether a VIB, or a component of Lifecycle Manager, is the NVIDIA vGPU Manager by its name: NVIDIA's download
// NVD-AIE-800_525.105.14-1OEM.800.1.0.20613240_21506612.zip holds NVD-AIE_ESXi_8.0.0_Driver_525.105.14-1OEM.800.1.0.20613240.vib (a public
// listing of its directory Host_Drivers), and govc's documentation of cluster.draft.component.add has the component NVD-AIE-800.
func IsVGPUManager(name string) bool {
	up := strings.ToUpper(name)
	return strings.HasPrefix(up, "NVD-") || strings.HasPrefix(up, "NVIDIA")
}

// GPUUnit is the state of this program's unit that sets persistence mode of NVIDIA's driver at boot; "": there is none.
type GPUUnit string

// The states of the unit.
const (
	GPUUnitEnabled GPUUnit = "enabled"
	GPUUnitPartial GPUUnit = "partial"
)

// Persistence returns the value of KindGPUPersist for the GPUs of a guest.
func (u GPUUnit) Persistence(gpus []GuestGPU) Value {
	on := len(gpus) > 0
	for _, d := range gpus {
		on = on && d.Persistent != nil && *d.Persistent
	}
	switch {
	case u == GPUUnitPartial, u == GPUUnitEnabled && !on:
		return Partial(nil)
	case on:
		return ValueOf(true)
	}
	return Absent
}

// Nouveau is the state of nouveau, the kernel's own driver for NVIDIA GPUs, in a guest.
type Nouveau struct {
	Loaded    bool `json:"loaded"`
	Kept      bool `json:"blacklisted"` // by a file of this program
	Dracut    bool `json:"dracut,omitempty"`
	Renewable bool `json:"renewable"` // update-initramfs or dracut can rebuild the initial RAM disk
}

// Value returns the value of KindNouveau; a nil Nouveau is Absent.
func (n *Nouveau) Value() Value {
	switch {
	case n == nil, n.Loaded && !n.Kept:
		return Absent
	case n.Kept && !n.Loaded:
		return ValueOf(true)
	}
	return Partial(nil)
}
