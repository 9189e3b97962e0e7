package cmd

import (
	"errors"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// An outcome is the last line that apply, resume and rollback print with -o json.
type outcome struct {
	Event        string                 `json:"event"`
	Status       engine.Status          `json:"status"`
	Exit         int                    `json:"exit"`
	Run          string                 `json:"run,omitempty"`
	Text         string                 `json:"text,omitempty"`
	Measurements []perftest.Measurement `json:"measurements"`
	Receivers    []perftest.Crowd       `json:"receivers,omitempty"` // of incasts
	Err          string                 `json:"error,omitempty"`
	Hint         string                 `json:"hint,omitempty"`
	LeftBehind   *report.LeftBehind     `json:"left_behind,omitempty"`
	Causes       []report.Cause         `json:"causes,omitempty"`
	Refusals     []plan.Refusal         `json:"refusals,omitempty"` // every reason why nothing was begun
}

func (r *runner) writeResult(o outcome, code int) error {
	o.Event, o.Exit, o.Receivers = string(engine.EventResult), code, perftest.Crowds(o.Measurements)
	if o.Measurements == nil {
		o.Measurements = []perftest.Measurement{}
	}
	return plain.JSON(r.env.Stdout).Encode(o)
}

// statusRefused is the status of a result line where nothing was begun.
const statusRefused = engine.Status("refused")

// resultLine ends the JSON lines of a command that failed before its run could write a result.
func resultLine(e *console.Env, output string, err error) error {
	if _, said := errors.AsType[*console.CodeError](err); said || err == nil || output != "json" {
		return err
	}
	o := outcome{Status: engine.StatusFailed, Err: err.Error(), Hint: backends.HintOf(err)}
	code := console.ExitCode(err)
	switch code {
	case console.ExitUsage, console.ExitRefused, console.ExitConnect:
		o.Status = statusRefused
	case console.ExitInterrupted:
		o.Status = engine.StatusInterrupted
	}
	if refused, ok := errors.AsType[*plan.Refused](err); ok {
		o.Refusals = refused.Refusals
	}
	if bad := (&runner{env: e}).writeResult(o, code); bad != nil {
		return errors.Join(err, bad)
	}
	return err
}
