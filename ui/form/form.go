// Package form is the wizard's pages, from the first question to the report. One Enter accepts a page that is valid, Esc
// goes back and loses nothing, and every page shows where one stands and what it will cost.
package form

import (
	"context"
	"strings"

	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
)

// Options is what the wizard needs from outside.
type Options = frame.Options

// Run shows the wizard until the operator leaves it. A run that was begun is always waited for, also after the terminal
// went away.
func Run(ctx context.Context, o Options) (entry.Outcome, error) {
	return frame.Run(ctx, o, pages(), lookOnly)
}

// pages are in the order that the frame knows them by.
func pages() []frame.Page {
	return []frame.Page{&connectPage{}, &passwordPage{}, &hostsPage{}, &modePage{}, &nicsPage{}, &switchPage{}, &vmsPage{}, &preflightPage{}, &reviewPage{}, &runPage{}, &finalPage{}}
}

func lookOnly() frame.Page { return &lookPage{} }

// lines is the height of a text.
func lines(s string) int { return strings.Count(s, "\n") + 1 }
