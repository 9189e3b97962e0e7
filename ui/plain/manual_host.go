package plain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// hostManual returns how to change a host's system settings manually; "" if c is no such change.
func hostManual(c plan.Change) string {
	switch c.Kind {
	case backends.KindPower:
		return "vSphere Client: host > Configure > Hardware > Overview > Power Management > Edit Power Policy: " + cell(policyName(text(c.To)))
	case backends.KindComponent:
		file, _, _ := strings.Cut(strings.TrimPrefix(c.Why, "from "), ",")
		option := "-v"
		if strings.HasSuffix(strings.ToLower(file), ".zip") {
			option = "-d"
		}
		return "in maintenance mode: " + code("esxcli software vib install %s %s", option, ShellWord(file)) + ", then reboot"
	case backends.KindImageComponent:
		if c.Target.Type == backends.TypeCluster {
			return "vSphere Client: cluster > Updates > Image > Edit > Components > Add: " + cell(c.Name) + " " + cell(text(c.To)) +
				", Validate, Save"
		}
		return "in maintenance mode: vSphere Client: cluster > Updates > Image > the host > Actions > Remediate"
	case backends.KindModuleParams:
		var params map[string]string
		if c.To.Decode(&params) != nil {
			return ""
		}
		return "in maintenance mode: " + code("esxcli system module parameters set -m %s -p %s", ShellWord(c.Name), ShellWord(joined(params))) +
			" (the whole string), then reboot"
	case backends.KindPause:
		var p backends.PauseSpec
		if c.To.Decode(&p) != nil {
			return ""
		}
		return "on the host: " + code("esxcli network nic pauseParams set -n %s -r %t -t %t", ShellWord(c.Name), p.Rx, p.Tx)
	case backends.KindFirmware:
		line := nic.FirmwareCommand(ShellWord(strings.TrimPrefix(c.Name, "0000:")), firmwareKeys(c))
		if line == "" {
			return ""
		}
		return "on the host's shell: " + code("%s", line) + ", then reboot"
	case backends.KindFirmwareImage:
		var b nic.Burn
		if c.Late.Decode(&b) != nil {
			return ""
		}
		var lines []string
		for _, psid := range slices.Sorted(maps.Keys(b.Files)) {
			lines = append(lines,
				"PSID "+cell(psid)+": "+code("%s", nic.BurnCommand(b.Vendor, ShellWord(strings.TrimPrefix(c.Name, "0000:")), ShellWord(b.Files[psid]))))
		}
		return "on the host's shell, by the PSID of the card: " + strings.Join(lines, "; ") + ", then reboot"
	case backends.KindActiveFirmware:
		line := nic.LoadedCommand(ShellWord(strings.TrimPrefix(c.Name, "0000:")))
		return "after the reboot, on the host's shell: " + code("%s", line) +
			" prints no line FW Version(Running); if it does, power-cycle the server"
	case backends.KindVFs:
		var v backends.VFSpec
		if c.To.Decode(&v) != nil {
			return ""
		}
		return fmt.Sprintf("vSphere Client: host > Configure > Networking > Physical adapters > %s > Edit > SR-IOV: %s, %d VFs, then reboot",
			cell(c.Name), map[bool]string{true: "Enabled", false: "Disabled"}[v.Enabled], v.VFs)
	case backends.KindActiveVFs:
		return "after the reboot: " + code("esxcli network sriovnic vf list -n vmnicN") + " lists " + cell(text(c.To)) + " VFs"
	}
	return ""
}

// policyName returns the name of a power policy in the vSphere Client.
func policyName(short string) string {
	return cmp.Or(map[string]string{"static": "High Performance", "dynamic": "Balanced", "low": "Low Power", "custom": "Custom"}[short], short)
}

func joined(params map[string]string) string {
	var parts []string
	for k, v := range params {
		parts = append(parts, k+"="+v)
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// firmwareKeys returns the keys to set; if they depend on the card's current settings, the number of VFs is the minimum
// that the card must have.
func firmwareKeys(c plan.Change) map[string]string {
	var keys map[string]string
	if c.To.Decode(&keys) != nil && c.Late.Decode(&keys) != nil {
		return nil
	}
	return keys
}

// deviceManual returns how to assign a GPU or a card to a VM manually, on its host and in its own settings; "" if c is no such
// change.
func deviceManual(c plan.Change) string {
	switch c.Kind {
	case backends.KindPassthrough:
		command := code("esxcli hardware pci pcipassthru set -d %s -e %t", ShellWord(c.Name), c.To == backends.ValueOf(true))
		return "vSphere Client: host > Configure > Hardware > PCI Devices > " + cell(c.Name) + " > Toggle Passthrough; or " + command +
			" (7.0 and later; -a acts now, else reboot)"
	case backends.KindGraphics:
		var g backends.GraphicsSpec
		if c.To.Decode(&g) != nil {
			return ""
		}
		return "vSphere Client: host > Configure > Hardware > Graphics > Host Graphics, and Graphics Devices: " +
			map[bool]string{true: "Shared Direct", false: "Shared"}[g.Default == backends.SharedDirect] + ", then reboot"
	case backends.KindVGPU:
		return "vSphere Client: VM off > Edit Settings > Add New Device > PCI Device > NVIDIA GRID vGPU: " + cell(c.Name) + ", " +
			cell(c.To.String()) + " in all"
	case backends.KindDevice:
		var d backends.DeviceSpec
		if c.To.Decode(&d) != nil {
			return ""
		}
		way := "DirectPath I/O"
		if d.Backing == backends.DynamicBacking {
			way = "Dynamic DirectPath I/O"
		}
		return "vSphere Client: VM off > Edit Settings > Add New Device > PCI Device > " + way + ": " + cell(c.Name) + " (" +
			cell(d.Vendor+":"+d.Device) + ")"
	}
	return ""
}

// buildManual returns the commands that install the program in the guest.
func buildManual(c plan.Change) string {
	var file string
	_ = c.To.Decode(&file) // absent: to be removed
	switch {
	case c.Name == backends.BuildDriver && file == "":
		return "in the guest: " + code("nvidia-uninstall --silent")
	case c.Name == backends.BuildDriver:
		return "in the guest: " + code("sh %s --silent --dkms", ShellWord(file))
	case file == "":
		return "in the guest: " + code("rm -rf %s", backends.PerftestPrefix(c.Name))
	}
	cuda := " CUDA_H_PATH=/usr/local/cuda/include/cuda.h"
	if c.Name == backends.BuildSamePerftest {
		cuda = ""
	}
	return "in the guest: unpack " + cell(file) + ", in it " + code("./configure --prefix=%s%s && make && make install",
		backends.PerftestPrefix(c.Name), cuda)
}

// unreadModules is the text for modules that only the guest can report, once its driver is installed.
func unreadModules(c plan.Change) string {
	if c.Name == plan.PeerModules {
		return "in the guest: " + code("modprobe nvidia-peermem") + ", unless " + code("modinfo -F license nvidia") +
			" says Dual MIT/GPL and the kernel is " +
			"5.12 or later: then DMA-BUF serves, and no module is needed"
	}
	return "in the guest: load the RDMA modules with modprobe"
}
