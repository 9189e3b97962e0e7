//go:build e2e

package form_test

import (
	"strings"
	"testing"

	"github.com/creack/pty"
)

// resize changes the size of the terminal.
func (s *terminal) resize(columns, rows uint16) {
	s.t.Helper()
	s.clear()
	if err := pty.Setsize(s.tty, &pty.Winsize{Rows: rows, Cols: columns}); err != nil {
		s.t.Fatal(err)
	}
}

// session waits for each text and then presses its keys.
func (s *terminal) session(steps ...[2]string) {
	s.t.Helper()
	for _, step := range steps {
		s.shows(step[0])
		s.press(step[1])
	}
}

const esc, down, tab, f2 = "\x1b", "\x1b[B", "\t", "\x1bOQ"

// Whole sessions with the keyboard on the real program: a check first, back with the input kept, other screen sizes on pages and
// during the run, a stop in the middle, and the resume that the last page names.
func TestE2ESessions(t *testing.T) {
	bin := build(t)
	for mode, pages := range map[string][][2]string{
		"pvrdma": {{"How should the guests", "\r"}, {"Which pNIC of each host", "\r"}, {"vmknic for PVRDMA", "-two" + esc},
			{"Which pNIC of each host", "\r"},
			{"> RDMA-DVS-two", "\r\r\r\r\r"}},
		"sriov": {{"How should the guests", down}, {"> SR-IOV", "\r"}, {"Which pNIC of each host", "\r"},
			{"Account of the ESXi shell", tab + tab + tab + tab + "\x7f" + "4" + esc},
			{"Which pNIC of each host", "\r"}, {"> 4", strings.Repeat("\r", 9)}},
	} {
		t.Run(mode, func(t *testing.T) {
			env, file := lossless(t, bin)
			term := start(t, bin, env, "-f", file)
			term.session([2]string{"vCenter address", f2}, [2]string{"not set up", "\r"}, [2]string{"Which hosts should be set up", "\r"})
			term.session(pages...)
			term.shows("Which VMs get an RDMA")
			term.resize(80, 24)
			term.session([2]string{"Which VMs get an RDMA", "\r"}, [2]string{"Nothing prevents the setup", "\r"})
			term.shows("Scroll to the end (Enter)")
			term.resize(140, 50)
			term.press(strings.Repeat("\r", 50)) // Enter alone never starts a run on a vCenter that is reached by an address
			term.session([2]string{"the plan was not accepted", "yes\r"})
			term.shows("reboot, wait")
			term.resize(80, 24)
			term.shows(" steps")
			term.press("\x03")
			term.shows("rdma-setup resume")
			term.press("\r")
			if code := term.exit(); code != 130 {
				t.Errorf("exit code %d", code)
			}
			term.restored()
			r := term.kept()
			if r.Status != "interrupted" || r.Mode != mode {
				t.Errorf("status %q, mode %q", r.Status, r.Mode)
			}
			again := start(t, bin, append(env, "XDG_STATE_HOME="+term.dir), "resume", r.Run, "--yes")
			if code := again.exit(); code != 0 {
				t.Errorf("resume: exit code %d\n%s", code, again.text())
			}
			term.complete()
		})
	}
}
