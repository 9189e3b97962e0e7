package form

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// As on the screen, nothing is preselected on a vCenter other than the private lab: pressing Enter any number of times stops at the
// hosts.
func TestPlainQuestionsChooseNothingByThemselves(t *testing.T) {
	testclass.Plain(t)
	f := &world{shared: true}
	_, text, err := answer(f, make([]string, 500)...)
	if err == nil || f.applied != 0 || !strings.Contains(text, "cluster NAME, or all: \nname at least one") || strings.Contains(text, "Mode") {
		t.Errorf("%v\n%s", err, text)
	}
	lines := chosen()
	lines[10] = ""
	if _, text, _ = answer(&world{shared: true}, append(lines, make([]string, 50)...)...); !strings.Contains(text,
		"host NAME, or all: \nname at least one") || strings.Contains(text, "reading hosts and guests") {
		t.Errorf("VMs are chosen:\n%s", text)
	}
}

// Hosts and VMs are selected by pattern and group, and listed by group.
func TestPlainQuestionsSelectManyAtOnce(t *testing.T) {
	testclass.Plain(t)
	f := site(500)
	for i := range f.inv.Hosts {
		f.inv.Hosts[i].Cluster = fmt.Sprintf("Cluster %d", i/100)
	}
	lines := chosen()
	lines[2], lines[10] = "cluster Cluster 9", "vm-0001, host esx-300, vm-05*"
	lines = slices.Insert(lines, 3, "cluster Cluster 2, esx-00?")
	_, text, _ := answer(f, lines...)
	for _, want := range []string{"cluster Cluster 2, ESXi 8.0.3, connected: esx-201 to esx-300", "there is no cluster Cluster 9",
		"109 hosts: esx-001 to esx-009, esx-201 to esx-300",
		"vmnic2 on esx-001 to esx-009, esx-201 to esx-300: 100G, RoCE v2", "vm-0600 has 192.168.50."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said:\n%s", want, text)
		}
	}
}

// All VMs get addresses and an account at once, and :back returns to earlier questions.
func TestPlainQuestionsAboutAllVMs(t *testing.T) {
	testclass.Plain(t)
	f := site(3)
	lines := chosen()
	lines[11] = "no"
	lines = append(lines, "192.168.60.11/30", "192.168.60.11/24", "ops", "", "no", "yes")
	lines = slices.Insert(lines, 5, ":back", "") // from the switch to the pNICs
	got, text, err := answer(f, lines...)
	if err != nil || strings.Count(text, "Take these pNICs") != 2 || !strings.Contains(text, "free addresses for only 3 of 6 VMs") ||
		!strings.Contains(text, "First address of 6 VMs") {
		t.Fatalf("%v\n%s", err, text)
	}
	vms := got.Answers.VMs
	// .12 is in use
	if len(vms) != 6 || vms[0].IP.String() != "192.168.60.11/24" || vms[1].IP.String() != "192.168.60.13/24" || vms[5].Guest.User != "ops" {
		t.Errorf("%+v", vms)
	}
}

// After a refusal the answers of a page can be changed, and everything is read again.
func TestPlainQuestionsContinueAfterARefusal(t *testing.T) {
	testclass.Plain(t)
	for name, f := range map[string]*world{
		"a plan": {refuse: &plan.Refused{Refusals: []plan.Refusal{{Target: backends.HostRef("esx-02"), Why: "vmnic2 has no link"}}}},
		"a check": {findings: []checks.Finding{{ID: "HOST-LINK-003", Target: backends.HostRef("esx-02"), Status: checks.Fail,
			Evidence: "vmnic2 has no link"}}},
	} {
		lines := append(defaults()[:12], "read", "vms", "vm-01", "", "leave")
		_, text, err := answer(f, lines...)
		if backends.KindOf(err) == backends.KindUsage || err == nil || f.surveys != 3 || strings.Count(text, "Next: leave") != 3 ||
			strings.Count(text, "VMs: names") != 2 {
			t.Errorf("%s: %v, %d surveys\n%s", name, err, f.surveys, text)
		}
	}
}

// The plain questions ask for every value on the page of the screen, in all modes.
func TestPlainQuestionsAskWhatThePageAsks(t *testing.T) {
	testclass.Plain(t)
	for mode, down := range map[answers.Mode]int{answers.PVRDMA: 0, answers.SRIOV: 1, answers.GPUDirect: 2} {
		bubble(t, string(mode), func(t *testing.T) {
			k := sit(t, &world{}, 120, 60).press("enter").write("right").press("enter", "enter")
			for range down {
				k.press("down")
			}
			k.press("enter", "enter")
			lines := make([]string, 40)
			lines[3] = string(mode)
			_, text, _ := answer(&world{}, lines...)
			page := k.w.Page().(*switchPage)
			if len(page.questions) < 5 && mode != answers.GPUDirect {
				t.Fatalf("%d questions", len(page.questions))
			}
			for _, q := range page.questions {
				k.shows(q.Title).shows(q.About)
				if !strings.Contains(text, q.Asked()) {
					t.Errorf("%s is not asked:\n%s", q.Title, text)
				}
			}
		})
	}
}
