package vsphere_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

func TestEsxcli(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 2, VMs: 1})
	rows, err := c.Esxcli(t.Context(), "esx-01", "rdma", "device", "list")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0]["Name"] != "vmrdma0" || rows[0]["PairedUplink"] != "vmnic2" {
		t.Errorf("%v", rows)
	}
	stats, err := c.Esxcli(t.Context(), "esx-01", "rdma", "device", "stats", "get", "-d", "vmrdma0")
	if err != nil || len(stats) == 0 {
		t.Errorf("%v (%v)", stats, err)
	}
	before := c.Calls()
	if _, err := c.Esxcli(t.Context(), "esx-01", "rdma", "device", "stats", "get", "--device=vmrdma0"); err != nil {
		t.Error(err)
	}
	if n := c.Calls() - before; n != 1 {
		t.Errorf("a command of a known namespace costs %d calls", n)
	}

	ping := []string{"network", "diag", "ping", "-d", "-s", "8972", "-I", "vmk0", "-H", "10.10.0.12"}
	if _, err := c.Esxcli(t.Context(), "esx-01", ping...); errors.Is(err, vsphere.ErrNoCommand) {
		t.Errorf("a flag without a value: %v", err)
	}

	value := `max_vfs=1,2 <&"'> $(reboot)`
	_, err = c.Esxcli(t.Context(), "esx-01", "system", "settings", "advanced", "set", "-o", "/Net/PVRDMAVmknic", "-s", value)
	if err == nil {
		rows, err = c.Esxcli(t.Context(), "esx-01", "system", "settings", "advanced", "list", "-o", "/Net/PVRDMAVmknic")
		if err != nil || len(rows) != 1 || rows[0]["StringValue"] != value {
			t.Errorf("a value with markup reads %v (%v)", rows, err)
		}
	} else if errors.Is(err, vsphere.ErrNoCommand) {
		t.Error(err)
	}
}

func TestEsxcliRefuses(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 1, VMs: 1})
	for _, tt := range []struct {
		name string
		args []string
		none bool // the host has no such command
		kind backends.ErrorKind
	}{
		{"no such namespace", []string{"mellanox", "mft", "mlxconfig", "query"}, true, backends.KindPermanent},
		{"no such command", []string{"rdma", "device", "polish"}, true, backends.KindPermanent},
		{"no such option, which would end the process", []string{"rdma", "device", "list", "--help"}, true, backends.KindPermanent},
		{"option without its value", []string{"rdma", "device", "stats", "get", "-d"}, false, backends.KindPermanent},
		{"stray argument", []string{"rdma", "device", "stats", "get", "-d", "vmrdma0", "more"}, false, backends.KindPermanent},
		{"no such device", []string{"rdma", "device", "stats", "get", "-d", "vmrdma77"}, false, backends.KindPermanent},
		{"nothing", nil, false, backends.KindUsage},
		{"no command", []string{"rdma"}, false, backends.KindUsage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := c.Esxcli(t.Context(), "esx-01", tt.args...)
			check(t, err, tt.kind, "esx-01: run esxcli")
			if strings.Contains(err.Error(), "CLIFault") || strings.Contains(err.Error(), "<") {
				t.Errorf("keys and markup in %v", err)
			}
			if errors.Is(err, vsphere.ErrNoCommand) != tt.none {
				t.Errorf("%v", err)
			}
		})
	}
	_, err := c.Esxcli(t.Context(), "no-such-host", "rdma", "device", "list")
	check(t, err, backends.KindRefused, "there is no host")
}

func TestPrivileges(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 2, VMs: 1})
	want := []string{"System.Read", "Host.Config.NetService", "DVSwitch.Create"}
	hosts := map[backends.Ref][]string{backends.HostRef("esx-01"): want, backends.HostRef("esx-02"): want}
	if lack, err := c.Missing(t.Context(), hosts); err != nil || len(lack) != 0 {
		t.Errorf("the administrator lacks %v (%v)", lack, err)
	}
	reader := dialLab(t, l, vcenter.ReadOnly, vcenter.Password)
	lack, err := reader.Missing(t.Context(), hosts)
	if err != nil {
		t.Fatal(err)
	}
	if len(lack) != 4 || lack[0] != (vsphere.Lack{Entity: "esx-01", Privilege: "Host.Config.NetService"}) {
		t.Errorf("a reader lacks %v", lack)
	}
	for _, site := range []backends.Ref{{Type: backends.TypeVCenter, Name: "vCenter"}, {Type: backends.TypeDatacenter, Name: "DC"}} {
		lack, err := reader.Missing(t.Context(), map[backends.Ref][]string{site: want})
		if err != nil || len(lack) != 2 || lack[0].Entity != site.Name {
			t.Errorf("on %s a reader lacks %v (%v)", site, lack, err)
		}
	}
	s := backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindFirewall, Name: "pvrdma"}
	err = reader.Setters()[s.Kind].Set(t.Context(), s, backends.ValueOf(true), nil)
	check(t, err, backends.KindPermission, "Host.Config.NetService")
	if _, err := reader.Inventory(t.Context(), backends.Scope{Details: true}); err != nil {
		t.Errorf("a reader cannot read: %v", err)
	}
}
