package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
)

// What cannot be right on the command line is refused before anything is read or started, with what is wrong and what to do.
func TestRehearseRefusesTheCommandLine(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Hosts: 2, VMs: 2})
	bundle := filepath.Join(t.TempDir(), "site.tgz")
	if code, _, errs := site.run("collect", "-f", "ANSWERS", "--out", bundle); code != 0 {
		t.Fatalf("collect: %d\n%s", code, errs)
	}
	calls := site.lab.Calls()
	text, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	cut, foreign := filepath.Join(t.TempDir(), "cut.tgz"), filepath.Join(t.TempDir(), "foreign.txt")
	for name, text := range map[string][]byte{cut: text[:len(text)/2], foreign: []byte("hosts: 4\n")} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		args       []string
		what, hint string
	}{
		{[]string{"--fault", "vm=vm-1,do=drop"}, `fault rule "vm=vm-1,do=drop": there is no VM vm-1`, "did you mean vm-01?"},
		{[]string{"--fault", "host=nowhere,do=reboot-never"}, "there is no host nowhere", "there is: esx-01, esx-02"},
		{[]string{"--fault", "host=esx-0[,do=drop"}, "there is no host esx-0[", ""},
		{[]string{"--fault", "method=RebotHost_Task,do=drop"}, "vCenter has no method RebotHost_Task", "did you mean RebootHost_Task?"},
		{[]string{"--fault", "method=EnableRuleset,do=fault:NoPermision"}, "vSphere has no fault NoPermision", "did you mean NoPermission?"},
		{[]string{"--fault", "vm=vm-01,do=slow:abc"}, `slow needs a duration such as 5s or 1m30s, not "abc"`, "rdma-setup lab --fault help"},
		{[]string{"--scenario", "broken-pfc-prioritty"}, `unknown scenario "broken-pfc-prioritty"`, "rdma-setup lab --scenario help lists them"},
		{[]string{"--scenario", "broken-pfc-priority"}, "only a measurement shows", "rdma-setup lab --scenario broken-pfc-priority"},
		{[]string{"--scenario", "rails"}, "scenario rails is a data centre of its own", "broken-..."},
		{[]string{"--scenario", ""}, "--scenario is empty", "leave it out"},
		{[]string{"--bundle", ""}, "--bundle is empty", "leave it out"},
		{[]string{"--shutdown", "-5m"}, "--shutdown -5m0s is not valid", "720h (30 days)"},
		{[]string{"--other", "1000000h"}, "--other 1000000h0m0s is not valid", "720h (30 days)"},
		{[]string{"--bundle", cut}, cut + ": the bundle cannot be read: it is truncated", "write it again"},
		{[]string{"--bundle", foreign}, foreign + ": the bundle cannot be read: it is not a gzipped tar file",
			"name a file that rdma-setup collect --out FILE has written"},
		{[]string{"--bundle", cut + ".none"}, cut + ".none: the bundle cannot be read: no such file or directory", "create one with"},
	} {
		args := append([]string{"rehearse", "-f", "ANSWERS"}, row.args...)
		if row.args[0] != "--bundle" {
			args = append(args, "--bundle", bundle)
		}
		code, out, errs := site.run(args...)
		first, rest, _ := strings.Cut(errs, "\n")
		if code != 2 || out != "" || !strings.Contains(first, row.what) || !strings.Contains(rest, row.hint) || len(first) > 250 ||
			strings.Contains(errs, "planning") {
			t.Errorf("%q: exit %d, want %q, hint %q\n%s%s", row.args, code, row.what, row.hint, out, errs)
		}
	}
	code, _, errs := site.run("rehearse", "--bundle", bundle)
	if want, _, why := site.run("plan"); code != 2 || code != want || errs != why {
		t.Errorf("without -f: exit %d, plan %d\n%s%s", code, want, errs, why)
	}
	if n := site.lab.Calls(); n != calls {
		t.Errorf("%d calls to the site", n-calls)
	}
}

