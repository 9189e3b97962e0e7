package report_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

func TestEnvironmentOf(t *testing.T) {
	inv := &backends.Inventory{
		VCenter: backends.VCenter{Version: "8.0.3", Build: "24022515"},
		Switches: []backends.Switch{{Name: "RDMA-DVS", Version: "8.0.3", MTU: 9000, Uplinks: []string{"Uplink 1"},
			Members: map[string]backends.Member{"esx-01": {}, "esx-02": {}}}},
		Hosts: []backends.Host{{
			Name: "esx-01", Version: "8.0.3", Build: "24022510", Vendor: "Maker", CPUModel: "CPU", Sockets: 2, Cores: 48, MemoryMB: 524288,
			PowerPolicy: "static",
			NICs: []backends.NIC{
				{Device: "vmnic0", PCI: "0000:1a:00.0", Switch: "vSwitch0", Driver: "ixgben"},
				{Device: "vmnic2", Model: "ConnectX-5", PCI: "0000:3b:00.0", NUMA: 1, SpeedMbps: 100000, Driver: "nic_driver", DriverVersion: "4.23",
					Firmware: "16.35.4030", RDMADevice: "vmrdma0", Switch: "RDMA-DVS"},
				{Device: "vmnic3", PCI: "0000:3b:00.1", NUMA: -1, Driver: "nic_driver", Eligible: true},
				{Device: "vmnic4", PCI: "0000:af:00.0", Driver: "bnxtnet", Switch: "RDMA-DVS"},
			},
			GPUs: []backends.GPU{{Model: "A100"}, {Model: "A100"}},
		}},
		VMs: []backends.VM{{Name: "vm-01", Host: "esx-01", Hardware: 19}},
		Guests: []backends.Guest{
			{VM: "vm-01", Pretty: "Ubuntu 22.04.4 LTS", Kernel: "5.15.0", Packages: map[string]string{"rdma-core": "39.0", "libibverbs1": "38.0"},
				Perftest: "5.96",
				RDMA: []backends.VerbsDevice{{Name: "rocep19s0f1", Driver: "vmw_pvrdma", State: "PORT_ACTIVE", ActiveMTU: 4096, RateGbps: 2.5,
					Firmware: "3.0.000"}}},
			{VM: "vm-02", OS: "rhel", Version: "9.4", Packages: map[string]string{"libibverbs": "48.0"}},
		},
	}
	inv.Hosts[0].System = &backends.HostSystem{
		Firmware:   map[string]backends.Firmware{"0000:3b:00.0": {PSID: "MT_0000000012"}},
		Neighbours: backends.FactOf(map[string]backends.Neighbour{"vmnic2": {Switch: "leaf-01", Port: "Ethernet1/3"}}),
	}
	want := &report.Environment{
		VCenter:  "8.0.3 build 24022515",
		Switches: []report.EnvSwitch{{Name: "RDMA-DVS", Version: "8.0.3", MTU: 9000, Uplinks: 1, Hosts: 2}},
		Hosts: []report.EnvHost{{
			Name: "esx-01", Version: "8.0.3", Build: "24022510", Machine: "Maker", CPU: "CPU", Sockets: 2, Cores: 48, MemoryMB: 524288,
			Power: "static", GPUs: []string{"A100", "A100"},
			NICs: []report.EnvNIC{
				{Device: "vmnic2", Model: "ConnectX-5", PCI: "0000:3b:00.0", NUMA: 1, SpeedMbps: 100000, Driver: "nic_driver 4.23",
					Firmware: "16.35.4030", PSID: "MT_0000000012", RDMADevice: "vmrdma0", Switch: "RDMA-DVS", Neighbour: "leaf-01 Ethernet1/3"},
				{Device: "vmnic3", PCI: "0000:3b:00.1", NUMA: -1, Driver: "nic_driver", PSID: "MT_0000000012"},
				{Device: "vmnic4", PCI: "0000:af:00.0", Driver: "bnxtnet", Switch: "RDMA-DVS"},
			},
		}},
		Guests: []report.EnvGuest{
			{VM: "vm-01", Host: "esx-01", Hardware: 19, OS: "Ubuntu 22.04.4 LTS", Kernel: "5.15.0", RDMACore: "39.0", Perftest: "5.96",
				Devices: []string{"rocep19s0f1: vmw_pvrdma, PORT_ACTIVE, MTU 4096, 2.5 Gb/s, firmware 3.0.000"}},
			{VM: "vm-02", OS: "rhel 9.4", RDMACore: "48.0"},
		},
	}
	got := report.EnvironmentOf(inv)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	b, err := json.Marshal(report.Report{Environment: got})
	if err != nil {
		t.Fatal(err)
	}
	var again report.Report
	if err := json.Unmarshal(b, &again); err != nil || cmp.Diff(got, again.Environment) != "" {
		t.Errorf("the environment does not survive report.json: %v", err)
	}
	inv.Hosts[0].System = nil
	if psid := report.EnvironmentOf(inv).Hosts[0].NICs[0].PSID; psid != "" {
		t.Errorf("PSID %q without anybody having been asked", psid)
	}
}
