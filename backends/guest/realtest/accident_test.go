//go:build e2e

package realtest_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// accidents are what happens to guests that are set up, from outside or while the program is at work in them.
func (s *site) accidents(good string, sound map[string]finding) {
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
	s.scenario("a clock that is years behind", func(t *testing.T) {
		second.run("date +%s >/var/tmp/now; date -s 2019-01-01 >/dev/null; rm /etc/security/limits.d/60-rdma-setup.conf")
		defer second.run("date -s @$(cat /var/tmp/now) >/dev/null; rm /var/tmp/now")
		s.must(0, "apply", "-f", good, "--yes")
		s.configured()
		for id, f := range s.check(good) {
			if _, old := sound[id]; !old {
				t.Errorf("%s: %s", id, f.Evidence)
			}
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

// focal is the perftest of Ubuntu 20.04, protocol 5.80: of the time in which the two ends had to be of one version.
const focal = "http://archive.ubuntu.com/ubuntu/pool/universe/p/perftest/perftest_4.4+0.5-1_amd64.deb"

// older puts an older ib_send_bw into guest-2, ahead of the distribution's.
func (s *site) older() {
	s.t.Helper()
	dir := s.t.TempDir()
	deb, out := filepath.Join(dir, "perftest.deb"), filepath.Join(dir, "root")
	for _, args := range [][]string{{"/usr/lib/apt/apt-helper", "download-file", focal, deb}, {"dpkg-deb", "-x", deb, out}} {
		if said, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			s.t.Fatalf("%v: %v\n%s", args, err, said)
		}
	}
	program, err := os.ReadFile(filepath.Join(out, "usr/bin/ib_send_bw"))
	if err != nil {
		s.t.Fatal(err)
	}
	var script bytes.Buffer
	script.WriteString("base64 -d >/usr/local/bin/ib_send_bw.5.80 <<'END'\n")
	script.WriteString(base64.StdEncoding.EncodeToString(program))
	script.WriteString("\nEND\nprintf '#!/bin/sh\\nexec /usr/local/bin/ib_send_bw.5.80 -n 10 \"$@\"\\n' >/usr/local/bin/ib_send_bw\nchmod 755 /usr/local/bin/ib_send_bw*\nldd /usr/local/bin/ib_send_bw.5.80\n")
	if libraries := s.pair[1].run(script.String()); strings.Contains(libraries, "not found") {
		s.t.Fatalf("%s does not run here:\n%s", focal, libraries)
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
			`systemd-run --quiet --unit=taken perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalPort => 18515, Listen => 5, ReuseAddr => 1) or die; sleep 3600'
for i in $(seq 60); do ss -tln | grep -q :18515 && exit 0; sleep 0.5; done; exit 1`,
			"systemctl stop taken", `server on vm-02.*(18515|in use|bind)`},
		{"the perftest of the two ends is years apart", "", "rm /usr/local/bin/ib_send_bw*", `(?i)version`},
	} {
		s.scenario(c.name, func(t *testing.T) {
			if c.cause == "" {
				s.older()
			} else {
				second.run(c.cause)
			}
			defer second.run(c.back)
			out, errs, code := s.run("bench", "-f", quick, "--pairs", "vm-01:vm-02")
			if code != 1 {
				t.Errorf("exit %d", code)
			}
			s.says(out+errs, c.says)
			t.Log(lastPart(out+errs, 30))
			if left := second.run("pgrep -l ib_send || :"); left != "" {
				t.Errorf("still at work: %s", left)
			}
		})
	}
}
