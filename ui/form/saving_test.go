package form

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
)

// On every page after the login, s or Ctrl-S saves the input of the page, and no file is overwritten before the difference was
// shown.
func TestEveryPageSaves(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{shared: true, other: true}
		k := sit(t, f, 80, 24).press("ctrl+s").on("vCenter").press("enter").write("right").press("enter").on("Hosts")
		k.press("space", "s").shows("+ mode: pvrdma").shows("y overwrite").press("esc", "s", "n").shows("Answers saved: /tmp/answers.yaml")
		if len(f.saved.Hosts.Names) != 1 || !slices.Equal(f.how, []live.Saving{live.Beside}) {
			t.Fatalf("%v, %v", f.saved.Hosts.Names, f.how)
		}
		f.other = false
		for _, page := range []struct{ title, save string }{{"Mode", "s"}, {"pNICs", "s"}, {"Switch and vmknic", "ctrl+s"},
			{"VMs and guests", "s"}, {"Preflight", "s"}, {"Plan", "s"}} {
			k.press("enter")
			if page.title == "VMs and guests" {
				k.press("s").shows("saved without all of this page: no VM is chosen").press("a")
			}
			f.saved = nil
			if k.on(page.title).press(page.save).shows("Answers saved"); f.saved == nil {
				t.Errorf("%s: nothing was saved", page.title)
			}
		}
		f.other = true
		k.press("s", "y").write("yes").press("enter").on("Report")
		if n := len(f.how); f.how[n-1] != live.Beside || f.how[n-2] != live.Overwrite {
			t.Errorf("%v", f.how)
		}
		out, text, err := answer(&world{other: true}, append([]string{"", "", ":save", "no"}, append(defaults()[2:], "yes", "yes")...)...)
		if err != nil || !strings.Contains(text, "+ mode: pvrdma") || !strings.Contains(text, "Overwrite it? yes or no [no]") || out.Path == "" {
			t.Errorf("%v\n%s", err, text)
		}
	})
}

// If edited answers are invalid, the editor is opened again with each error above its line; valid answers are accepted.
func TestAnswersAreEdited(t *testing.T) {
	testclass.Plain(t)
	var opened []string
	edits := []func(string) string{
		func(s string) string { return strings.Replace(s, "esx-01", "esx-99", 1) },
		func(s string) string {
			return strings.Replace(strings.ReplaceAll(s, "esx-99", "esx-01"), "mtu: 9000", "mtu: 90", 1)
		},
		func(s string) string { return strings.Replace(s, "mtu: 90", "mtu: 4200", 1) },
		func(s string) string {
			return strings.Replace(s, "https://vcenter.example", "https://other.example", 1)
		},
	}
	f := world{}
	f.editor = func(text string) string {
		opened = append(opened, text)
		return edits[len(opened)-1](text)
	}
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &busy{world: f})
		s.steps([2]string{"vCenter address", "\r\r"}, [2]string{"Password of", "right\r"}, [2]string{"Which hosts", "\r"},
			[2]string{"How should", "\r"}, [2]string{"Which pNIC", "e"})
		s.shows("the vCenter has no host esx-99")
		s.press(keyDown) // the reader that was started before the editor cannot be cancelled on a pipe, and consumes one key
		s.press("\x05")
		s.shows("line 30: 90 is not between")
		s.press(keyDown)
		s.press("\x05")
		<-time.After(time.Second)
		s.press(keyDown)
		s.press("\r")
		s.shows("> 4200")
		s.press("\x05")
		s.shows("line 8: the vCenter cannot be changed here")
		s.press(keyDown)
		s.press("\x03")
		s.end()
		if want := "# error: "; !strings.Contains(opened[1], want) || strings.Contains(opened[0], want) || s.out.Answers.Switch.MTU != 4200 {
			t.Errorf("%d, %q", s.out.Answers.Switch.MTU, opened[1])
		}
	})
	opened = nil
	got, text, err := answer(&f, append([]string{"", "", "", "", "", ":edit", ":edit", ":edit", ""}, defaults()[5:]...)...)
	if err != nil || got.Answers.Switch.MTU != 4200 || !strings.Contains(text, "16: hosts.names: the vCenter has no host esx-99") ||
		!strings.Contains(text, "mtu") {
		t.Errorf("%v, %+v\n%s", err, got.Answers, text)
	}
}

// After an edit at the plan, the plain questions begin again with the first question whose answer has changed; the plan is computed
// again.
func TestEditAtThePlanAsksAgainWhatChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string
		again    int            // number of questions before the plan
		asked    map[string]int // number of times each question is asked
	}{
		"the MTU":         {"mtu: 9000", "mtu: 4200", 7, map[string]int{"Take these pNICs": 1, "MTU,": 2, "Apply these changes": 2}},
		"the parallelism": {"parallel: 16", "parallel: 8", 0, map[string]int{"Take these addresses": 1, "Apply these changes": 2}},
		"nothing":         {"", "", 0, map[string]int{"Take these addresses": 1, "Apply these changes": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &world{editor: func(text string) string { return strings.Replace(text, tt.from, tt.to, 1) }}
			lines := defaults()
			got, text, err := answer(f, slices.Concat(lines[:len(lines)-1], []string{":edit"}, make([]string, tt.again), []string{"no"})...)
			for question, n := range tt.asked {
				if found := strings.Count(text, question); found != n {
					t.Errorf("%q is asked %d times, want %d", question, found, n)
				}
			}
			if err != nil || f.applied != 0 {
				t.Errorf("%v, applied %d, %+v\n%s", err, f.applied, got, text)
			}
		})
	}
}

// The result of the editor is used, even if it equals what the page showed first.
func TestEditedChoicesCount(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{shared: true}
		k := sit(t, f, 80, 24).press("enter").write("right").press("enter").on("Hosts").press("space", "s").shows("1 chosen")
		k.w.Answers.Hosts.Names = nil // as the editor does
		k.do(k.w.Show(frame.HostsAt))
		k.lacks("1 chosen").press("space", "enter", "enter", "enter", "enter").on("VMs and guests").press("space", "s").shows("1 chosen")
		k.w.Answers.VMs = nil
		k.do(k.w.Show(frame.VMsAt))
		k.lacks("1 chosen")
	})
}

// Text that is pasted while the difference of a file is shown does not reach the page below.
func TestAPasteIsNotForThePageBehind(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{other: true}
		k := sit(t, f, 80, 24).press("enter").write("right").press("enter", "enter", "enter", "enter").on("Switch and vmknic").press("ctrl+s").
			shows("y overwrite")
		k.send(tea.PasteMsg{Content: "pasted"})
		k.press("esc").lacks("pasted").shows("RDMA-DVS")
	})
}
