package vsphere_test

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// A recorder keeps the calls of a trace.
type recorder struct {
	mu    sync.Mutex
	calls []backends.Call
}

func (r *recorder) call(c backends.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// lines returns "METHOD target outcome" of the calls of a method.
func (r *recorder) lines(method string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, c := range r.calls {
		if c.Method == method {
			out = append(out, c.Method+" "+c.Target+" "+c.Outcome)
		}
	}
	return out
}

// tracedLab starts a lab and connects to it with a trace.
func tracedLab(t *testing.T, faults ...string) (*vsphere.Client, *recorder) {
	t.Helper()
	l, err := lab.Start(t.Context(), lab.Options{Dir: t.TempDir(), Hosts: 2, VMs: 2, Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	var r recorder
	c, err := vsphere.Dial(t.Context(), vsphere.Config{
		URL: l.URL().String(), Username: vcenter.Admin, Password: word(vcenter.Password), CAFiles: []string{l.Dir() + "/ca.pem"}, Trace: r.call,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, &r
}

// TestTraceNamesTheHostOfAPart calls the managers of a host, whose references do not show it: the trace names host and manager,
// of failed calls too.
func TestTraceNamesTheHostOfAPart(t *testing.T) {
	t.Parallel()
	c, r := tracedLab(t, "method=UpdateOptions,nth=1,do=fault:NoPermission")
	inventory(t, c, backends.Scope{})
	set := c.Setters()
	opt := backends.Setting{Target: backends.HostRef("esx-02"), Kind: backends.KindOption, Name: option}
	if err := set[opt.Kind].Set(t.Context(), opt, backends.ValueOf("vmk0"), nil); err == nil {
		t.Error("NoPermission was not returned")
	}
	mustSet(t, set, backends.Setting{Target: backends.HostRef("esx-02"), Kind: backends.KindFirewall, Name: "pvrdma"}, true)
	if _, err := c.Neighbours(t.Context(), "esx-01"); err != nil {
		t.Error(err)
	}
	if _, err := c.Esxcli(t.Context(), "esx-01", "network", "nic", "list"); err != nil {
		t.Error(err)
	}
	for method, want := range map[string]string{
		"UpdateOptions":                        "esx-02 (advancedOption) NoPermission",
		"EnableRuleset":                        "esx-02 (firewallSystem) ok",
		"QueryNetworkHint":                     "esx-01 (networkSystem) ok",
		"esxcli network nic list":              "esx-01 ok",
		"ExecuteSoap vim.CLIInfo.FetchCLIInfo": "esx-01 ok",
		"RetrieveManagedMethodExecuter":        "esx-01 ok",
	} {
		if got := r.lines(method); !slices.Contains(got, method+" "+want) {
			t.Errorf("%s: %q, want %q", method, got, want)
		}
	}
	part := regexp.MustCompile(`^(Host\w+|OptionManager|ManagedMethodExecuter|EnvironmentBrowser):`)
	for _, call := range r.calls {
		if part.MatchString(call.Target) {
			t.Errorf("%s %s: which host is it?", call.Method, call.Target)
		}
	}
}

// TestTraceShowsTheEndOfATask lets a task fail whose start succeeds: the trace has a line for its end.
func TestTraceShowsTheEndOfATask(t *testing.T) {
	t.Parallel()
	c, r := tracedLab(t, "vm=vm-02,method=ReconfigVM_Task,nth=1,do=task-fault:InvalidState")
	if err := c.Brackets()[backends.BracketVMPower].Open(t.Context(), backends.VMRef("vm-02"), nil); err != nil {
		t.Fatal(err)
	}
	memory := backends.Setting{Target: backends.VMRef("vm-02"), Kind: backends.KindMemory}
	for range 2 { // the second time, or when the setter repeats it, it succeeds
		_ = c.Setters()[memory.Kind].Set(t.Context(), memory, backends.ValueOf(backends.MemorySpec{Locked: true}), nil)
	}
	const task = "task ReconfigVM_Task"
	if got := r.lines(task); len(got) < 2 || got[0] != task+" vm-02 InvalidState" || got[len(got)-1] != task+" vm-02 ok" {
		t.Errorf("%q", got)
	}
	started := map[string]bool{}
	for _, call := range r.calls {
		if name, is := strings.CutPrefix(call.Method, "task "); is && (!started[call.ID] || !strings.HasSuffix(name, "_Task") || call.Took <= 0) {
			t.Errorf("%s %s of request %q took %s, and no call has started it", call.Method, call.Target, call.ID, call.Took)
		}
		started[call.ID] = true
	}
}
