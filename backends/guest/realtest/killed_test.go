//go:build e2e

package realtest_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"
	"time"
)

// killed kills the program with SIGKILL while a command of the first guest is at work, which real sshd leaves running, and
// rolls back: the guests are what they were, and nothing of ours is left in them.
func (s *site) killed(good string, bare []map[string]string, what, process string) {
	s.scenario("killed while "+what+" works, then rolled back", func(t *testing.T) {
		guest := s.guests[0]
		before := s.runs()
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), s.bin, "apply", "-f", good, "--yes")
		cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		// The brackets keep the pattern from matching the shell that looks for it.
		if said, err := guest.try(fmt.Sprintf("for i in $(seq 1500); do pgrep -f '%s' >/dev/null && exit 0; sleep 0.1; done; exit 1", process)); err != nil {
			_ = cmd.Process.Kill()
			<-ended
			t.Fatalf("%s was never seen: %v %s\n%s", what, err, said, lastPart(out.String(), 30))
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatalf("the program had ended before: %v\n%s", err, lastPart(out.String(), 30))
		}
		<-ended
		killed := time.Now()
		run := s.newRun(before)
		s.must(0, "rollback", run, "--yes")
		t.Logf("rolled back %s after the kill", time.Since(killed).Round(time.Second))
		s.unchanged(bare)
		for _, m := range s.guests {
			if left := m.run("ls -d /run/rdma-setup /var/lib/rdma-setup /boot/*.new /var/tmp/rdma-setup* 2>/dev/null; pgrep -fl '[r]dma-setup' || :; dpkg --audit"); left != "" {
				t.Errorf("%s: left behind: %s", m.name, left)
			}
		}
	})
}
