package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// An adapter that vCenter does not list for a guest OS (GuestOsDescriptor.supportedEthernetCard) is a warning: adapters also work
// in guests for which the list omits them.
func TestAdapterThatVCenterDoesNotList(t *testing.T) {
	for name, c := range map[string]struct {
		listed []string
		has    bool
		skip   []string
		warned bool
		old    bool
	}{
		"not read":           {nil, false, nil, false, false},
		"listed":             {[]string{"VirtualVmxnet3", "VirtualVmxnet3Vrdma"}, false, nil, false, false},
		"not listed":         {[]string{"VirtualVmxnet3"}, false, nil, true, false},
		"guest OS unknown":   {[]string{}, false, nil, true, false},
		"skipped":            {[]string{"VirtualVmxnet3"}, false, []string{"VM-NIC-GUESTOS-032"}, false, false},
		"it has one already": {[]string{"VirtualVmxnet3"}, true, nil, false, false},
		"it is upgraded":     {[]string{"VirtualVmxnet3"}, false, nil, false, true}, // the list is for the version before the upgrade
	} {
		t.Run(name, func(t *testing.T) {
			inv := newInventory(2)
			v := &inv.VMs[0]
			if v.GuestID, v.GuestAdapters = "otherLinux64Guest", c.listed; c.has {
				v.Adapters = append(v.Adapters, backends.Adapter{Label: "Network adapter 2", Type: "pvrdma", MAC: "00:50:56:00:00:99",
					PortGroup: "RDMA-PG", Switch: "RDMA-DVS"})
			}
			a := newAnswers(inv)
			if c.old {
				v.Hardware, a.VMs[0].Hardware = 12, answers.HardwareUpgrade
			}
			p, err := recipe.Build(a, inv, plan.Options{Skip: c.skip})
			if err != nil {
				t.Fatal(err)
			}
			if warned := slices.ContainsFunc(p.Notes, func(n string) bool {
				return strings.Contains(n, "vm-01") && strings.Contains(n, "does not list pvrdma adapters")
			}); warned != c.warned {
				t.Errorf("warned %t: %q", warned, p.Notes)
			}
		})
	}
}
