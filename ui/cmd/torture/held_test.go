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
	harm := "after:opened:4" // SSH on both hosts for the proof of the log-ins, SSH for the firmware, then the VM
	s.killed(harm, s.child(harm, s.apply()...))
	for n := 0; s.facts()[billing] != "false"; n++ { // the order of two hosts is not sure
		if n == 6 {
			t.Fatalf("%s is never off", billing)
		}
		id, _ := s.run()
		harm = "after:opened:3"
		s.killed(harm, s.child(harm, "resume", id, "--yes", "-o", "json"))
	}
	if got := s.finish(); got.code != 0 {
		t.Fatalf("resume: exit %d\n%s", got.code, got)
	}
	if is := s.facts()[billing]; is != "true" {
		t.Errorf("after the resume %s is %s", billing, is)
	}
}
