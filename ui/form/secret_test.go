package form

import (
	"slices"
	"testing"
	"testing/synctest"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

var (
	sudo  = live.Question{Secret: "sudo password in the guests"}
	other = live.Question{Yes: "Use this password for the other ESXi hosts too"}
)

// TestSecretsAreAskedOnTheScreen types a password whose letters are also keys of the page below, and checks that none of it is shown.
func TestSecretsAreAskedOnTheScreen(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{asks: []live.Question{sudo, other, sudo}}
		k := sit(t, f, 120, 40)
		k.press("enter").write("right").press("enter", "enter", "enter", "enter", "enter").on("VMs and guests")
		read := make(chan struct{})
		_, cmd := k.w.Update(keyPress("enter"))
		go func() { defer close(read); k.answer = cmd() }()
		k.press("?") // the help is open when the prompt appears
		k.send(<-k.queue)
		k.on("Preflight").shows("Sudo password in the guests").press("enter").shows("Sudo password in the guests")
		k.write("qy? é").press("backspace").write("n")
		k.send(tea.PasteMsg{Content: "-pasted\n"})
		k.shows("> ************")
		k.golden("13-secret")
		k.press("enter")
		k.send(<-k.queue)
		k.shows("Use this password for the other ESXi hosts too?").press("enter", "x").shows("y yes").press("y")
		k.send(<-k.queue)
		k.press("esc")
		<-read
		k.send(k.answer)
		k.shows("Nothing prevents the setup")
		if want := []live.Answer{{Text: "qy? n-pasted"}, {Yes: true}, {}}; !slices.Equal(f.told, want) {
			t.Errorf("answered %+v, want %+v", f.told, want)
		}
	})
}

// TestPlainQuestionsAskForSecrets does the same in the wizard without a screen.
func TestPlainQuestionsAskForSecrets(t *testing.T) {
	testclass.Plain(t)
	f := &world{asks: []live.Question{sudo, other}}
	lines := defaults()
	_, text, err := answer(f, append(append(lines[:12:12], "yes"), "yes")...)
	if want := []live.Answer{{Text: "root"}, {Yes: true}}; err != nil || !slices.Equal(f.told, want) || f.applied != 1 {
		t.Errorf("%v, answered %+v, want %+v:\n%s", err, f.told, want, text)
	}
}

// toVMs goes to the point where hosts and guests are read.
var toVMs = [][2]string{{"vCenter address", "\r\r"}, {"Password of", "right\r"}, {"Which hosts", "\r"}, {"How should", "\r"},
	{"Which pNIC", "\r"},
	{"vmknic for PVRDMA", "\r\r\r\r\r"}, {"Which VMs", "\r"}}

// In TestTheSameQuestionTwice a guest refuses a password so fast that the screen is not drawn in between; keys must still be
// accepted.
func TestTheSameQuestionTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{hosts: 1, world: world{asks: []live.Question{sudo, sudo}}}
		s := open(t, b)
		s.steps(append(slices.Clone(toVMs), [2]string{"Sudo password", "one\r"}, [2]string{"Sudo password", "two\r"},
			[2]string{"prevents the setup", "\x03"})...)
		s.end()
		if want := []live.Answer{{Text: "one"}, {Text: "two"}}; !slices.Equal(b.told, want) {
			t.Errorf("answered %+v, want %+v", b.told, want)
		}
	})
}

// TestCtrlCAtAQuestionEndsAtOnce presses Ctrl-C once, before a run and during one: the operation that prompts gets an error, and
// the program ends without showing the report.
func TestCtrlCAtAQuestionEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{hosts: 1, world: world{asks: []live.Question{sudo}}}
		s := open(t, b)
		s.steps(append(slices.Clone(toVMs), [2]string{"Sudo password", "\x03"})...)
		s.end()
		if s.err != nil || !s.out.Interrupted {
			t.Errorf("%v, %+v", s.err, s.out)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := &busy{hosts: 1, world: world{inRun: &sudo}}
		s := open(t, b)
		s.steps(append(slices.Clone(toVMs), [2]string{"prevents the setup", "\r"}, [2]string{"Enter to apply this plan", "\r"},
			[2]string{"Sudo password", "\x03"})...)
		s.end()
		if want := []live.Answer{{Interrupted: true}}; s.err != nil || s.out.Result.Status != engine.StatusInterrupted ||
			!slices.Equal(b.told, want) {
			t.Errorf("%v, %+v, answered %+v", s.err, s.out.Result, b.told)
		}
	})
}
