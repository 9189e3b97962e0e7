package vsphere_test

import (
	"testing"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

const option = "Net.PVRDMAVmknic"

// listOption adds to every host the option that real hosts always list.
func listOption(m *simulator.Model) {
	for _, e := range m.Map().All("HostSystem") {
		host := m.Map().Get(e.Reference()).(*simulator.HostSystem)
		manager := m.Map().Get(*host.ConfigManager.AdvancedOption).(*simulator.OptionManager)
		manager.Setting = append(manager.Setting, &types.OptionValue{Key: option, Value: ""})
	}
}

func TestHostSettingsOnStock(t *testing.T) {
	w := start(t, nil, listOption)
	set := w.dial(t).Setters()
	host, nobody := backends.HostRef("DC0_C0_H1"), backends.HostRef("no-such-host")

	t.Run("option", func(t *testing.T) {
		s := backends.Setting{Target: host, Kind: backends.KindOption, Name: option}
		settertest.Run(t, settertest.Case{
			Setter: set[s.Kind], Setting: s, Values: []backends.Value{backends.ValueOf("vmk0"), backends.ValueOf("vmk1")},
			Missing: backends.Setting{Target: nobody, Kind: s.Kind, Name: option},
		})
	})
	t.Run("firewall", func(t *testing.T) {
		s := backends.Setting{Target: host, Kind: backends.KindFirewall, Name: "pvrdma"}
		settertest.Run(t, settertest.Case{
			Setter: set[s.Kind], Setting: s, Values: []backends.Value{backends.ValueOf(true), backends.ValueOf(false)},
			Missing: backends.Setting{Target: host, Kind: s.Kind, Name: "no-such-ruleset"},
		})
	})
}

func TestVMSettingsOnStock(t *testing.T) {
	testclass.Plain(t)
	w := start(t, func(m *simulator.Model) { m.Portgroup = 2 }, nil)
	c := w.dial(t)
	set := c.Setters()
	vm := backends.VMRef("DC0_C0_RP0_VM0")
	powerOff(t, w, vm.Name)

	t.Run("hardware", func(t *testing.T) {
		s := backends.Setting{Target: vm, Kind: backends.KindHardware}
		settertest.Run(t, settertest.Case{
			Setter: set[s.Kind], Setting: s, Values: []backends.Value{backends.ValueOf(19), backends.ValueOf(21)}, OneWay: true,
			Missing: backends.Setting{Target: backends.VMRef("no-such-vm"), Kind: s.Kind},
		})
		if err := set[s.Kind].Set(t.Context(), s, backends.ValueOf(14), nil); backends.KindOf(err) != backends.KindPermanent {
			t.Errorf("lowered: %v", err)
		}
	})
	t.Run("memory", func(t *testing.T) {
		s := backends.Setting{Target: vm, Kind: backends.KindMemory}
		settertest.Run(t, settertest.Case{
			Setter: set[s.Kind], Setting: s, Values: []backends.Value{
				backends.ValueOf(backends.MemorySpec{Locked: true, ReservationMB: 32}), backends.ValueOf(backends.MemorySpec{ReservationMB: 8}),
			},
		})
	})
	t.Run("adapter", func(t *testing.T) {
		s := backends.Setting{Target: vm, Kind: backends.KindAdapter, Name: "DC0_DVPG1"}
		spec := backends.AdapterSpec{Type: "pvrdma", PortGroup: s.Name, Switch: "DVS0", Protocol: "rocev2", Start: true}
		v1 := spec
		v1.Protocol = "rocev1"
		settertest.Run(t, settertest.Case{
			Setter: set[s.Kind], Setting: s, Values: []backends.Value{backends.ValueOf(spec), backends.ValueOf(v1)}, Removes: true,
		})
	})
}

func powerOff(t *testing.T, w *world, name string) {
	t.Helper()
	vm := w.model.Map().Any("VirtualMachine")
	for _, e := range w.model.Map().All("VirtualMachine") {
		if v := w.model.Map().Get(e.Reference()).(*simulator.VirtualMachine); v.Name == name {
			v.Runtime.PowerState, v.Summary.Runtime.PowerState = types.VirtualMachinePowerStatePoweredOff, types.VirtualMachinePowerStatePoweredOff
			return
		}
	}
	t.Fatalf("no VM %s (there is %s)", name, vm.Reference())
}
