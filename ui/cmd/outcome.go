package cmd

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// An outcome is the last line that apply, resume and rollback print with -o json.
type outcome struct {
	Event        string                 `json:"event"`
	Status       engine.Status          `json:"status"`
	Exit         int                    `json:"exit"`
	Run          string                 `json:"run,omitempty"`
	Text         string                 `json:"text,omitempty"`
	Measurements []perftest.Measurement `json:"measurements"`
	Err          string                 `json:"error,omitempty"`
	Hint         string                 `json:"hint,omitempty"`
}

func (r *runner) writeResult(o outcome, code int) error {
	o.Event, o.Exit = string(engine.EventResult), code
	if o.Measurements == nil {
		o.Measurements = []perftest.Measurement{}
	}
	return json.NewEncoder(r.env.Stdout).Encode(o)
}

// progress shows each test of the measurement as it ends.
func (r *runner) progress() func(perftest.Progress) {
	return func(p perftest.Progress) {
		if p.Result == nil {
			return
		}
		if r.json {
			_ = json.NewEncoder(r.env.Stdout).Encode(struct {
				Event string               `json:"event"`
				Done  int                  `json:"done"`
				Total int                  `json:"total"`
				M     perftest.Measurement `json:"measurement"`
			}{"measured", p.Done, p.Total, *p.Result})
			return
		}
		fmt.Fprintf(r.env.Stderr, "measured %d/%d  %s  %s: %s\n", p.Done, p.Total, p.Test, plain.Clean(p.Pair.String()), figure(*p.Result))
	}
}

func figure(m perftest.Measurement) string {
	switch {
	case m.Error != "":
		return plain.Clean(m.Error)
	case m.AchievedGbps > 0:
		return fmt.Sprintf("%.1f Gb/s, %s", m.AchievedGbps, m.Verdict)
	case m.AchievedUs > 0:
		return fmt.Sprintf("%.2f us, %s", m.AchievedUs, m.Verdict)
	}
	return string(m.Verdict)
}

func measuredBadly(all []perftest.Measurement) bool {
	for _, m := range all {
		if m.Verdict == perftest.VerdictFail {
			return true
		}
	}
	return false
}

func joined(lines []string) string { return strings.Join(lines, "; ") }

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
