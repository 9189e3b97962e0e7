package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
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
	Refusals     []plan.Refusal         `json:"refusals,omitempty"` // every reason why nothing was begun
}

func (r *runner) writeResult(o outcome, code int) error {
	o.Event, o.Exit = string(engine.EventResult), code
	if o.Measurements == nil {
		o.Measurements = []perftest.Measurement{}
	}
	return json.NewEncoder(r.env.Stdout).Encode(o)
}

// statusRefused is the status of a result line where nothing was begun.
const statusRefused = engine.Status("refused")

// resultLine ends the JSON lines of a command that failed before its run could say how it ended.
func resultLine(e *Env, output string, err error) error {
	var said *codeError
	if err == nil || output != "json" || errors.As(err, &said) {
		return err
	}
	o := outcome{Status: engine.StatusFailed, Err: err.Error(), Hint: backends.HintOf(err)}
	code := exitCode(err)
	switch code {
	case exitUsage, exitRefused, exitConnect:
		o.Status = statusRefused
	case exitInterrupted:
		o.Status = engine.StatusInterrupted
	}
	var refused *plan.Refused
	if errors.As(err, &refused) {
		o.Refusals = refused.Refusals
	}
	r := &runner{env: e}
	if bad := r.writeResult(o, code); bad != nil {
		return errors.Join(err, bad)
	}
	return err
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
