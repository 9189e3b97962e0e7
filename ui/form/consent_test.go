package form

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// hold presses Enter n times, and has the screen drawn regularly.
func (k *keyboard) hold(times int) *keyboard {
	for i := range times {
		k.press("enter")
		if i%40 == 0 { // the screen is drawn less often than a key repeats
			_ = k.w.View()
		}
	}
	return k
}

// held is the number of repeats of a key in 30 s, 40 per second.
const held = 1200

// Except on the private lab, nothing is preselected, and pressing Enter any number of times never starts a run: not from the first
// page, not with everything selected, not on the plan.
func TestHeldEnterNeverBeginsARun(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{shared: true, long: 40}
		k := sit(t, f, 80, 24)
		k.hold(held).on("Password")
		k.write("right").press("enter").on("Hosts").shows("0 chosen").hold(100).on("Hosts").shows("no host is chosen")
		k.press("i").shows("2 chosen").press("i").shows("0 chosen").press("a").shows("2 chosen")
		k.hold(100).on("VMs and guests").shows("0 chosen").shows("no VM is chosen")
		k.press("a").shows("2 chosen").hold(held).on("Plan").shows("the plan was not accepted")
		if f.applied != 0 || f.saved != nil {
			t.Fatalf("applied %d times", f.applied)
		}
		k.write("yesx").press("enter").on("Plan").shows("the plan was not accepted")
		k.write("y").press("esc").on("Plan").write("ye").press("backspace").write("es").press("enter").on("Report")
		if f.applied != 1 {
			t.Errorf("applied %d times", f.applied)
		}
	})
}

// Hosts outside of a cluster are not preselected either.
func TestHostsWithoutClusterAreNotPreselected(t *testing.T) {
	still(t, func(t *testing.T) {
		inv := inventory()
		for i := range inv.Hosts {
			inv.Hosts[i].Cluster = ""
		}
		sit(t, &world{shared: true, inv: inv}, 80, 24).press("enter").write("right").press("enter").on("Hosts").shows("0 chosen")
	})
}

// The typed consent is accepted only after the end of the plan was shown, and the cost is visible above it all the time.
func TestPlanIsReadToItsEnd(t *testing.T) {
	testclass.Plain(t)
	for _, size := range []struct {
		name          string
		width, height int
	}{{"80x24", 80, 24}, {"120x40", 120, 40}, {"200x60", 200, 60}} {
		bubble(t, size.name, func(t *testing.T) {
			f := &world{shared: true, long: 40, cost: []string{"esx-01: a note", "esx-2: a note", "esx-10: a note"}}
			k := sit(t, f, size.width, size.height)
			k.press("enter").write("right").press("enter", "a", "enter", "enter", "enter", "enter", "a", "enter", "enter").on("Plan")
			if size.width == 120 {
				k.golden("9-plan-begin")
			}
			k.shows("Cost").shows("more below").press("y", "e", "s").shows("read the plan to its end first").press("enter")
			if f.saved != nil {
				t.Error("the s of yes saved the answers")
			}
			for range 30 {
				k.shows("Cost  0 host reboots").press("enter")
			}
			k.write("ye").shows("Type yes, then Enter").shows("ye_").shows("esx-01, esx-2, esx-10: a note")
			if size.width == 120 {
				golden(t, filepath.Join("testdata", "120x40", "9-plan-end.txt"), k.screen()) // another size scrolls
			}
			k.press("s", "enter").on("Report")
		})
	}
}

// If there is nothing to change, measuring requires the typed consent too, because it loads the fabric.
func TestMeasuringRequiresConsent(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{shared: true, nothing: true}
		k := sit(t, f, 80, 24)
		k.press("enter").write("right").press("enter", "a", "enter", "enter", "enter", "enter", "a", "enter", "enter").on("Plan")
		k.hold(100).on("Plan").shows("Measuring loads the fabric")
		if f.applied != 0 {
			t.Errorf("applied %d times", f.applied)
		}
	})
}

// The cost of loading the fabric after the changes is on the plan page before the consent; the plain questions print it too.
func TestCostOfALoadComesBeforeConsent(t *testing.T) {
	const cost = "loaded: incast: 2 rounds with up to 3 senders at once: about 20 s, 150 GB, at most 100 Gb/s"
	still(t, func(t *testing.T) {
		k := sit(t, &world{shared: true, loads: true}, 200, 60)
		k.press("enter").write("right").press("enter", "a", "enter", "enter", "enter", "enter", "a", "enter", "enter").on("Plan").shows(cost)
	})
	bubble(t, "nothing to change", func(t *testing.T) { // without changes there is no other cost on the page
		k := sit(t, &world{shared: true, loads: true, nothing: true}, 200, 60)
		k.press("enter").write("right").press("enter", "a", "enter", "enter", "enter", "enter", "a", "enter", "enter").on("Plan").shows(cost)
	})
	bubble(t, "80x24", func(t *testing.T) { // the list of changes, which must be scrolled to its end, contains it too
		k := sit(t, &world{shared: true, loads: true, long: 40}, 80, 24)
		k.press("enter").write("right").press("enter", "a", "enter", "enter", "enter", "enter", "a", "enter", "enter").on("Plan")
		for range 30 {
			k.press("enter")
		}
		k.shows("note: afterwards the fabric is loaded: incast").shows("Type yes")
	})
	_, text, err := answer(&world{loads: true}, defaults()...)
	before, _, asked := strings.Cut(text, "Apply these changes?")
	if err != nil || !asked || !strings.Contains(before, cost) {
		t.Errorf("%v\n%s", err, text)
	}
}

// A cost that needs several lines keeps its margin.
func TestLongCostKeepsItsMargin(t *testing.T) {
	still(t, func(t *testing.T) {
		onPlan(t, &world{shared: true, reboots: 12}, 80, 24).shows("Cost  12 host reboots, at most 1 at a time; 12 VM power cycles").shows(
			"\n         off at a time")
	})
}

// The footer names the consent word in the same frame that shows the end of the plan, because each key draws the screen once.
func TestTheFooterFollowsTheEndOfThePlan(t *testing.T) {
	for _, width := range []int{80, 120, 200} {
		bubble(t, fmt.Sprint(width), func(t *testing.T) {
			k := onPlan(t, &world{shared: true, long: 40}, width, 24)
			k.screen()
			k.press("end")
			if s := k.screen(); !strings.Contains(s, "Type yes, then Enter, to apply this plan. Esc goes back.") ||
				!strings.Contains(s, "yes Enter APPLY") {
				t.Error(s)
			}
		})
	}
}
