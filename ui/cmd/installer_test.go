package cmd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// The scale of a clock on which an hour takes 1.2 s, and the duration of 90 minutes on it.
const (
	hour     = 1200 * time.Millisecond
	installs = 90 * hour / 60
)

// TestNinetyMinuteInstaller: an installer that takes 90 minutes on the scaled clock of the lab finishes during apply, and during
// the rollback. If the operator sets a shorter timeout, the run fails and reports it.
func TestNinetyMinuteInstaller(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	scaled := float64(hour) / float64(time.Hour)
	for name, c := range map[string]struct {
		flags []string
		takes time.Duration
		exit  int
		says  string
	}{
		"the setter's limit": {nil, installs, 0, "install MLNX_OFED"},
		// The limit applies to each operation: those before are not that slow even on a busy machine.
		"the operator's limit": {[]string{"--operation-timeout", "5s"}, time.Minute, 5, "not done within 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, file := sriovBench(t, lab.Options{Scenario: "sriov-ready", Hosts: 1, VMs: 1, Commands: timing.Clock{Real: true, Scale: scaled},
				Faults: []string{"vm=vm-01,command=mlnxofedinstall,nth=1,do=slow:" + c.takes.String()}})
			file = edited(t, file, "sriov:", "measure: {bandwidth: false, latency: false}\nqos: {lossless: none}\nsriov:")
			file = edited(t, file, "  persist: true",
				"  persist: true\n  ofed: [/mnt/share/ofed/MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu20.04-x86_64.tgz, "+
					"/mnt/share/ofed/MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64.tgz]")
			began := time.Now()
			out, errs := b.must(c.exit, append([]string{"apply", "-f", file, "--yes"}, c.flags...)...)
			if !strings.Contains(out+errs, c.says) {
				t.Errorf("it does not say %q:\n%s%s", c.says, out, errs)
			}
			if c.exit != 0 {
				return
			}
			if took := time.Since(began); took < installs {
				t.Errorf("the run took %s, less than the installer", took)
			}
			b.must(0, "rollback", "--yes")
		})
	}
}
