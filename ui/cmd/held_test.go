package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// TestNothingIsWrittenIntoTheWizardsScreen: what a run writes to stderr, such as the location of its backups, is held until the
// screen has ended. If it were written immediately, it would stay on the screen until the terminal is resized.
func TestNothingIsWrittenIntoTheWizardsScreen(t *testing.T) {
	testclass.Raced(t)
	t.Parallel()
	l, err := lab.Start(t.Context(), lab.Options{Hosts: 1, VMs: 1, Dir: t.TempDir()})
	testclass.OK(t, err)
	defer l.Close()
	dir := t.TempDir()
	errs, err := os.Create(filepath.Join(dir, "stderr"))
	testclass.OK(t, err)
	defer errs.Close()
	c := exec.CommandContext(t.Context(), "rdma-setup", "-f", filepath.Join(l.Dir(), "answers-pvrdma.yaml"))
	c.Env = append(append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir, "TERM=xterm-256color"), l.Env()...)
	c.Dir, c.Stderr = dir, errs
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 40, Cols: 120})
	testclass.OK(t, err)
	defer tty.Close()
	s := &screen{wrote: make(chan struct{}, 1)}
	go s.follow(tty)
	for _, page := range []struct{ shows, keys string }{
		{"vCenter address", "\r\r"}, {"Which hosts should be set up", "\r"}, {"How should the guests", "\r"}, {"Which pNIC of each host", "\r"},
		{"Distributed switch", "\r\r\r\r\r"}, {"Which VMs get an RDMA", "\r"}, {"Nothing prevents the setup", "\r"},
		{"Scroll to the end", "\x1b[F"},
		{"Type yes, then Enter", "yes\r"}, {"Next steps", ""},
	} {
		limit := time.After(time.Minute)
		for !strings.Contains(strings.Join(strings.Fields(ansi.Strip(s.String())), ""), strings.ReplaceAll(page.shows, " ", "")) {
			select {
			case <-s.wrote:
			case <-limit:
				t.Fatalf("%q was not drawn:\n%q", page.shows, s)
			}
		}
		if _, err := tty.WriteString(page.keys); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(errs.Name()); err != nil || len(text) > 0 {
		t.Errorf("stderr while the screen is there: %q, %v", text, err)
	}
	if _, err := tty.WriteString("\r"); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(errs.Name()); err != nil || !strings.Contains(string(text), "backups and manual undo steps: ") ||
		!strings.Contains(string(text), "undo    rdma-setup rollback ") {
		t.Errorf("stderr after it: %q, %v", text, err)
	}
}
