package form

import (
	"errors"
	"strings"
	"testing"
)

// onPlan goes to the plan page of a cluster that is shared with others.
func onPlan(t *testing.T, f *world, width, height int) *keyboard {
	t.Helper()
	f.shared = true
	k := sit(t, f, width, height)
	return k.press("enter").write("right").press("enter", "a", "enter", "enter", "enter", "enter", "a", "enter", "enter").on("Plan")
}

const rehearsalTitle = "Rehearsal: nothing was written"

// r shows the timeline before the consent; Esc returns to the plan, and no key of the rehearsal page counts as consent.
func TestPlanIsRehearsed(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{}
		k := onPlan(t, f, 120, 40).shows("r rehearse").press("r").on(rehearsalTitle)
		k.golden("14-rehearsal")
		k.shows("longest time that a VM is off: 1m35s").shows("vm-02   ....#").write("yes").hold(100).on(rehearsalTitle).shows(
			"a stand-in of Ubuntu")
		if f.rehearsals != 1 || f.applied != 0 || f.saved != nil {
			t.Fatalf("%d rehearsals, applied %d times, answers saved: %t", f.rehearsals, f.applied, f.saved != nil)
		}
		k.press("esc").on("Plan").write("yes").press("enter").on("Report")
	})
}

// If a rehearsal is not possible, it is not offered.
func TestRehearsalIsOfferedWhereItCanBe(t *testing.T) {
	for name, f := range map[string]*world{"several clusters": {alone: true}, "nothing to change": {nothing: true}} {
		bubble(t, name, func(t *testing.T) {
			k := onPlan(t, f, 120, 40).press("r").on("Plan")
			if f.rehearsals != 0 || strings.Contains(k.screen(), "rehearse") {
				t.Errorf("%d rehearsals\n%s", f.rehearsals, k.screen())
			}
		})
	}
}

func TestRehearsalIsCancelledOrFails(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{}
		k := onPlan(t, f, 80, 24)
		f.hang = true
		_, cmd := k.w.Update(keyPress("r"))
		hanging := make(chan struct{})
		go func() { defer close(hanging); k.answer = cmd() }()
		k.shows("Esc cancel").shows("Ctrl-C leave").press("enter", "y", "esc").shows("cancelling")
		<-hanging
		k.send(k.answer)
		if k.on("Plan"); strings.Contains(k.screen(), "error:") {
			t.Errorf("what was cancelled is called an error:\n%s", k.screen())
		}
		f.hang, f.unplayed = false, errors.New("no room for a twin")
		k.press("r").on("Plan").shows("error: no room for a twin")
	})
}

// chosen answers every question before the plan if nothing is preselected: all hosts and all VMs.
func chosen() []string {
	lines := make([]string, 12)
	lines[2], lines[10] = "all", "all"
	return lines
}

func TestQuestionsRehearse(t *testing.T) {
	for word, want := range map[string]int{"yes": 1, "": 0} {
		f := &world{shared: true}
		lines := append(chosen(), word, "yes")
		_, text, err := answer(f, lines...)
		_, after, asked := strings.Cut(text, "Rehearse first? yes or no [no]: ")
		shown, _, _ := strings.Cut(after, "Apply these changes?")
		if err != nil || !asked || f.rehearsals != want || strings.Contains(shown, "longest time that a VM is off: 1m35s") != (want == 1) ||
			f.applied != 1 {
			t.Errorf("%q: %v, %d rehearsals, applied %d times\n%s", word, err, f.rehearsals, f.applied, text)
		}
	}
	f := &world{shared: true, unplayed: errors.New("no room for a twin")}
	if _, text, err := answer(f, append(chosen(), "yes", "no")...); err != nil || f.applied != 0 ||
		!strings.Contains(text, "the rehearsal could not be made: no room for a twin") {
		t.Errorf("%v, applied %d times\n%s", err, f.applied, text)
	}
}
