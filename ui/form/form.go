// Package form contains the wizard's pages, from the first question to the report. Enter accepts a valid page, Esc goes back
// without losing input, and every page shows the position and the cost.
package form

import (
	"context"
	"strings"

	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
)

// Options are the wizard's dependencies.
type Options = frame.Options

// Run shows the wizard until the operator quits it. It always waits for a started run, even if the terminal is gone.
func Run(ctx context.Context, o Options) (entry.Outcome, error) {
	return frame.Run(ctx, o, pages(), lookOnly)
}

func pages() []frame.Page {
	return []frame.Page{&connectPage{}, &passwordPage{}, &hostsPage{}, &modePage{}, &nicsPage{}, &switchPage{}, &vmsPage{}, &preflightPage{},
		&reviewPage{}, &runPage{}, &finalPage{}}
}

func lookOnly() frame.Page { return &lookPage{} }

func lines(s string) int { return strings.Count(s, "\n") + 1 }