// Answers that name what the bundle does not have are refused as the site refuses them.
func TestRehearseAnswersOfAnotherSite(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Hosts: 1, VMs: 1})
	text, err := os.ReadFile(filepath.Join(site.lab.Dir(), "answers-pvrdma.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bundle := filepath.Join(dir, "site.tgz")
	if code, _, errs := site.run("collect", "-f", "ANSWERS", "--out", bundle); code != 0 {
		t.Fatalf("collect: %d\n%s", code, errs)
	}
	for _, row := range []struct{ from, to, what, hint string }{
		{`datacenter: "DC"`, `datacenter: "Berlin"`, "error: Berlin: there is no datacenter of that name in vCenter", "hint:  there is: DC"},
		{`cluster: "Cluster-01"`, `cluster: "GPU"`, "error: GPU: there is no cluster of that name", "hint:  there is: Cluster-01"},
		{`- "esx-01"`, `- "esx-07"`, "error: esx-07: no such host in the inventory", "hint:  did you mean esx-01?"},
	} {
		answers := filepath.Join(dir, "answers.yaml")
		changed := bytes.ReplaceAll(text, []byte(row.from), []byte(row.to))
		if bytes.Equal(changed, text) {
			t.Fatalf("the answers have no %q:\n%s", row.from, text)
		}
		if err := os.WriteFile(answers, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		want, _, why := site.run("plan", "-f", answers)
		code, out, errs := site.run("rehearse", "-f", answers, "--bundle", bundle)
		if code != 3 || want != 3 || !strings.Contains(out, row.what) || !strings.Contains(out, row.hint) || !strings.Contains(why, row.what) {
			t.Errorf("rehearse %d, plan %d, want %q and %q:\n%s%s%s", code, want, row.what, row.hint, out, errs, why)
		}
	}
}

// A fault that was applied to no call is said: nothing was tried.
func TestRehearseAFaultThatNothingMatches(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Hosts: 1, VMs: 1})
	r, code, _ := site.rehearsal("-f", "ANSWERS", "--fault", "host=esx-01,method=RebootHost_Task,do=reboot-never", "--fault",
		"vm=vm-01,command=modprobe,nth=900,do=drop")
	if code != 0 || len(r.Warnings) != 2 ||
		!strings.Contains(r.Warnings[0], "the fault host=esx-01,method=RebootHost_Task,do=reboot-never matched no call") ||
		!strings.Contains(r.Warnings[1], "is for call number 900, and only ") {
		t.Errorf("exit %d, warnings %q", code, r.Warnings)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "\nwarning: the fault host=esx-01,") {
		t.Errorf("%v\n%s", err, &text)
	}
}

// A signal while the site is read ends the rehearsal as an interruption.
func TestRehearseIsInterruptedWhileItReads(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Hosts: 1, VMs: 1, Faults: []string{"method=RetrievePropertiesEx,do=hang"}})
	site.interrupts = make(chan os.Signal, 1)
	site.interrupts <- syscall.SIGINT
	if code, _, errs := site.run("rehearse", "-f", "ANSWERS"); code != 130 || errs != "error: interrupted: nothing was written to the site\n" {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

// A guest that was not read is replaced by a new installation: the reason is in the assumption, and collect says it and does not count the
// guest.
func TestRehearseAGuestThatWasNotRead(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Hosts: 1, VMs: 2, Faults: []string{"vm=vm-02,command=*,do=fail:no such luck"}})
	code, out, errs := site.run("collect", "-f", "ANSWERS", "--out", filepath.Join(t.TempDir(), "site.tgz"), "-o", "json")
	if code != 0 || !strings.Contains(errs, "warning: guest/vm-02 was not read: ") || !strings.Contains(errs, "1 hosts, 2 VMs, 1 guests, ") ||
		!strings.Contains(out, `"target": "guest/vm-02"`) || !strings.Contains(out, `"guests": 1`) {
		t.Errorf("collect: %d\n%s%s", code, out, errs)
	}
	r, _, _ := site.rehearsal("-f", "ANSWERS")
	if !slices.ContainsFunc(r.Assumed, func(s string) bool {
		return strings.HasPrefix(s, "vm-02: the guest was not read (") && strings.Contains(s, "no such luck")
	}) {
		t.Errorf("assumed: %q", r.Assumed)
	}
}

// Files on the local machine that cannot be written are named as the operator names them.
func TestLocalFilesThatCannotBeWritten(t *testing.T) {
	site := newBench(t, lab.Options{Hosts: 1, VMs: 1})
	bundle := filepath.Join(t.TempDir(), "site.tgz")
	if code, _, errs := site.run("collect", "-f", "ANSWERS", "--out", bundle); code != 0 {
		t.Fatalf("collect: %d\n%s", code, errs)
	}
	none := filepath.Join(t.TempDir(), "none")
	code, _, errs := site.run("collect", "-f", "ANSWERS", "--out", none+"/x.tgz")
	if want := "error: " + none +
		"/x.tgz cannot be written: no such file or directory\nhint:  name a file in a writable directory\n"; code != 1 ||
		!strings.HasSuffix(errs, want) {
		t.Errorf("collect: %d\n%s", code, errs)
	}
	t.Setenv("TMPDIR", none)
	code, _, errs = site.run("rehearse", "-f", "ANSWERS", "--bundle", bundle)
	want := "error: the twin needs a temporary directory, and none can be created in " + none +
		": no such file or directory\nhint:  set TMPDIR to a directory that you can write to\n"
	if code != 1 || errs != want {
		t.Errorf("rehearse: %d\n%s", code, errs)
	}
}

// A lab refuses rules about what it does not have, too.
func TestLabRefusesFaultsOfNothing(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Hosts: 1, VMs: 1})
	for rule, want := range map[string]string{
		"host=esx-99,do=drop":       "there is no host esx-99",
		"method=Reboot,do=drop":     "vCenter has no method Reboot",
		"do=task-fault:NotAFault":   "vSphere has no fault NotAFault",
		"vm=vm-77,do=reboot-never":  "there is no VM vm-77",
		"vm=vm-01,do=slow:tomorrow": "slow needs a duration",
	} {
		if code, out, errs := site.run("lab", "--hosts", "1", "--vms", "1", "--fault", rule, "--idle-exit", "1s"); code != 2 ||
			out != "" || !strings.Contains(errs, want) || !strings.Contains(errs, "\nhint:  ") {
			t.Errorf("%s: %d\n%s%s", rule, code, out, errs)
		}
	}
}
