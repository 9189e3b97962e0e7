package catalogue_test

import (
	"context"
	"testing"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Each row of the readiness for 9.0, with a pass and a failure.
func TestReadyForNine(t *testing.T) {
	to, ok := assets.ReleaseOf("9.0.0", 0)
	if !ok {
		t.Fatal("no release 9.0")
	}
	for _, tt := range []struct {
		id     string
		change func(*backends.Inventory)
		want   checks.Status
	}{
		{"READY-VCENTER-001", func(inv *backends.Inventory) {}, checks.Pass},
		{"READY-VCENTER-001", func(inv *backends.Inventory) { inv.VCenter.Version = "8.0.3" }, checks.Fail},
		{"READY-VCENTER-001", func(inv *backends.Inventory) { inv.VCenter.Version = "9.0.0.0" }, checks.Pass},
		{"READY-VCENTER-001", func(inv *backends.Inventory) { inv.VCenter.Version = "new" }, checks.Unknown},
		{"READY-IMAGE-002", func(inv *backends.Inventory) {}, checks.Pass},
		{"READY-IMAGE-002", func(inv *backends.Inventory) { inv.Hosts[0].ManagedBy = nil }, checks.Warn}, // Broadcom KB 379388
		{"READY-IMAGE-002", func(inv *backends.Inventory) { inv.Hosts[0].ManagedBy, inv.Hosts[0].Version = nil, "9.0.0.0" }, checks.Pass},
		{"READY-PATH-003", func(inv *backends.Inventory) {}, checks.Pass},
		{"READY-PATH-003", func(inv *backends.Inventory) { inv.Hosts[0].Version = "7.0.3" }, checks.Warn},
		{"READY-CARD-004", func(inv *backends.Inventory) {}, checks.Pass},
		{"READY-CARD-004", func(inv *backends.Inventory) { inv.Hosts[0].NICs[0].Driver = to8(t).Removed[0] }, checks.Warn},
		{"READY-CARD-004", func(inv *backends.Inventory) { inv.Hosts[0].NICs[0].Driver = "qflge" }, checks.Warn}, // in ESXi 8.0 U3, not in ESX 9.0
		{"READY-DRIVER-005", func(inv *backends.Inventory) {}, checks.Pass},
		{"READY-DRIVER-005", func(inv *backends.Inventory) { inv.Hosts[0].NICs[0].DriverVersion = "4.23.6.2-1OEM.803.0.0.24022510" }, checks.Warn},
		{"READY-DRIVER-005", func(inv *backends.Inventory) { inv.Hosts[0].NICs[0].DriverVersion = "4.23.6.2" }, checks.Unknown},
		{"READY-DVS-006", func(inv *backends.Inventory) {}, checks.Pass},
		{"READY-DVS-006", func(inv *backends.Inventory) { inv.Switches[0].Version = "9.1.0" }, checks.Pass}, // nothing to upgrade
		{"READY-DVS-006", func(inv *backends.Inventory) { inv.Switches[0].Version = "" }, checks.Unknown},
		{"READY-DVS-006", func(inv *backends.Inventory) { inv.Switches[0].Version = "8.0.3" }, checks.Warn},
		{"READY-SLOT-007", func(inv *backends.Inventory) {}, checks.Pass},
		{"READY-SLOT-007", func(inv *backends.Inventory) { inv.VMs[0].Hardware = 19 }, checks.Warn}, // Broadcom KB 407595
		{"READY-SLOT-007", func(inv *backends.Inventory) { inv.VMs[0].Hardware, inv.VMs[0].Firmware = 19, "bios" }, checks.Pass},
	} {
		inv := &backends.Inventory{
			VCenter: backends.VCenter{Version: "9.0.0"},
			Hosts: []backends.Host{{Name: "esx-01", Version: "8.0.3", State: "connected", ManagedBy: []string{"vLCM image"},
				NICs: []backends.NIC{{Device: "vmnic2", Driver: "some_driver", DriverVersion: "4.23.0.66-12vmw.803.0.0.24022510", SpeedMbps: 100000, MaxSpeedMbps: 100000, RDMADevice: "vmrdma0", RoCEv2: true}}}},
			VMs:      []backends.VM{{Name: "vm-01", Host: "esx-01", Hardware: 21, Firmware: "efi"}},
			Switches: []backends.Switch{{Name: "RDMA-DVS", Version: "9.0.0"}},
		}
		tt.change(inv)
		a := answers.Default(answers.PVRDMA)
		a.VMs = []answers.VM{answers.DefaultVM("vm-01")}
		seen := false
		for _, f := range catalogue.Ready(context.Background(), &checks.Facts{Inventory: inv, Answers: a}, to) {
			if f.ID != tt.id {
				continue
			}
			seen = true
			if f.Status != tt.want || f.Evidence == "" || f.Remedy == "" || f.Source == "" {
				t.Errorf("%s: %+v, want %s", tt.id, f, tt.want)
			}
		}
		if !seen {
			t.Errorf("%s: not asked", tt.id)
		}
	}
}

// to8 returns the release that removed drivers.
func to8(t *testing.T) assets.Release {
	t.Helper()
	r, ok := assets.ReleaseOf("8.0.0", 0)
	if !ok || len(r.Removed) == 0 {
		t.Fatal("8.0 removed no driver")
	}
	return r
}

// A vCenter manages hosts of other updates of its generation: a vCenter that is older than the update is not a failure.
func TestReadyWithinAGeneration(t *testing.T) {
	for name, want := range map[string]checks.Status{"8.0.2": checks.Warn, "8.0.3": checks.Pass, "7.0.3": checks.Fail} {
		to, ok := assets.ReleaseOf("8.0.3", 0)
		if !ok {
			t.Fatal("no release 8.0.3")
		}
		f := &checks.Facts{Inventory: &backends.Inventory{VCenter: backends.VCenter{Version: name}}, Answers: answers.Default(answers.PVRDMA)}
		for _, found := range catalogue.Ready(context.Background(), f, to) {
			if found.ID == "READY-VCENTER-001" && found.Status != want {
				t.Errorf("vCenter %s: %s %s, want %s", name, found.Status, found.Evidence, want)
			}
		}
	}
}

// Hardware version 14 is the newest of ESXi 6.7: no upgrade is recommended there.
func TestHardwareOfOlderHosts(t *testing.T) {
	for _, tt := range []struct {
		esxi, build string
		hardware    int
		want        checks.Status
	}{
		{"6.7.0", "8169922", 14, checks.Pass},
		{"6.7.0", "14320388", 14, checks.Warn}, // Update 2 and later run 15
		{"6.7.0", "14320388", 15, checks.Pass},
		{"6.7.0", "8169922", 13, checks.Fail},
		{"7.0.0", "15843807", 14, checks.Warn},
		{"7.0.0", "15843807", 17, checks.Pass},
		{"8.0.3", "24022510", 17, checks.Pass},
		{"", "", 14, checks.Warn},
	} {
		a := answers.Default(answers.PVRDMA)
		a.VMs = []answers.VM{answers.DefaultVM("vm-01")}
		f := &checks.Facts{Answers: a, Inventory: &backends.Inventory{
			Hosts: []backends.Host{{Name: "esx-01", Version: tt.esxi, Build: tt.build, State: "connected"}},
			VMs:   []backends.VM{{Name: "vm-01", Host: "esx-01", Hardware: tt.hardware}},
		}}
		for _, found := range catalogue.Run(context.Background(), f, checks.Selection{Only: []string{"VM-HWVER-002"}}) {
			if found.Status != tt.want {
				t.Errorf("vmx-%d on ESXi %s: %s %s, want %s", tt.hardware, tt.esxi, found.Status, found.Evidence, tt.want)
			}
		}
	}
}
