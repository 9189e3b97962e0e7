package torture

import (
	"testing"
	"time"
)

// A VM that takes no part is shut down for the reboot of its host. Killed right then, the resume keeps it off until the host
// is back: started before, it would keep its host from being emptied, since nobody moves it.
func TestKilledWithSomebodyElsesVMOff(t *testing.T) {
	t.Parallel()
	s := serve(t, mode{name: "sriov", scenario: "sriov-drs-manual", hosts: 2, reboot: 100 * time.Millisecond})
	const billing = "VMs.billing-01.On"
	harm := "after:opened:2" // SSH for the firmware, then the VM
	s.killed(harm, s.child(harm, s.apply()...))
	if s.facts()[billing] != "false" {
		t.Skip("it was not off yet") // the order of two hosts is not sure
	}
	if got := s.finish(); got.code != 0 {
		t.Fatalf("resume: exit %d\n%s", got.code, got)
	}
	if is := s.facts()[billing]; is != "true" {
		t.Errorf("after the resume %s is %s", billing, is)
	}
}
