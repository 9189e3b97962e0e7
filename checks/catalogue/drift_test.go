package catalogue_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Every row that is compared with the baseline: a change since then, and the expected evidence.
func driftCases() map[string]struct {
	mode  answers.Mode
	since func(f *checks.Facts)
	told  string
} {
	type row = struct {
		mode  answers.Mode
		since func(f *checks.Facts)
		told  string
	}
	return map[string]row{
		"VC-CONN-001": {p, func(f *checks.Facts) {
			f.Baseline.VCenter.Thumbprint, f.Inventory.VCenter.Thumbprint = "AA:BB", "CC:DD"
		}, "certificate AA:BB"},
		"CL-VER-002": {p, func(f *checks.Facts) { theHost(f).Build = "78" }, "ESXi 8.0.3 build 77"},
		"CL-SLOT-007": {g, func(f *checks.Facts) {
			gpu := theHost(f).GPUs[0]
			gpu.PCI = "0000:b4:00.0"
			theHost(f).GPUs = []backends.GPU{gpu}
		}, "GPUs at 0000:44:00.0"},
		"CL-PARAM-009": {p, theFacts(func(h *backends.HostSystem) { h.Modules[connectX.Driver()].Value.Params["pfctx"] = "" }),
			connectX.Driver() + " pfctx 0x08"},
		"HOST-POWER-009": {p, func(f *checks.Facts) { theHost(f).PowerPolicy = "dynamic" }, "power policy static"},
		"HOST-PNIC-STATE-003": {p, func(f *checks.Facts) {
			f.LinksLost = map[string]map[string]int{theHost(f).Name: {"vmnic4": 3, "vmnic0": 1}, "lyon-0": {"vmnic0": 1}}
		}, "the link went down 3 times since"},
		"HOST-PNIC-SPEED-004": {p, func(f *checks.Facts) { theNIC(f).SpeedMbps = 25000 }, "speed 100G"},
		"HOST-PNIC-DRIVER-006": {p, func(f *checks.Facts) { theNIC(f).DriverVersion = "4.24.0.7" },
			"driver " + connectX.Driver() + " 4.23.0.66-2vmw"},
		"HOST-PNIC-FWMATRIX-007": {p, func(f *checks.Facts) { theNIC(f).Firmware = "16.35.4030" }, "firmware 16.35.8008"},
		"HOST-VF-COUNT-010":      {s, func(f *checks.Facts) { n := *theNIC(f).SRIOV; n.VFs, n.Requested = 4, 4; theNIC(f).SRIOV = &n }, "VFs 8"},
		"HOST-VMKNIC-SET-001": {p, func(f *checks.Facts) { theHost(f).Options = map[string]string{"Net.PVRDMAVmknic": "vmk1"} },
			"Net.PVRDMAVmknic vmk0"},
		"HOST-VMKNIC-EXIST-002": {p, vmk0(func(v *backends.VMKernelNIC) { v.IP = "10.1.0.77" }), "address vmk0 10.1.0.3/24"},
		"HOST-VMKNIC-MTU-006":   {p, vmk0(func(v *backends.VMKernelNIC) { v.MTU = 1400 }), "MTU vmk0 1500"},
		"HOST-FW-ALLOW-008": {p, func(f *checks.Facts) {
			theHost(f).Firewall = map[string]backends.Ruleset{"pvrdma": {Enabled: true, Networks: []string{"10.1.0.0/24"}}}
		}, "allowed all addresses"},
		"DVS-VERSION-002": {p, func(f *checks.Facts) { theSwitch(f).Version = "8.0.1" }, "version 8.0.3"},
		"DVS-MEMBER-003":  {p, func(f *checks.Facts) { member(f, "vmnic5") }, "uplinks vmnic4"},
		"DVS-MTU-006":     {p, func(f *checks.Facts) { theSwitch(f).MTU = 9190 }, "MTU 9000"},
		"DVS-PG-VLAN-008": {p, func(f *checks.Facts) { theGroup(f).VLAN = "7"; f.Answers.Switch.VLAN = 7 }, "VLAN 0"},
		"VM-NIC-DVS-019": {p, func(f *checks.Facts) { theVM(f).Adapters[1].MAC = "00:50:56:00:01:99" },
			"RDMA adapters 00:50:56:00:01:02 on RDMA-PG"},
		"GST-OS-001":  {p, func(f *checks.Facts) { theGuest(f).Kernel = "5.15.0-92" }, "kernel 5.15.0"},
		"GST-MTU-012": {p, func(f *checks.Facts) { theGuest(f).Interfaces[1].MTU = 1500 }, "MTU 9000"},
		"GST-GID-019": {p, func(f *checks.Facts) { theGuest(f).RDMA = []backends.VerbsDevice{movedGID(theGuest(f).RDMA[0])} }, "at index 1"},
	}
}

