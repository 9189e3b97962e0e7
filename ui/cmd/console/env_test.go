package console_test

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// A command sets limits of the process only if nothing else runs in it, and they end with the command.
func TestCollect(t *testing.T) {
	limit := func() int64 { return debug.SetMemoryLimit(-1) } // -1 reads it
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	wasLimit, wasPercent := limit(), percent()
	restore := (&console.Env{Alone: true}).Collect(300, math.MaxInt64-1)
	if limit() != math.MaxInt64-1 || percent() != 300 {
		t.Errorf("alone: limit %d, %d percent", limit(), percent())
	}
	restore()
	if limit() != wasLimit || percent() != wasPercent {
		t.Errorf("restored: limit %d, %d percent; before %d, %d", limit(), percent(), wasLimit, wasPercent)
	}
	defer (&console.Env{}).Collect(300, math.MaxInt64-1)()
	if limit() != wasLimit || percent() != wasPercent {
		t.Errorf("in a process with other work: limit %d, %d percent", limit(), percent())
	}
	if !console.OSEnv().Alone {
		t.Error("the program's own process sets no limits")
	}
}
