// Package report holds the outcome of a run, of checks and of measurements as plain data; how it looks is the
// business of ui/render.
package report

import (
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Report is everything that is told about a fabric at one time.
type Report struct {
	Run          string                 `json:"run"`
	Mode         string                 `json:"mode"`
	Made         time.Time              `json:"made"`
	Tool         string                 `json:"tool"` // version of rdma-setup
	VCenter      string                 `json:"vcenter"`
	Simulated    bool                   `json:"simulated"`
	Insecure     []string               `json:"insecure,omitempty"` // what was not verified on the operator's word, a sentence each
	Status       string                 `json:"status"`             // of the run: done, unchanged, partial, failed, interrupted; "" for a mere check
	Changes      []Outcome              `json:"changes"`
	Checks       []checks.Finding       `json:"checks"`
	Measurements []perftest.Measurement `json:"measurements"`
	NCCL         *NCCL                  `json:"nccl,omitempty"` // nil: no GPUs, or nothing measured
	Notes        []string               `json:"notes,omitempty"`
	Environment  *Environment           `json:"environment,omitempty"` // nil: not kept
}

// An Outcome is a planned change and what became of it.
type Outcome struct {
	plan.Change
	State string          `json:"-"` // done, skipped, failed, blocked, pending
	Found *backends.Value `json:"-"`
	Err   string          `json:"-"`
}