func vmk0(change func(v *backends.VMKernelNIC)) func(f *checks.Facts) {
	return func(f *checks.Facts) {
		v := theHost(f).VMKs[0]
		change(&v)
		theHost(f).VMKs = []backends.VMKernelNIC{v}
	}
}

func member(f *checks.Facts, pnic string) {
	members := map[string]backends.Member{}
	for name, m := range theSwitch(f).Members {
		members[name] = m
	}
	members[theHost(f).Name] = backends.Member{PNICs: []string{pnic}, Status: "up"}
	theSwitch(f).Members = members
}

func movedGID(d backends.VerbsDevice) backends.VerbsDevice {
	id := d.GIDs[0]
	id.Index = 3
	d.GIDs = []backends.GID{id}
	return d
}

func TestDriftIsReportedByItsRow(t *testing.T) {
	cases := driftCases()
	for _, c := range catalogue.Checks() {
		if _, covered := cases[c.ID]; c.Drift != nil && !covered {
			t.Errorf("%s is held against the baseline, and nothing here drifts for it", c.ID)
		}
	}
	for id, tt := range cases {
		f := healthy(tt.mode)
		keepParameters(f)
		f.Baseline.Switches = append([]backends.Switch(nil), f.Inventory.Switches...)
		f.Baseline.PortGroups = append([]backends.PortGroup(nil), f.Inventory.PortGroups...)
		for i := range f.Baseline.VMs {
			f.Baseline.VMs[i].Adapters = append([]backends.Adapter(nil), f.Baseline.VMs[i].Adapters...)
		}
		if found := drifted(f); len(found) > 0 {
			t.Fatalf("%s: told before anything changed: %+v", id, found)
		}
		tt.since(f)
		told := false
		for _, r := range drifted(f) {
			if r.ID != id || !strings.Contains(drift(r), tt.told) {
				continue
			}
			told = true
			if r.Status != checks.Warn && r.Status != checks.Fail || r.Quiet {
				t.Errorf("%s: %s, quiet %t, though it drifted", id, r.Status, r.Quiet)
			}
			if !strings.Contains(r.Target.Name, "2") && r.Target.Type != backends.TypeVCenter && r.Target.Type != backends.TypeSwitch &&
				r.Target.Type != backends.TypePortGroup {
				t.Errorf("%s: told of %s, which has not changed", id, r.Target)
			}
		}
		if !told {
			t.Errorf("%s: not told as %q: %+v", id, tt.told, drifted(f))
		}
	}
}

// keepParameters adds the module parameters that esxcli reports to the baseline.
func keepParameters(f *checks.Facts) {
	for i := range f.Baseline.Hosts {
		h := &f.Baseline.Hosts[i]
		h.System = &backends.HostSystem{Modules: map[string]backends.Fact[backends.Module]{}}
		for name, m := range f.Inventory.Hosts[i].System.Modules {
			kept := map[string]string{"quoted": ""}
			for key, value := range m.Value.Params {
				kept[key] = `"` + value + `"` // as older builds write it
			}
			h.System.Modules[name] = backends.FactOf(backends.Module{Params: kept})
		}
	}
}

// drift returns the evidence about the baseline.
func drift(r checks.Finding) string {
	_, drift, _ := strings.Cut(r.Evidence, "; baseline: ")
	return drift
}

func drifted(f *checks.Facts) []checks.Finding {
	var out []checks.Finding
	for _, r := range catalogue.Run(context.Background(), f, checks.Selection{Uses: f.Answers.Uses()}) {
		if drift(r) != "" {
			out = append(out, r)
		}
	}
	return out
}
