package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A file with other answers is overwritten only on request; a file that this wizard has written is overwritten.
func TestSavedAnswersOverwriteNothingUnasked(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "answers.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: rdma-setup/v1\nmode: sriov\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, a := &fabric{file: file}, answers.Default(answers.PVRDMA)
	var exists *live.Exists
	if _, err := f.SaveAnswers(a, live.AskFirst); !errors.As(err, &exists) || !strings.Contains(exists.Diff, "- mode: sriov") ||
		!strings.Contains(exists.Diff, "+ mode: pvrdma") {
		t.Fatalf("%v", err)
	}
	path, err := f.SaveAnswers(a, live.Beside)
	if err != nil || path != filepath.Join(dir, "answers-2.yaml") {
		t.Fatalf("%s, %v", path, err)
	}
	a.Switch.MTU = 4200
	if again, err := f.SaveAnswers(a, live.AskFirst); err != nil || again != path {
		t.Errorf("its own file: %s, %v", again, err)
	}
	if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "mode: sriov") {
		t.Errorf("the other file: %s, %v", b, err)
	}
	other := &fabric{file: file}
	if got, err := other.SaveAnswers(a, live.Overwrite); err != nil || got != file {
		t.Errorf("%s, %v", got, err)
	}
	if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "mtu: 4200") {
		t.Errorf("%s, %v", b, err)
	}
	if err := os.WriteFile(path, []byte("mode: sriov # by somebody else since\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.SaveAnswers(a, live.AskFirst); !errors.As(err, &exists) || !strings.Contains(exists.Diff, "\n+ ") ||
		!strings.Contains(exists.Diff, "- mode: sriov # by") {
		t.Errorf("changed by somebody else since: %v", err)
	}
	if err := os.WriteFile(path, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.SaveAnswers(a, live.AskFirst); !errors.As(err, &exists) || !strings.Contains(exists.Diff, "cannot be read") ||
		strings.Contains(exists.Diff, "+ ") {
		t.Errorf("too large to compare: %v, %.80q", err, exists.Diff)
	}
}

// The report page writes a file that only its owner can read, and never overwrites another report.
func TestSavedReportIsPrivate(t *testing.T) {
	dir := t.TempDir()
	f := &fabric{file: filepath.Join(dir, "answers.yaml")}
	for _, tt := range []struct{ html, want string }{{"one", "rdma-setup-report-r.html"}, {"one", "rdma-setup-report-r.html"},
		{"two", "rdma-setup-report-r-2.html"}} {
		path, err := f.SaveHTML("r", []byte(tt.html))
		if err != nil || path != filepath.Join(dir, tt.want) {
			t.Fatalf("%s: %s, %v", tt.html, path, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}
