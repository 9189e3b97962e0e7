//go:build e2e

package realtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// accidents are what happens to guests that are set up, from outside or while the program is at work in them.
func (s *site) accidents(good string) {
	second := s.pair[1]
	s.scenario("the power fails in a guest while dpkg is at work", func(t *testing.T) {
		second.run("DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge perftest >/dev/null 2>&1; sync")
		second.run("systemd-run --quiet --unit=accident sh -c 'until [ -e /var/lib/dpkg/info/perftest.list ]; do sleep 0.1; done; echo o >/proc/sysrq-trigger'")
		out, errs, code := s.run("apply", "-f", good, "--yes")
		if code == 0 {
			t.Errorf("exit 0:\n%s%s", out, errs)
		}
		s.says(out+errs, `vm-02: install packages`)
		second.again()
		s.must(0, "apply", "-f", good, "--yes")
		s.configured()
		if said := second.run("dpkg --audit; ls /var/lib/dpkg/updates"); said != "" {
			t.Errorf("dpkg has left: %s", said)
		}
	})
}

// again starts a machine whose power is off, with the disk it had.
func (m *machine) again() {
	m.t.Helper()
	select {
	case <-m.ended:
	case <-m.t.Context().Done():
		m.t.Fatal("the guest is still on")
	}
	err := m.power()
	if err == nil {
		err = m.up(m.t.Context(), "")
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// older puts the ib_send_bw of Debian 11 into guest-2, ahead of the distribution's; both run few iterations.
func (s *site) older() {
	s.t.Helper()
	second := s.pair[1]
	if second.run("ls /srv/older 2>/dev/null || :") == "" {
		if os.Getenv("CI") != "" {
			s.t.Fatal("no mirror had Debian 11's perftest when the image was built")
		}
		s.t.Skip("no mirror had Debian 11's perftest when the image was built")
	}
	s.both(fewer)
	if libraries := second.run("sed -i s,/usr/bin/,/srv/older/, /usr/local/bin/ib_send_bw; ldd /srv/older/ib_send_bw"); strings.Contains(libraries, "not found") {
		s.t.Fatalf("Debian 11's perftest does not run here:\n%s", libraries)
	}
}

// unmeasured are guests between which a measurement cannot come about.
func (s *site) unmeasured(answers string) {
	second := s.pair[1]
	quick := s.write("answers-quick.yaml", string(s.read(filepath.Base(answers)))+"\nmeasure: {bandwidth: true, latency: false}\n")
	for _, c := range []struct{ name, cause, back, says string }{
		{"port 18515 is filtered in the server",
			"nft add table inet filtered; nft 'add chain inet filtered in { type filter hook input priority 0; }'; nft add rule inet filtered in tcp dport 18515 drop",
			"nft delete table inet filtered", `18515`},
		{"port 18515 is taken in the server",
			`cat >/var/tmp/taken.pl <<'END'
use IO::Socket::INET;
$s = IO::Socket::INET->new(LocalPort => 18515, Listen => 5, ReuseAddr => 1) or die;
sleep 3600;
END
systemd-run --quiet --unit=taken perl /var/tmp/taken.pl
for i in $(seq 60); do ss -tln | grep -q :18515 && exit 0; sleep 0.5; done; exit 1`,
			"systemctl stop taken; rm /var/tmp/taken.pl", `server on vm-02.*(18515|in use|bind)`},
		{"the perftest of the two ends is years apart", "", "", `perftest is of version 6\.\d+ on vm-01 and 5\.\d+ on vm-02: the two may not understand each other`},
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
			// Debian 11's and Debian 12's do understand each other, and are judged like any two.
			if c.cause == "" && strings.Contains(out+errs, "not measured") {
				t.Error("nothing was measured")
			}
			t.Log(lastPart(out+errs, 30))
			if left := second.run("pgrep -l ib_send || :"); left != "" {
				t.Errorf("still at work: %s", left)
			}
		})
	}
}
