package cmd_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestPager prints the catalogue of checks, several screens long, on terminals: the pager is used only if the operator has set one
// and the output is longer than the terminal.
func TestPager(t *testing.T) {
	t.Parallel()
	const marks = "sed s/^/paged:/"
	for _, tt := range []struct {
		name, pager, term string
		rows              uint16
		args              []string
		paged             bool
	}{
		{"long output", marks, "xterm", 24, nil, true},
		{"a document", marks, "xterm", 24, []string{"help", "sriov"}, true},
		{"short output", marks, "xterm", 5000, nil, false},
		{"no pager is named", "", "xterm", 24, nil, false},
		{"cat", "cat", "xterm", 24, nil, false},
		{"--no-pager", marks, "xterm", 24, []string{"--no-pager", "check", "--list"}, false},
		{"a dumb terminal", marks, "dumb", 24, nil, false},
		{"there is no such program", "no-such-pager-here", "xterm", 24, nil, false},
		{"the pager ends early", "head -c 6 | sed s/^/paged:/", "xterm", 24, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args
			if args == nil {
				args = []string{"check", "--list"}
			}
			c := exec.CommandContext(t.Context(), "rdma-setup", args...)
			c.Env = append(os.Environ(), "HOME="+t.TempDir(), "TERM="+tt.term, "PAGER="+tt.pager)
			tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: tt.rows, Cols: 80})
			if err != nil {
				t.Fatal(err)
			}
			defer tty.Close()
			out, _ := io.ReadAll(tty) // Linux ends the output of a terminal that no process has open with EIO
			if err := c.Wait(); err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			if got := strings.Contains(string(out), "paged:"); got != tt.paged {
				t.Errorf("paged: %t, want %t:\n%s", got, tt.paged, out)
			}
			if !tt.paged && !strings.Contains(string(out), "HOST-FW-PVRDMA-007") {
				t.Errorf("the output is not there:\n%s", out)
			}
		})
	}
}
