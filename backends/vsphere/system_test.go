package vsphere_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	events "github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/system"
)

const depot = "/vmfs/volumes/shared-01/rdma/"

func host1(kind backends.Kind, name string) backends.Setting {
	return backends.Setting{Target: backends.HostRef("esx-01"), Kind: kind, Name: name}
}

func nowhere(s backends.Setting) backends.Setting {
	s.Target = backends.HostRef("no-such-host")
	return s
}

func TestSystemContractOnLab(t *testing.T) {
	testclass.Plain(t)
	l, c := startLab(t, lab.Options{Hosts: 2, VMs: 1})
	set := c.Setters()
	t.Run("power policy", func(t *testing.T) {
		s := host1(backends.KindPower, "")
		settertest.Run(t, settertest.Case{Setter: set[s.Kind], Setting: s, Missing: nowhere(s), Writes: changes(l, events.HostHardware),
			Values: []backends.Value{backends.ValueOf("static"), backends.ValueOf("low")}})
	})
	t.Run("VFs", func(t *testing.T) {
		s := host1(backends.KindVFs, "0000:3b:00.0")
		settertest.Run(t, settertest.Case{Setter: set[s.Kind], Setting: s, Missing: nowhere(s), Writes: changes(l, events.HostHardware),
			Values: []backends.Value{backends.ValueOf(backends.VFSpec{Enabled: true, VFs: 8}),
				backends.ValueOf(backends.VFSpec{Enabled: true, VFs: 16}),
				backends.ValueOf(backends.VFSpec{})}})
	})
	t.Run("passthrough", func(t *testing.T) {
		s := host1(backends.KindPassthrough, "0000:af:00.0")
		settertest.Run(t, settertest.Case{Setter: set[s.Kind], Setting: s, Missing: nowhere(s), Writes: changes(l, events.HostHardware),
			Values: []backends.Value{backends.ValueOf(true), backends.ValueOf(false)}})
	})
	t.Run("module parameters", func(t *testing.T) {
		s := host1(backends.KindModuleParams, "nmlx5_core")
		settertest.Run(t, settertest.Case{Setter: set[s.Kind], Setting: s, Missing: nowhere(s), Writes: changes(l, events.HostModule),
			Values: []backends.Value{backends.ValueOf(map[string]string{"max_vfs": "0,0,8,7", "pfctx": "0x08", "pfcrx": "0x08"}),
				backends.ValueOf(map[string]string{"ecn": "1"}), backends.ValueOf(map[string]string{})}})
	})
}

func TestComponentContractOnLab(t *testing.T) {
	testclass.Plain(t)
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Scenario: "bare"})
	c.Depots([]string{depot + "mft-4.28.0.92-0.x86_64.vib", depot + "nmst-4.28.0.92-1OEM.801.0.0.21495797.x86_64.vib"})
	s := host1(backends.KindComponent, "mft")
	settertest.Run(t, settertest.Case{Setter: c.Setters()[s.Kind], Setting: s, OneWay: true, Missing: nowhere(s),
		Writes: changes(l, events.HostImage),
		Values: []backends.Value{backends.ValueOf("4.28.0.92-0")}})
	sys := asked(t, c, t.Context(), vsphere.SystemOptions{Ask: []system.Question{system.VIBs, system.NextVIBs}}, "esx-01")["esx-01"]
	if !sys.VIBs.Known() || sys.NextVIBs.Value["mft"].Version != "4.28.0.92-0" || sys.VIBs.Value["mft"].Version != "" {
		t.Errorf("%+v", sys)
	}
}
