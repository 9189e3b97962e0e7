// Package report contains the outcome of a run, of checks and of measurements as plain data; ui/render renders it.
package report

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Report is everything that is known about a fabric at one time.
type Report struct {
	Run        string           `json:"run"`
	Command    Command          `json:"command,omitempty"` // "": apply for a run, else check
	Mode       string           `json:"mode"`
	Made       time.Time        `json:"made"`
	Tool       string           `json:"tool"` // version of rdma-setup
	VCenter    string           `json:"vcenter"`
	Simulated  bool             `json:"simulated"`
	Insecure   []string         `json:"insecure,omitempty"`    // what was not verified at the operator's request, a sentence each
	Status     string           `json:"status"`                // of the run: done, unchanged, partial, failed, interrupted; "" for a check
	Err        string           `json:"error,omitempty"`       // what ended the run
	Hint       string           `json:"hint,omitempty"`        // what to do about that
	ErrOn      []backends.Ref   `json:"error_on,omitempty"`    // the targets that it is about
	ErrExit    int              `json:"error_exit,omitempty"`  // the exit code that belongs to it
	LeftBehind *LeftBehind      `json:"left_behind,omitempty"` // nil: nothing was left, and there is nothing to continue
	Failures   []Failure        `json:"failures,omitempty"`    // steps that failed and are not changes
	Changes    []Outcome        `json:"changes"`
	Checks     []checks.Finding `json:"checks"`
	// NotApplicable are the rows that apply to nothing.
	NotApplicable []string `json:"not_applicable,omitempty"`
	// Unconfigured means that nothing that RDMA needs is configured.
	Unconfigured bool `json:"unconfigured,omitempty"`
	// LastMeasured is when a run last measured this site; zero: never, or this report has measurements.
	LastMeasured time.Time `json:"last_measured,omitzero"`
	// Ports are the counters of the pNICs that carry RDMA.
	Ports        []checks.Uplink        `json:"ports,omitempty"`
	Measurements []perftest.Measurement `json:"measurements"`
	NCCL         *NCCL                  `json:"nccl,omitempty"` // nil: no GPUs, or nothing measured
	Notes        []string               `json:"notes,omitempty"`
	Environment  *Environment           `json:"environment,omitempty"` // nil: not kept
}

// SetChecks takes the findings of the catalogue.
func (r *Report) SetChecks(all []checks.Finding) { r.Checks, r.NotApplicable = checks.Applied(all) }

// document is the written form of a report.
type document struct {
	Verdict   Name             `json:"verdict"`
	Exit      int              `json:"exit"`
	Summary   string           `json:"summary"`
	Cause     string           `json:"cause,omitempty"`
	Chain     []checks.Link    `json:"chain"`
	Causes    []Cause          `json:"causes"`
	Receivers []perftest.Crowd `json:"receivers,omitempty"` // of incasts
	Rails     *railMatrix      `json:"rail_matrix,omitempty"`
	fields
}

type fields Report

// JSONShape returns values with the fields that MarshalJSON writes.
func (r Report) JSONShape() []any { return []any{document{}} }

// MarshalJSON adds "verdict" with its "exit" code, its sentence, "summary", its "cause" and the "chain", "causes", "receivers" and
// "rail_matrix", which are computed from the rest.
func (r Report) MarshalJSON() ([]byte, error) {
	causes := append([]Cause{}, r.Causes()...)
	v := Decide(&r)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the outer encoder escapes if requested
	err := enc.Encode(document{v.Name, v.Exit, v.Summary, v.Cause, v.Chain, causes, perftest.Crowds(r.Measurements), rails(r.Measurements),
		fields(r)})
	return b.Bytes(), err
}

// A railMatrix contains the results within each rail and between rails: one row per rail of the clients, one cell per rail of the
// servers.
type railMatrix struct {
	Rails []string              `json:"rails"`
	Rows  [][]perftest.RailCell `json:"rows"` // in the order of Rails
}

func rails(all []perftest.Measurement) *railMatrix {
	names, cells := perftest.RailMatrix(all)
	if len(names) == 0 {
		return nil
	}
	m := railMatrix{Rails: names}
	for _, from := range names {
		var row []perftest.RailCell
		for _, to := range names {
			c, tested := cells[[2]string{from, to}]
			if !tested {
				c = perftest.RailCell{From: from, To: to, Verdict: perftest.VerdictUnknown, Text: "not tested"}
			}
			row = append(row, c)
		}
		m.Rows = append(m.Rows, row)
	}
	return &m
}

// A LeftBehind is what an unfinished run has left in a temporary state.
type LeftBehind struct {
	VMsOff      []string `json:"vms_off"`               // powered off by the run, and still off
	Maintenance []string `json:"hosts_in_maintenance"`  // hosts that the run took out of service
	SSH         []string `json:"ssh_services_on"`       // hosts whose SSH service the run started
	HalfDone    []string `json:"half_done"`             // operations whose result is unknown
	Unreachable []string `json:"unreachable,omitempty"` // hosts, VMs and guests that did not answer
	Continue    string   `json:"continue"`              // the command that continues
	Undo        string   `json:"undo,omitempty"`        // the command that restores the previous state
}

// Nothing reports whether everything is back in service and no operation is half done.
func (l *LeftBehind) Nothing() bool {
	return len(l.VMsOff)+len(l.Maintenance)+len(l.SSH)+len(l.HalfDone)+len(l.Unreachable) == 0
}

// An Outcome is a planned change and its result.
type Outcome struct {
	plan.Change
	State string          `json:"-"` // done, skipped, failed, blocked, pending
	Found *backends.Value `json:"-"`
	Err   string          `json:"-"`
	Hint  string          `json:"-"` // what to do about the error
}

type outcomeExtra struct {
	State      string          `json:"outcome"`
	Found      json.RawMessage `json:"found,omitempty"`
	FoundState backends.State  `json:"found_state,omitempty"`
	Err        string          `json:"error,omitempty"`
	Hint       string          `json:"hint,omitempty"`
}

// JSONShape returns values with the fields that MarshalJSON writes.
func (o Outcome) JSONShape() []any { return append(o.Change.JSONShape(), outcomeExtra{}) }

// MarshalJSON adds "outcome", "found", "error" and "hint" to the fields of the change. If "found" is missing, the current value
// could not be read; null is a thing that does not exist.
func (o Outcome) MarshalJSON() ([]byte, error) {
	a, err := json.Marshal(o.Change)
	if err != nil {
		return nil, err
	}
	x := outcomeExtra{State: o.State, Err: o.Err, Hint: o.Hint}
	if o.Found != nil {
		if x.Found, x.FoundState, err = o.Found.Plain(); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return append(append(a[:len(a)-1], ','), b[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Outcome) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &o.Change); err != nil {
		return err
	}
	var x outcomeExtra
	if err := json.Unmarshal(b, &x); err != nil {
		return err
	}
	o.State, o.Found, o.Err, o.Hint = x.State, nil, x.Err, x.Hint
	if len(x.Found) > 0 {
		found, err := backends.ReadPlain(x.Found, x.FoundState)
		if err != nil {
			return err
		}
		o.Found = &found
	}
	return nil
}
