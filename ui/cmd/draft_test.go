package cmd

import (
	"os"
	"testing"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func TestDraftIsKept(t *testing.T) {
	f := &fabric{s: &session.Session{Set: &console.Settings{StateDir: t.TempDir() + "/state"}}}
	if a, _ := f.Draft(); a != nil {
		t.Errorf("a draft of nobody: %+v", a)
	}
	if err := f.KeepDraft(nil); err != nil {
		t.Errorf("forgetting what is not there: %v", err)
	}
	for _, mode := range []answers.Mode{answers.PVRDMA, answers.SRIOV, answers.GPUDirect} {
		a := answers.Default(mode) // far from complete
		a.Hosts.Names = []string{"esx-01", "esx 02: odd"}
		a.VMs = []answers.VM{answers.DefaultVM("vm-01")}
		if err := f.KeepDraft(a); err != nil {
			t.Fatal(err)
		}
		got, when := f.Draft()
		if got == nil || when.IsZero() || got.Mode != mode {
			t.Fatalf("%s: %+v of %s", mode, got, when)
		}
		is, _ := text(got)
		if want, _ := text(a); is != want {
			t.Errorf("%s:\n%s\nwant\n%s", mode, is, want)
		}
	}
	if a, _ := (&fabric{s: f.s, given: true}).Draft(); a != nil {
		t.Error("a draft is offered beside the answers that the operator named")
	}
	if st, err := os.Stat(f.draftPath()); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	if err := os.WriteFile(f.draftPath(), []byte("mode: [pv"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, _ := f.Draft(); a != nil {
		t.Errorf("a damaged draft is taken: %+v", a)
	}
	if err := f.KeepDraft(nil); err != nil {
		t.Error(err)
	}
	if a, _ := f.Draft(); a != nil {
		t.Errorf("still there: %+v", a)
	}
	f.s.Lab = &session.Lab{}
	if err := f.KeepDraft(answers.Default(answers.PVRDMA)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.draftPath()); err == nil {
		t.Error("a private lab's answers are kept")
	}
}
