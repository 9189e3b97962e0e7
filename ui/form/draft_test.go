package form

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// TestTheWizardContinuesFromADraft: if the operator leaves before a run, the wizard offers the answers again, on the screen and in
// the plain questions. A started run leaves no draft.
func TestTheWizardContinuesFromADraft(t *testing.T) {
	still(t, func(t *testing.T) {
		f := site(4)
		k := onVMs(t, f)
		k.press("a", "L").write("ops").press("enter", "enter").on("Preflight")
		if f.draft == nil || len(f.draft.VMs) != 4 || f.draft.VMs[0].Guest.User != "ops" {
			t.Fatalf("kept: %+v", f.draft)
		}
		f.draft.VCenter.URL, f.draft.VCenter.Username = "https://other.example/sdk", "root@vsphere.local"
		again := sit(t, f, 120, 40)
		again.shows("continue with the answers that were kept on " + begin.Format("2006-01-02 15:04 MST")).press("f3").lacks("F3")
		again.shows("https://other.example/sdk").shows("root@vsphere.local")
		again.press("enter").on("Password").write("right").press("enter").on("Hosts").shows("2 chosen")
		again.press("enter", "enter", "enter", "enter").on("VMs and guests").shows("ops").shows("4 chosen")
		again.press("esc", "esc", "esc", "esc", "esc").on("vCenter").lacks("F3")
	})
}

// The input of the current page is kept too if the wizard ends there, even if the terminal is lost.
func TestInputOfTheLastPageIsKept(t *testing.T) {
	testclass.Plain(t)
	for name, leave := range map[string]func(s *session){
		"Ctrl-C": func(s *session) { s.press("\x03") }, "q": func(s *session) { s.press("qy") },
		"a lost terminal": func(s *session) { close(s.hangup) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &busy{world: world{shared: true}}
				s := open(t, b)
				s.steps([2]string{"vCenter address", "\r\r"}, [2]string{"Password of", "right\r"}, [2]string{"Which hosts", " "})
				leave(s)
				s.end()
				if b.draft == nil || len(b.draft.Hosts.Names) != 1 || b.draft.Hosts.Names[0] != "esx-01" {
					t.Errorf("kept: %+v", b.draft)
				}
			})
		})
	}
}

func TestARunLeavesNoDraft(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{}
		k := sit(t, f, 80, 24)
		walk(k, func(string) {})
		if f.draft != nil {
			t.Errorf("kept: %+v", f.draft)
		}
		if f.applied == 0 {
			t.Error("nothing was carried out")
		}
	})
}

func TestPlainQuestionsContinueFromADraft(t *testing.T) {
	testclass.Plain(t)
	for first, want := range map[string]string{"": "esx-02", "no": "esx-01"} {
		a := answers.Default(answers.PVRDMA)
		a.Hosts.Names = []string{"esx-02"}
		_, text, _ := answer(&world{draft: a}, first, "", "")
		if _, asked, _ := strings.Cut(text,
			"Hosts"); !strings.Contains(text, "Continue with the answers that were kept on 2026-03-14 09:26 UTC? yes or no [yes]: ") ||
			!strings.Contains(asked, "["+want) {
			t.Errorf("%q: want %s:\n%s", first, want, text)
		}
	}
}
