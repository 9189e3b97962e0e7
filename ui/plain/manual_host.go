package plain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// hostManual returns how to change a host's system settings manually.
func hostManual(c plan.Change) (string, bool) {
	switch c.Kind {
	case backends.KindPower:
		return "vSphere Client: host > Configure > Hardware > Overview > Power Management > Edit Power Policy: " + cell(policyName(text(c.To))), true
	case backends.KindComponent:
		file, _, _ := strings.Cut(strings.TrimPrefix(c.Why, "from "), ",")
		option := "-v"
		if strings.HasSuffix(strings.ToLower(file), ".zip") {
			option = "-d"
		}
		return "in maintenance mode: " + code("esxcli software vib install %s %s", option, shell(file)) + ", then reboot", true
	case backends.KindImageComponent:
		if c.Target.Type == backends.TypeCluster {
			return "vSphere Client: cluster > Updates > Image > Edit > Components > Add: " + cell(c.Name) + " " + cell(text(c.To)) + ", Validate, Save", true
		}
		return "in maintenance mode: vSphere Client: cluster > Updates > Image > the host > Actions > Remediate", true
	case backends.KindModuleParams:
		var params map[string]string
		if c.To.Decode(&params) != nil {
			return "", false
		}
		return "in maintenance mode: " + code("esxcli system module parameters set -m %s -p %s", shell(c.Name), shell(joined(params))) + " (the whole string), then reboot", true
	case backends.KindPause:
		var p backends.PauseSpec
		if c.To.Decode(&p) != nil {
			return "", false
		}
		return "on the host: " + code("esxcli network nic pauseParams set -n %s -r %t -t %t", shell(c.Name), p.Rx, p.Tx), true
	case backends.KindFirmware:
		line := nic.FirmwareCommand(shell(strings.TrimPrefix(c.Name, "0000:")), firmwareKeys(c))
		if line == "" {
			return "", false
		}
		return "on the host's shell: " + code("%s", line) + ", then reboot", true
	case backends.KindFirmwareImage:
		var b nic.Burn
		if c.Late.Decode(&b) != nil {
			return "", false
		}
		var lines []string
		for _, psid := range slices.Sorted(maps.Keys(b.Files)) {
			lines = append(lines, "PSID "+cell(psid)+": "+code("%s", nic.BurnCommand(b.Vendor, shell(strings.TrimPrefix(c.Name, "0000:")), shell(b.Files[psid]))))
		}
		return "on the host's shell, by the PSID of the card: " + strings.Join(lines, "; ") + ", then reboot", true
	case backends.KindActiveFirmware:
		line := nic.LoadedCommand(shell(strings.TrimPrefix(c.Name, "0000:")))
		return "after the reboot, on the host's shell: " + code("%s", line) + " prints no line FW Version(Running); if it does, power-cycle the server", true
	case backends.KindVFs:
		var v backends.VFSpec
		if c.To.Decode(&v) != nil {
			return "", false
		}
		return fmt.Sprintf("vSphere Client: host > Configure > Networking > Physical adapters > %s > Edit > SR-IOV: %s, %d VFs, then reboot", cell(c.Name), onOff(v.Enabled), v.VFs), true
	case backends.KindActiveVFs:
		return "after the reboot: " + code("esxcli network sriovnic vf list -n vmnicN") + " lists " + cell(text(c.To)) + " VFs", true
	}
	return "", false
}

func onOff(on bool) string {
	if on {
		return "Enabled"
	}
	return "Disabled"
}

// policyName returns the name of a power policy in the vSphere Client.
func policyName(short string) string {
	names := map[string]string{"static": "High Performance", "dynamic": "Balanced", "low": "Low Power", "custom": "Custom"}
	if n := names[short]; n != "" {
		return n
	}
	return short
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
