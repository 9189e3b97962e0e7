package vcenter_test

import (
	"fmt"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/vcenter"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// With several rails, hosts are compared by all their GPUs: which of them the VMs of a rail use differs from host to host.
func TestSlotsOfRails(t *testing.T) {
	inv := &backends.Inventory{}
	for i, vm := range []string{"vm-01", "vm-02"} {
		h := backends.Host{Name: fmt.Sprintf("esx-%02d", i+1), State: "connected"}
		for n := range 2 {
			h.GPUs = append(h.GPUs, backends.GPU{PCI: fmt.Sprintf("0000:3%d:00.0", n), Capable: true})
		}
		inv.Hosts = append(inv.Hosts, h)
		inv.VMs = append(inv.VMs, backends.VM{Name: vm, Host: h.Name, Passthrough: []string{h.GPUs[i].PCI}})
	}
	a := answers.Default(answers.GPUDirect)
	a.FromRails([]answers.Rail{{Name: "rail-1", NIC: answers.NIC{Device: "0000:40:00.0"}},
		{Name: "rail-2", NIC: answers.NIC{Device: "0000:41:00.0"}}})
	a.VMs = []answers.VM{answers.DefaultVM("vm-01"), answers.DefaultVM("vm-02")}
	got := checks.Ask(t.Context(), vcenter.Checks(), &checks.Facts{Answers: a, Inventory: inv},
		checks.Selection{Only: []string{"CL-SLOT-007"}})
	if len(got) != 2 || got[0].Status != checks.Pass || got[1].Status != checks.Pass {
		t.Errorf("%+v", got)
	}
}
