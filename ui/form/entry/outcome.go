package entry

import (
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// An Outcome is the result of the wizard.
type Outcome struct {
	Answers   *answers.Answers
	Path      string // where the answers were saved, "" if they were not
	Result    engine.Result
	Report    *report.Report // nil if it did not get that far
	Inspected *report.Report // report of a check that changed nothing
	Err       error          // of the run
	// Interrupted means that Ctrl-C, a signal or a lost terminal ended it before anything was started.
	Interrupted bool
}
