package form

import (
	"testing"

	"go.uber.org/goleak"
)

// terminalReader are Bubble Tea's own goroutines. One that has read a key after the program ended offers it to nobody for
// ever (ultraviolet, TerminalReader.sendEvents), and one that is not waited for may still be in its read.
var terminalReader = []goleak.Option{
	goleak.IgnoreAnyFunction("charm.land/bubbletea/v2.(*Program).readLoop"),
	goleak.IgnoreAnyFunction("github.com/charmbracelet/ultraviolet.(*TerminalReader).StreamEvents.func1"),
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, terminalReader...) }
