//go:build e2e

package realtest_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

type benched struct {
	Test, Verdict, Error, Hint string
	AchievedGbps               float64 `json:"achieved_gbps"`
	ExpectedGbps               float64 `json:"expected_gbps"`
	Rows                       []struct{ Bytes int64 }
}

// bench measures and returns the results.
func (s *site) bench(args ...string) ([]benched, int) {
	s.t.Helper()
	out, errs, code := s.run(append([]string{"bench", "--pairs", "vm-01:vm-02", "-o", "json"}, args...)...)
	var doc struct{ Measurements []benched }
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		s.t.Fatalf("%v in %s%s", err, out, errs)
	}
	return doc.Measurements, code
}

// brief makes perftest send a few messages of 64 KiB and tolerate a slow link: -u 20 waits four seconds for an answer.
const brief = `printf '#!/bin/sh\nfor a; do shift; [ "$a" = -a ] && a="-s 65536"; set -- "$@" $a; done\nexec /usr/bin/ib_send_bw "$@" -n 96 -u 20\n' >/usr/local/bin/ib_send_bw
chmod 755 /usr/local/bin/ib_send_bw`

// shaped limits the wire to 98 % of 2 Mbit/s. netem adds 24 bytes to each frame, those of the preamble, checksum and gap, as
// sizing.Goodput does: RDMA gets 96 % of 2 Mbit/s, in the middle between the 93 % of a pass and the 98 % that nothing exceeds.
// netem sends each packet at a time that follows from the one before, so a guest that is not scheduled for a while on a busy
// machine loses nothing as long as packets are queued (rxe allows 64 of them, a second's worth); the bucket of tbf would overflow.
const shaped = "tc qdisc replace dev ens192 root netem rate 1960kbit 24 limit 4000"

var pvrdmaSection = regexp.MustCompile(`(?m)^pvrdma:\n(  .*\n)+`)

// lossy shapes the wire to a stated rate, which is reached without loss but not with 1 % loss.
func (s *site) lossy(answers string) {
	s.scenario("a link at its stated rate passes, and 1 % loss turns the verdict and names retransmissions", func(t *testing.T) {
		s.both(brief)
		defer s.both("rm /usr/local/bin/ib_send_bw")
		defer s.both("tc qdisc del dev ens192 root")
		// As VFs: for PVRDMA the host would count packets, and the host here is simulated.
		file := s.measure(answers, "answers-shaped.yaml",
			"\nqos: {lossless: none}\nmeasure: {bandwidth: true, latency: false, link_gbps: 0.002}\n")
		text := strings.Replace(string(s.read("answers-shaped.yaml")), "mode: pvrdma", "mode: sriov", 1)
		s.write("answers-shaped.yaml", pvrdmaSection.ReplaceAllString(text, ""))
		s.both(shaped)
		all, code := s.bench("-f", file)
		t.Logf("exit %d: %+v", code, all)
		if len(all) != 1 || all[0].Verdict != "pass" || code != 0 {
			t.Errorf("without loss: exit %d, %+v", code, all)
		}
		s.both("tc qdisc del dev ens192 root; " + shaped + " loss 1%")
		all, code = s.bench("-f", file)
		t.Logf("exit %d: %+v", code, all)
		if len(all) != 1 || all[0].Verdict == "pass" || !strings.Contains(all[0].Hint, "packets were lost and retransmitted: ") {
			t.Errorf("with loss: exit %d, %+v", code, all)
		}
	})
}
