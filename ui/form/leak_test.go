package form

import (
	"testing"

	"go.uber.org/goleak"
)

// terminalReader lists goroutines of Bubble Tea that may outlive a program. One that has read a key after the program
// ended blocks forever because nobody receives the key (ultraviolet, TerminalReader.sendEvents), and another may still be
// blocked in its read.
var terminalReader = []goleak.Option{
	goleak.IgnoreAnyFunction("charm.land/bubbletea/v2.(*Program).readLoop"),
	goleak.IgnoreAnyFunction("github.com/charmbracelet/ultraviolet.(*TerminalReader).StreamEvents.func1"),
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, terminalReader...) }
