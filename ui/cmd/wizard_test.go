package cmd_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// typed runs the plain questions of the wizard with these lines as typed input.
func typed(t *testing.T, env map[string]string, lines []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs strings.Builder
	code = cmd.Run(context.Background(), &console.Env{
		Stdin: strings.NewReader(strings.Join(lines, "\n") + "\n"), Stdout: &out, Stderr: &errs, Getenv: func(k string) string { return env[k] },
		Now:        time.Now,
		Terminal:   func() bool { return true },
		Secret:     func(string) (string, error) { return "", errors.New("a secret was asked for") },
		Confirm:    func(q string) (bool, error) { t.Errorf("asked behind the wizard: %s", q); return false, nil },
		Executable: os.Executable,
		Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
	}, append([]string{"--accessible"}, args...))
	return out.String(), errs.String(), code
}

func TestWizardOnTheLab(t *testing.T) {
	testclass.Raced(t)
	l := openLab(t, lab.Options{Hosts: 2, VMs: 2, Dir: t.TempDir()})
	env := environment(l, t.TempDir())
	t.Chdir(t.TempDir())
	file, met := filepath.Join(l.Dir(), "answers-pvrdma.yaml"), filepath.Join(t.TempDir(), "met")
	says := func(text string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%q is not said:\n%s", w, text)
			}
		}
	}
	answers := func() bool { _, err := os.Stat("rdma-setup-answers.yaml"); return err == nil }

	out, errs, code := typed(t, env, []string{"look", "", ""})
	says(out, "SIMULATED: the system at this address is a lab", "RDMA is not set up", "nothing is set up yet",
		"esx-01 in DC, pNICs for RDMA: vmnic2 100G", "nothing was changed", "again: rdma-setup discover")
	if runs, _, _ := inProcess(env, "runs"); code != 0 || answers() || strings.Contains(runs, "pvrdma") {
		t.Errorf("a look: exit %d, answers saved: %t, runs %q\n%s", code, answers(), runs, errs)
	}

	env["RDMA_SETUP_KNOWN_HOSTS"] = met
	lines := append(make([]string, 12), "no", "no") // Enter for every question, then the keys of two guests
	out, errs, code = typed(t, env, lines, "-f", file)
	says(out, "shows an SSH host key that this machine does not know: ssh-ed25519 SHA256:", "keep it in "+met)
	if _, err := os.Stat(met); code != 4 || err == nil || answers() {
		t.Errorf("keys that were declined: exit %d, kept: %t, answers saved: %t\n%s", code, err == nil, answers(), errs)
	}

	lines[12], lines[13] = "yes", "yes"
	out, errs, code = typed(t, env, append(lines, "no", "yes"), "-f", file) // no rehearsal
	says(out, "RDMA works", "SIMULATED")
	if kept, err := os.ReadFile(met); code != 0 || err != nil || strings.Count(string(kept), "ssh-ed25519") != 2 {
		t.Errorf("keys that were accepted: exit %d, kept %q, %v\n%s", code, kept, err, errs)
	}

	out, errs, code = typed(t, env, []string{"look", "", ""}, "-f", "rdma-setup-answers.yaml")
	says(out, "Nothing broken", "rdma-setup check -o html --out report.html")
	if code != 0 || strings.Contains(out, "host key") {
		t.Errorf("a look at what is set up: exit %d\n%s%s", code, out, errs)
	}
}

func TestReadOnlyReportNeedsOnlyAReadOnlyAccount(t *testing.T) {
	testclass.Raced(t)
	l := openLab(t, lab.Options{Hosts: 2, VMs: 2, Dir: t.TempDir()})
	env := environment(l, t.TempDir())
	newRole(t, env).hold(t, nil)
	out, errs, code := typed(t, env, []string{"look", "", ""})
	if code != 0 || !strings.Contains(out, "esx-01 in DC, pNICs for RDMA: vmnic2 100G") || !strings.Contains(out, "VC-PRIV-003") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
