//go:build e2e

package realtest_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// killed kills the program with SIGKILL while a command of the first guest runs, which real sshd does not end, and rolls back: the
// guests are as before, and nothing of this program is left in them.
func (s *site) killed(answers string, bare []map[string]string, what, process string) {
	s.scenario("killed while "+what+" works, then rolled back", func(t *testing.T) {
		guest := s.guests[0]
		before := s.runs()
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), s.bin, "apply", "-f", answers, "--yes")
		cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		// The brackets keep the pattern from matching the shell that runs pgrep.
		if said, err := guest.try(fmt.Sprintf("for i in $(seq 1500); do pgrep -f '%s' >/dev/null && exit 0; sleep 0.1; done; exit 1",
			process)); err != nil {
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
		s.nothingLeft()
	})
}

// nothingLeft checks that no guard, lock, working directory, unit, process or partial file of this program is left in the guests,
// and nothing that dpkg has unpacked in part.
func (s *site) nothingLeft() {
	s.t.Helper()
	for _, m := range s.guests {
		if left := m.run("find / /run /tmp -xdev -name '*rdma-setup*' -o -xdev -name '*.dpkg-new'\nls -d /boot/*.new 2>/dev/null\n" +
			"systemctl list-units --all --no-legend --no-pager --plain 'rdma-setup*'\npgrep -fl '[r]dma-setup' || :\ndpkg --audit"); left != "" {
			s.t.Errorf("%s: left behind: %s", m.name, left)
		}
	}
}

const (
	// The image that the guests are created from does not renew its RAM disk (customize.sh): here it does.
	renewing    = "sed -i s/^update_initramfs=no/update_initramfs=yes/ /etc/initramfs-tools/update-initramfs.conf"
	notRenewing = "sed -i s/^update_initramfs=yes/update_initramfs=no/ /etc/initramfs-tools/update-initramfs.conf"

	// A networkctl like that of systemd 239 (EL 8, Ubuntu 18.04) has neither reload nor reconfigure, which were added in 244;
	// without them, netplan apply does the work.
	oldNetworkctl = `cat >/usr/local/bin/networkctl <<'END'
#!/bin/sh
case $1 in reload | reconfigure) echo "Unknown operation $1." >&2; exit 1 ;; esac
exec /usr/bin/networkctl "$@"
END
chmod 755 /usr/local/bin/networkctl`
	ownNetworkctl = "rm -f /usr/local/bin/networkctl"

	ramDisks = "for i in /boot/initrd.img-*; do echo \"$i\"; lsinitramfs \"$i\" | LC_ALL=C sort || exit 1; done"
)

// killedInside kills the program while commands run in a guest that has the packages but is not set up: the renewal of the initial
// RAM disk and netplan apply.
func (s *site) killedInside(good string) {
	guest := s.guests[0]
	s.scenario("the guest renews its RAM disk, and its networkctl is older", func(*testing.T) { guest.run(renewing + "\n" + oldNetworkctl) })
	defer s.scenario("as the guest was", func(*testing.T) { guest.run(notRenewing + "\n" + ownNetworkctl) })
	bare := s.facts()
	disks := guest.run(ramDisks)
	s.killed(good, bare, "update-initramfs", "^/bin/sh /usr/sbin/[m]kinitramfs")
	// The guest's original one was made before rdma-core, whose hook adds files of its own: there may be more, but nothing may be
	// missing.
	s.scenario("the RAM disk is whole, and holds nothing of ours", func(t *testing.T) {
		now := strings.Split(guest.run(ramDisks), "\n")
		for file := range strings.SplitSeq(disks, "\n") {
			if !slices.Contains(now, file) {
				t.Errorf("%s is gone", file)
			}
		}
		if i := slices.IndexFunc(now, func(file string) bool { return strings.Contains(file, "rdma-setup") }); i >= 0 {
			t.Errorf("it holds %s", now[i])
		}
	})
	s.scenario("without a RAM disk to renew", func(*testing.T) { guest.run(notRenewing) })
	s.killed(good, s.facts(), "netplan apply", "^/usr/bin/python3 .*[n]etplan apply")
}
