package esxi

import (
	"maps"
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/esxi/nic"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Version is the record of "esxcli system version get".
type Version struct {
	scan.Envelope
	Product   *string `json:"product"`
	Version   *string `json:"version"`
	Build     *int64  `json:"build"`
	BuildType *string `json:"build_type"` // Releasebuild
	Update    *int64  `json:"update"`
	Patch     *int64  `json:"patch"`
}

// VersionOf reads "esxcli system version get".
func VersionOf(text string) Version {
	var v Version
	v.Envelope, text = scan.Begin("esxcli_system_version_get", text)
	f := scan.Named("Product", "Version", "Build", "Update", "Patch").Records(text, scan.Opening{})[0]
	v.Product, v.Version, v.Update, v.Patch = f.Str("Product"), f.Str("Version"), f.Int("Update"), f.Int("Patch")
	kind, number := "", f.Value("Build")
	if i := strings.LastIndexByte(number, '-'); i >= 0 {
		kind, number = number[:i], number[i+1:]
	}
	v.Build, v.BuildType = scan.Int(number), scan.Str(kind)
	v.NotUnderstood(v.Build != nil || v.Product != nil && v.Version != nil, text)
	return v
}

// Release is the line of "vmware -v" or "vmware -l".
type Release struct {
	scan.Envelope
	Product *string `json:"product"`
	Version *string `json:"version"`
	Build   *int64  `json:"build"`
	Release *string `json:"release"` // GA, "Update 3"; only with -l
}

var releaseLine = regexp.MustCompile(`(VMware(?:\s+[A-Za-z]+){1,3}),?\s+v?([0-9]+(?:\.[0-9]+)*)\b` +
	`(?:[ \t]+(GA|Update\s+[0-9]+\w*|Patch\s+[0-9]+\w*)\b)?(?:[ \t]*\(?build[- ]([0-9]+)|,[ \t]+([0-9]{6,9})\b)?`)

// ReleaseOf reads "vmware -v", "vmware -l" and both together.
func ReleaseOf(text string) Release {
	var r Release
	r.Envelope, text = scan.Begin("vmware_v", text)
	for line := range scan.AllLines(text) {
		if !strings.Contains(line, "VMware") || len(line) > 4096 {
			continue
		}
		for _, m := range releaseLine.FindAllStringSubmatch(line, 8) {
			if r.Product == nil {
				r.Product, r.Version = new(scan.Squeeze(m[1])), &m[2]
			}
			if r.Release == nil && m[3] != "" {
				r.Release = new(scan.Squeeze(m[3]))
			}
			if r.Build == nil {
				r.Build = scan.Int(m[4] + m[5])
			}
		}
	}
	r.NotUnderstood(r.Product != nil, text)
	return r
}

// Tools returns the parsers of this package and of package nic by tool id.
func Tools() map[string]func(string) any {
	tools := nic.Tools()
	maps.Copy(tools, map[string]func(string) any{
		"esxcfg_module":                             func(s string) any { return ModuleOptionsOf(s) },
		"esxcli_hardware_pci_list":                  func(s string) any { return PCIList(s) },
		"esxcli_hardware_pci_pcipassthru_list":      func(s string) any { return PassthruList(s) },
		"esxcli_network_firewall_ruleset_list":      func(s string) any { return RulesetList(s) },
		"esxcli_network_firewall_ruleset_rule_list": func(s string) any { return RuleList(s) },
		"esxcli_software_vib_install":               func(s string) any { return VIBChangeOf(s) },
		"esxcli_software_vib_list":                  func(s string) any { return VIBList(s) },
		"esxcli_system_module_parameters_list":      func(s string) any { return ParameterList(s) },
		"esxcli_system_settings_advanced_list":      func(s string) any { return OptionList(s) },
		"esxcli_system_version_get":                 func(s string) any { return VersionOf(s) },
		"esxcli_vm_process_list":                    func(s string) any { return VMList(s) },
		"esxi_lspci":                                func(s string) any { return LSPCI(s) },
		"vmware_v":                                  func(s string) any { return ReleaseOf(s) },
	})
	return tools
}
