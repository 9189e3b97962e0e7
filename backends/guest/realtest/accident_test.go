//go:build e2e

package realtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// again starts a machine with its old disk after a power failure.
func (m *machine) again(ctx context.Context) error {
	select {
	case <-m.ended:
	case <-ctx.Done():
		return errors.New("the guest is still on")
	}
	if err := m.power(); err != nil {
		return err
	}
	return m.up(ctx, "")
}

// older installs the ib_send_bw of Debian 11 in guest-2, ahead of the distribution's; both run few iterations.
func (s *site) older() {
	s.t.Helper()
	second := s.guests[1]
	if second.run("ls /srv/older 2>/dev/null || :") == "" {
		s.t.Fatal("no mirror had Debian 11's perftest when the image was built")
	}
	s.both(fewer)
	if libraries := second.run("sed -i s,/usr/bin/,/srv/older/, /usr/local/bin/ib_send_bw; ldd /srv/older/ib_send_bw"); strings.Contains(
		libraries, "not found") {
		s.t.Fatalf("Debian 11's perftest does not run here:\n%s", libraries)
	}
}

// unmeasured checks guests between which no measurement is possible.
func (s *site) unmeasured(answers string) {
	second := s.guests[1]
	quick := s.measure(answers, "answers-quick.yaml", "\nmeasure: {bandwidth: true, latency: false}\n")
	for _, c := range []struct{ name, cause, back, says string }{
		{"port 18515 is filtered in the server",
			"nft add table inet filtered; nft 'add chain inet filtered in { type filter hook input priority 0; }'; nft add rule inet filtered in " +
				"tcp dport 18515 drop",
			"nft delete table inet filtered", `TCP port 18515 of vm-02 .*does not answer vm-01:`},
		{"port 18515 is taken in the server",
			`cat >/var/tmp/taken.pl <<'END'
use IO::Socket::INET;
$s = IO::Socket::INET->new(LocalPort => 18515, Listen => 5, ReuseAddr => 1) or die;
sleep 3600;
END
systemd-run --quiet --unit=taken perl /var/tmp/taken.pl
for i in $(seq 60); do ss -tln | grep -q :18515 && exit 0; sleep 0.5; done; exit 1`,
			"systemctl stop taken; rm /var/tmp/taken.pl", `server on vm-02: TCP port 18515 is taken by another program`},
		{"the perftest of Debian 11 and 12, which are compatible", "", "", `measured \d+/\d+  ib_send_bw  vm-01 -> vm-02: [0-9.]+ Gb/s`},
	} {
		s.scenario(c.name, func(t *testing.T) {
			if c.cause == "" {
				defer s.both("rm -f /usr/local/bin/ib_send_bw /usr/local/bin/ib_send_lat")
				s.older()
			} else {
				defer func() { second.run(c.back) }()
				second.run(c.cause)
			}
			out, errs, code := s.run("bench", "-f", quick, "--pairs", "vm-01:vm-02")
			if code != 1 {
				t.Errorf("exit %d", code)
			}
			s.says(out+errs, c.says)
			t.Log(lastPart(out+errs, 30))
			for _, m := range s.guests {
				if left := m.run("for i in $(seq 30); do pgrep ib_send >/dev/null || break; sleep 1; done; pgrep -l ib_send || :"); left != "" {
					t.Errorf("still at work in %s: %s", m.name, left)
				}
			}
		})
	}
}
