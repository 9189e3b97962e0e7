//go:build e2e

package realtest_test

import (
	"encoding/json"
	"testing"
)

// fewer makes the guests' perftest run few iterations: an emulated processor moves a thousand messages of 8 MB in an hour.
const fewer = `for t in ib_send_bw ib_send_lat; do
	printf '#!/bin/sh\nexec /usr/bin/%s "$@" -n 5\n' $t >/usr/local/bin/$t
	chmod 755 /usr/local/bin/$t
done`

// measured runs the program's own measurement between the guests over soft-RoCE.
func (s *site) measured(answers string) {
	s.scenario("bench measures between the guests and judges against the link's speed", func(t *testing.T) {
		s.both(fewer)
		defer s.both("rm /usr/local/bin/ib_send_bw /usr/local/bin/ib_send_lat")
		measure := s.measure(answers, "answers-measure.yaml", "")
		out, errs, code := s.run("bench", "-f", measure, "--pairs", "vm-01:vm-02", "-o", "json")
		var doc struct {
			Measurements []struct {
				From, To, Test, Verdict, Error, Hint string
				Rows                                 []struct{ Bytes int64 }
				ExpectedGbps                         float64 `json:"expected_gbps"`
				AchievedGbps                         float64 `json:"achieved_gbps"`
				AchievedUs                           float64 `json:"achieved_us"`
			}
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Measurements) == 0 {
			t.Fatalf("%v in %s%s", err, out, errs)
		}
		if code != 1 {
			t.Errorf("exit %d of a fabric that is far too slow", code)
		}
		if len(doc.Measurements) != 2 || doc.Measurements[0].Test != "ib_send_bw" || doc.Measurements[1].Test != "ib_send_lat" {
			t.Errorf("measured %+v", doc.Measurements)
		}
		for _, m := range doc.Measurements {
			t.Logf("%+v", m)
			// 24 sizes from 2 bytes to 8 MB; a 100 Gbps link is expected to carry more than an emulated one does.
			if m.Error != "" || len(m.Rows) < 23 || m.Verdict != "fail" {
				t.Errorf("%s: %s %q with %d rows", m.Test, m.Verdict, m.Error, len(m.Rows))
			}
			if m.Test == "ib_send_bw" && (m.AchievedGbps <= 0 || m.ExpectedGbps < 90 || m.ExpectedGbps > 100) {
				t.Errorf("achieved %g of %g Gbps", m.AchievedGbps, m.ExpectedGbps)
			}
			if m.Test == "ib_send_lat" && m.AchievedUs <= 0 {
				t.Errorf("achieved %g us", m.AchievedUs)
			}
		}
	})
}
