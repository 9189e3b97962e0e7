//go:build e2e

package cmd_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// VFs in guests of every system, with consistent settings: address, MTU and traffic class are persistent, a second apply has
// nothing to do, and the rollback leaves nothing on the guests' disks.
func TestE2ESRIOVOnEverySystem(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "3", "--vms", "6", "--scenario", "sriov-ready", "--systems",
		"debian-12,rhel-8,rhel-9,centos-8,ubuntu-22.04,rocky-9")
	start := s.hardwareFacts()
	file := s.answers("sriov")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, "\ntuning: {latency: high, numa: nic}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := s.must(0, "apply", "-f", file, "--yes", "-o", "json")
	passed(t, out, 12)
	for _, v := range s.guests() {
		s.restart(v)
		if got := s.guest(v,
			"ibv_devinfo; cat /sys/kernel/config/rdma_cm/*/ports/1/default_roce_tos; /usr/sbin/ip -o addr show"); !strings.Contains(got,
			"PORT_ACTIVE") ||
			!strings.Contains(got, "active_mtu:\t\t4096") || !strings.Contains(got, "\n106\n") || !strings.Contains(got, "192.168.50.") {
			t.Errorf("%s after a reboot:\n%s", v.Name, got)
		}
	}
	again, _ := s.must(0, "apply", "-f", file, "--yes", "-o", "json")
	if res := result(t, again); res.Status != "unchanged" {
		t.Errorf("a second apply: %+v", res)
	}
	s.must(0, "rollback", "--yes")
	if diff := cmp.Diff(start, s.hardwareFacts()); diff != "" {
		t.Errorf("before and after the rollback:\n%s", diff)
	}
}
