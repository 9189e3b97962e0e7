package vsphere_test

import (
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// The measured duration of a reboot ends when the host is connected again, which is after its task has ended.
func TestRebootDurationIncludesReconnecting(t *testing.T) {
	const reboot, boot = 300 * time.Millisecond, 10 * time.Millisecond
	_, c := startLab(t, lab.Options{Hosts: 2, VMs: 2, RebootTime: reboot, BootTime: boot})
	host, vm := backends.HostRef("esx-02"), backends.VMRef("vm-01")
	through(t, c.Brackets()[backends.BracketMaintenance], host, backends.Absent)
	for range 2 {
		through(t, c.Brackets()[backends.BracketReboot], host, backends.Absent)
	}
	through(t, c.Brackets(vsphere.BracketOptions{Tools: true})[backends.BracketVMPower], vm, backends.Absent)
	took, err := c.Took(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(took.Reboot) != 2 || len(took.Evacuate) != 3 || len(took.Shutdown) != 1 {
		t.Fatalf("%+v", took)
	}
	if d := backends.Median(took.Reboot); d < reboot || d > time.Minute {
		t.Errorf("a reboot took %s", d)
	}
}
