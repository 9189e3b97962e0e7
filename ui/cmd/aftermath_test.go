package cmd

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// If the site cannot be read after a run, the findings from before it decide nothing.
func TestRunThatCannotBeReadAgain(t *testing.T) {
	t.Parallel()
	l, err := lab.Start(t.Context(), lab.Options{Scenario: "done", Hosts: 1, VMs: 1, Dir: t.TempDir()})
	testclass.OK(t, err)
	defer l.Close()
	env := map[string]string{"HOME": t.TempDir()}
	for _, kv := range l.Env() {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value
	}
	e := &console.Env{
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Getenv: func(key string) string { return env[key] }, Now: time.Now,
		Terminal: func() bool { return false }, Executable: os.Executable,
	}
	c := newRootCmd(e)
	testclass.OK(t, c.ParseFlags(nil))
	set, err := console.ReadSettings(e, c)
	testclass.OK(t, err)
	a, err := session.Load(e, filepath.Join(l.Dir(), "answers-pvrdma.yaml"), nil)
	testclass.OK(t, err)
	s, err := session.Open(t.Context(), e, set, a)
	testclass.OK(t, err)
	defer s.Close()
	p := &planned{plan: &plan.Plan{}, findings: []checks.Finding{{ID: "HOST-CONN-001", Status: checks.Pass}}}
	if p.inv, err = s.Survey(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	testclass.OK(t, l.World().Faults.Add("method=*,do=fault:NoPermission"))
	res := engine.Result{Status: engine.StatusDone}
	after := lookAgain(t.Context(), s, a, p, planFlags{}, res, nil)
	r, err := reportOf(s, a, p, res, nil, after, nil, after.err)
	if v := report.Decide(r); err != nil || v.Name != report.NotMeasured || v.Exit == 0 {
		t.Errorf("%s, %s, %v", v.Line(), v.Summary, err)
	}
}
