package ssh

import (
	"strings"
	"testing"
)

// A machine that knows the markers can print one and never end its line.
func TestAMarkerWithoutEndOfLineHoldsNoMemory(t *testing.T) {
	flood := []byte(strings.Repeat("x", 32<<10))
	for name, begun := range map[string]bool{"begin": false, "end": true} {
		c := &capture{begin: []byte("<begin>"), end: []byte("<end>"), limit: 1000}
		text := "noise<begin>"
		if begun {
			text += "42\nout<end>"
		}
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			_, _ = c.Write(flood)
		}
		if held := len(c.hold) + c.kept.Len(); held > 40<<10 {
			t.Errorf("%s: %d bytes are held", name, held)
		}
		c.finish()
		if begun && !strings.HasPrefix(c.kept.String(), "out") {
			t.Errorf("kept %q", c.kept.String())
		}
	}
}
