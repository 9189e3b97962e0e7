// Package report holds the outcome of a run, of checks and of measurements as plain data; how it looks is the
// business of ui/report.
package report

import (
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Report is everything that is told about a fabric at one time.
type Report struct {
	Run          string        `json:"run"`
	Mode         string        `json:"mode"`
	Made         time.Time     `json:"made"`
	Tool         string        `json:"tool"` // version of rdma-setup
	VCenter      string        `json:"vcenter"`
	Simulated    bool          `json:"simulated"`
	Status       string        `json:"status"` // of the run: done, unchanged, partial, failed, interrupted; "" for a mere check
	Changes      []Outcome     `json:"changes"`
	Checks       []Finding     `json:"checks"`
	Measurements []Measurement `json:"measurements"`
	Notes        []string      `json:"notes,omitempty"`
}

// An Outcome is a planned change and what became of it.
type Outcome struct {
	plan.Change
	State string          `json:"-"` // done, skipped, failed, blocked, pending
	Found *backends.Value `json:"-"`
	Err   string          `json:"-"`
}

// Status of a finding.
type FindingStatus string

// What a check can say; unknown is never pass.
const (
	Pass    FindingStatus = "pass"
	Warn    FindingStatus = "warn"
	Fail    FindingStatus = "fail"
	Unknown FindingStatus = "unknown"
)

// A Finding is what one check says of one target.
type Finding struct {
	ID       string        `json:"id"`
	Scope    string        `json:"scope"`
	Target   backends.Ref  `json:"target"`
	Status   FindingStatus `json:"status"`
	Evidence string        `json:"evidence"` // the value seen and where
	Remedy   string        `json:"remedy"`
	Source   string        `json:"source"`
	Fix      string        `json:"fix"` // automatic, reboot, manual, none
	// Quiet unknowns wait for the operator's word or come from unverified rows: counted, but no reason to worry.
	Quiet bool `json:"quiet,omitempty"`
}

// A Verdict on a measurement.
type Verdict string

// The verdicts. NotApplicable is a pair on one host, whose traffic never meets the fabric.
const (
	VerdictPass          Verdict = "pass"
	VerdictWarn          Verdict = "warn"
	VerdictFail          Verdict = "fail"
	VerdictUnknown       Verdict = "unknown"
	VerdictNotApplicable Verdict = "n/a"
)

// A Measurement is one test between two guests, from the client to the server.
type Measurement struct {
	From         string    `json:"from"` // VM names
	To           string    `json:"to"`
	FromHost     string    `json:"from_host"`
	ToHost       string    `json:"to_host"`
	Test         string    `json:"test"` // ib_send_bw, ib_send_lat, ib_write_bw
	Device       string    `json:"device,omitempty"`
	GIDIndex     int       `json:"gid_index"`
	MTU          int       `json:"mtu,omitempty"` // active path MTU, bytes
	Rows         []Row     `json:"rows"`
	ExpectedGbps float64   `json:"expected_gbps,omitempty"`
	AchievedGbps float64   `json:"achieved_gbps,omitempty"`
	ExpectedUs   float64   `json:"expected_us,omitempty"`
	AchievedUs   float64   `json:"achieved_us,omitempty"` // typical at the smallest size
	Why          string    `json:"why,omitempty"`         // where the expectation comes from
	Verdict      Verdict   `json:"verdict"`
	Hint         string    `json:"hint,omitempty"`
	Error        string    `json:"error,omitempty"`
	Command      string    `json:"command,omitempty"` // as run on the client
	Started      time.Time `json:"started,omitzero"`
	Simulated    bool      `json:"simulated"`
}

// A Row is one message size.
type Row struct {
	Bytes      int64   `json:"bytes"`
	Iterations int64   `json:"iterations,omitempty"`
	PeakGbps   float64 `json:"peak_gbps,omitempty"`
	AvgGbps    float64 `json:"avg_gbps,omitempty"`
	TypicalUs  float64 `json:"typical_us,omitempty"`
	AvgUs      float64 `json:"avg_us,omitempty"`
	P99Us      float64 `json:"p99_us,omitempty"`
	P999Us     float64 `json:"p999_us,omitempty"`
}
