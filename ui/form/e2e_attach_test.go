//go:build e2e

package form_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestE2EAttach kills the terminal of a run, follows the run from a second one, and from a third after killing the second: the
// history is shown, pause, skip, retry and continue by keys are in the journal, and the run completes as if the terminal had not
// been lost.
func TestE2EAttach(t *testing.T) {
	bin := build(t)
	env, file := lossless(t, bin)
	s := start(t, bin, env, "-f", file)
	s.pages()
	s.shows("Scroll to the end (Enter)")
	s.press(strings.Repeat("\r", 50))
	s.shows("the plan was not accepted")
	s.press("yes\r")
	s.shows("reboot, wait")
	s.tty.Close()
	_ = s.cmd.Process.Signal(syscall.SIGHUP)

	env = append(env, "XDG_STATE_HOME="+s.dir)
	a := start(t, bin, env, "attach")
	a.shows(" steps")
	a.press("p")
	a.shows("PAUSED by")
	a.press(down + "d")
	a.shows("done ") // steps from before the terminal was lost
	a.tty.Close()

	b := start(t, bin, env, "attach")
	b.shows("PAUSED by")
	b.press("/esx-02\r")
	b.shows("filter: esx-02")
	b.press("x")
	b.shows("Skip the rest of")
	b.press("y")
	b.shows("is left to rdma-setup resume")
	b.press("R")
	b.shows("Retry")
	b.press("y")
	b.shows("tried again")
	b.press("p")
	if code := b.exit(); code != 0 {
		t.Errorf("attach: exit code %d\n%s", code, last(b.text()))
	}
	b.restored()
	if code := s.exit(); code != 0 {
		t.Errorf("the run: exit code %d", code)
	}
	s.complete()

	found, err := filepath.Glob(filepath.Join(s.dir, "rdma-setup", "runs", "*", "journal*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("journals %v, %v", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var did []string
	for line := range strings.Lines(string(text)) {
		var l struct {
			Rec struct{ Type, Name, By string }
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Rec.Type == "control" {
			if did = append(did, l.Rec.Name); l.Rec.By == "" {
				t.Errorf("nobody asked for %s", l.Rec.Name)
			}
		}
	}
	if want := []string{"pause", "skip", "retry", "continue"}; !slices.Equal(did, want) {
		t.Errorf("the journal has %v, want %v", did, want)
	}
}
