package entry

import (
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// An Outcome is how the wizard ended.
type Outcome struct {
	Answers *answers.Answers
	Path    string // where the answers were saved, "" when not
	Result  engine.Result
	Report  *report.Report // nil when it did not come so far
	Looked  *report.Report // of a look that changed nothing
	Err     error          // of the run
	// Interrupted says that Ctrl-C, a signal or a lost terminal ended it before anything was begun.
	Interrupted bool
}
