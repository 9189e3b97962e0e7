package cmd

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

// decide asks for each target what to do with changes that others have made since the run. A target without a decision is not
// changed.
func decide(e *console.Env, conflicts []plan.Refusal) (map[backends.Ref]rollback.OnConflict, error) {
	out, asked := map[backends.Ref]rollback.OnConflict{}, map[backends.Ref]bool{}
	for _, c := range conflicts {
		if c.Kind != backends.KindConflict || asked[c.Target] {
			continue
		}
		asked[c.Target] = true
		for _, same := range conflicts {
			if same.Target == c.Target {
				fmt.Fprintln(e.Stderr, backends.Clean(same.String()))
			}
		}
		for _, way := range []struct {
			decision rollback.OnConflict
			question string
		}{
			{rollback.Restore, "Restore the value from before the run on " + backends.Clean(c.Target.Name)},
			{rollback.Keep, "Keep it, and roll back the rest of " + backends.Clean(c.Target.Name)},
		} {
			yes, err := e.Confirm(way.question)
			if err != nil {
				return nil, err
			}
			if yes {
				out[c.Target] = way.decision
				break
			}
		}
	}
	return out, nil
}
