package vcenter_test

import (
	"testing"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// DRS in manual mode does not evacuate a host. A host is also not evacuated if that would violate HA's failover level.
func TestWhenDRSEvacuatesAHost(t *testing.T) {
	for name, empties := range map[string]bool{"sriov-half": true, "sriov-drs-manual": false, "sriov-ha": false} {
		t.Run(name, func(t *testing.T) {
			c := start(t, scenario.Spec{Hosts: 3, VMs: 3, Scenario: name})
			task, err := c.host("esx-01").EnterMaintenanceMode(c.ctx, 1, false, nil)
			err = c.done(task, err)
			if empties {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, err, "Timedout", "Operation timed out.")
		})
	}
}

func TestHAKeepsMemoryForLostHosts(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 3, VMs: 3, Scenario: "sriov-ha-full"})
	c.powerOff("vm-02")
	big := c.vmMO("memory-01", "config.hardware").Config.Hardware.MemoryMB
	if err := c.world.Update(func(s *world.State) ([]world.Event, error) {
		s.VM("vm-02").Reserved = 2*s.Hosts[0].MemoryMB - int64(big) + 1
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	task, err := c.vm("vm-02").PowerOn(c.ctx)
	refused(t, c.done(task, err), "InsufficientFailoverResourcesFault", "Insufficient resources to satisfy configured failover level for vSphere HA.")
}

// vSAN prevents maintenance mode while it resyncs data for another host.
func TestVSANCopiesAfterAReboot(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 2, VMs: 1, Scenario: "sriov-vsan"})
	c.powerOff("vm-01")
	c.reboot("esx-01")
	task, err := c.host("esx-02").EnterMaintenanceMode(c.ctx, 5, false, &types.HostMaintenanceSpec{VsanMode: &types.VsanHostDecommissionMode{
		ObjectAction: string(types.VsanHostDecommissionModeObjectActionEnsureObjectAccessibility)}})
	refused(t, c.done(task, err), "VsanFault", "Failed to enter maintenance mode in the current vSAN data migration mode due to insufficient nodes or disk "+
		"space in the cluster. Retry operation in another mode or after adding more resources to the cluster.")
	r, err := c.esxcli("esx-02", "vsan", "debug", "resync", "summary", "get")
	if err != nil || len(r.Values) != 1 || r.Values[0]["TotalBytesLeftToResync"][0] != "4294967296" {
		t.Errorf("%+v, %v", r, err)
	}
}
