package torture

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// TestKilledAroundAFirmwareUpdate kills a run five times around the update of a card's firmware, each time in the resume of the
// previous attempt: before the update, at its start, while it writes, when the card contains the new firmware, and when the host
// has loaded it. The last resume reaches the state of an undisturbed run.
func TestKilledAroundAFirmwareUpdate(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	m := mode{name: "sriov", scenario: "sriov-firmware", hosts: 1, reboot: 200 * time.Millisecond,
		clock: timing.Clock{Real: true, Scale: 0.05},
		// A resume to which vCenter reports the new firmware does not load the tools to read it.
		stays: regexp.MustCompile(`\.MST$`)}
	const node = "host/esx-01/firmware-image/0000:3b:00.0"
	wish := func(s *site) {
		s.answers = s.rewrite(s.answers, func(a *answers.Answers) {
			a.SRIOV.Firmware = map[string]string{
				"MT_0000000009": "[shared-01] rdma/fw-ConnectX5-rel-16_35_8008-MCX556A-ECU_Ax-UEFI-14.29.15-FlexBoot-3.6.902.bin"}
			a.VMs[0].Trust = answers.Untrusted
		})
	}
	calm := serve(t, m)
	wish(calm)
	if got := calm.here(0, calm.apply()...); got.code != 0 {
		t.Fatalf("undisturbed: exit %d\n%s", got.code, got)
	}

	s := serve(t, m)
	wish(s)
	s.killed("before", s.child("before:intent "+node+":1", s.apply()...))
	id, _ := s.run()
	again := []string{"resume", id, "--yes", "-o", "json"}
	s.killed("begun", s.child("after:intent "+node+":1", again...))
	middle := s.start("", again...)
	s.until("flint writes", func() (burning bool) {
		s.lab.World().View(func(st *world.State) { burning = st.Host("esx-01").Card("0000:3b:00.0").Burning })
		return burning
	})
	testclass.OK(t, middle.cmd.Process.Kill())
	s.killed("in the middle", middle.end())
	s.killed("written", s.child("before:outcome "+node+":1", again...))
	s.killed("loaded", s.child("after:closed host/esx-01/host-reboot:1", again...))
	if got := s.finish(); got.code != 0 {
		t.Fatalf("the last resume: exit %d\n%s", got.code, got)
	}
	if diff := cmp.Diff(s.leaving(calm.facts()), s.leaving(s.facts())); diff != "" {
		t.Errorf("after five kills (-undisturbed +got):\n%s", diff)
	}
	s.lab.World().View(func(st *world.State) {
		if c := st.Host("esx-01").Card("0000:3b:00.0"); c.Version != "16.35.8008" || c.Flash != "" {
			t.Errorf("the card runs %s and holds %s", c.Version, c.Held())
		}
	})
}

// TestKilledBeforeAColdBoot updates a card that loads new firmware only after a power cycle. The run ends without a VF for the VM,
// killed or not, and a resume does not reboot. After the power cycle it continues, with one reboot in total.
func TestKilledBeforeAColdBoot(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	m := mode{name: "sriov", scenario: "sriov-firmware-cold", hosts: 1, reboot: 200 * time.Millisecond,
		clock: timing.Clock{Real: true, Scale: 0.05}}
	s := serve(t, m)
	s.answers = s.rewrite(s.answers, func(a *answers.Answers) {
		a.SRIOV.Firmware = map[string]string{
			"MT_0000000009": "[shared-01] rdma/fw-ConnectX5-rel-16_35_8008-MCX556A-ECU_Ax-UEFI-14.29.15-FlexBoot-3.6.902.bin"}
		a.VMs[0].Trust = answers.Untrusted
	})
	const node = "host/esx-01/active-firmware/0000:3b:00.0"
	s.killed("looking", s.child("after:intent "+node+":1", s.apply()...))
	waits := func() {
		t.Helper()
		if got := s.finish(); got.code != 5 || !strings.Contains(got.String(), "still runs firmware 16.35.4030 after the reboot") {
			t.Fatalf("before the power cycle: exit %d\n%s", got.code, got)
		}
		s.lab.World().View(func(st *world.State) {
			for _, v := range st.VMs {
				if slices.ContainsFunc(v.Adapters, func(a *world.Adapter) bool { return a.Type == world.SRIOV }) {
					t.Errorf("%s has a VF of the old firmware", v.Name)
				}
			}
		})
	}
	waits()
	waits()
	testclass.OK(t, s.lab.World().PowerCycle("esx-01"))
	if got := s.finish(); got.code != 0 {
		t.Fatalf("after the power cycle: exit %d\n%s", got.code, got)
	}
	reboots := 0
	for _, e := range s.lab.World().Log.Events() {
		if e.What == world.HostDown && e.Detail == "reboot" {
			reboots++
		}
	}
	if reboots != 1 {
		t.Errorf("%d reboots", reboots)
	}
	if got := s.back(); got.code != 0 {
		t.Errorf("rollback: exit %d\n%s", got.code, got)
	}
}
