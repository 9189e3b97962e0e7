package fault

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFaultRules(t *testing.T) {
	type call struct {
		target          Target
		method, command string
	}
	for _, row := range []struct {
		rule  string
		calls []call
		hits  string // one letter per call: x if the rule applies, otherwise .
	}{
		{"host=esx-02,method=EnableRuleset,nth=1,do=fault:NoPermission", []call{
			{Target{Host: "esx-01"}, "EnableRuleset", ""}, {Target{Host: "esx-02"}, "UpdateOptions", ""},
			{Target{Host: "esx-02"}, "EnableRuleset", ""}, {Target{Host: "esx-02"}, "EnableRuleset", ""}}, "..x."},
		{"method=ReconfigVM,do=hang", []call{{Target{VM: "vm-01"}, "ReconfigVM_Task", ""}, {Target{}, "", "ReconfigVM"}}, "x."},
		{"vm=vm-*,command=modprobe,nth=2,do=fail:no such module, sorry", []call{
			{Target{VM: "vm-01"}, "", "/sbin/modprobe ib_umad"}, {Target{VM: "vm-02"}, "", "modprobe -r vmw_pvrdma"},
			{Target{VM: "vm-02"}, "", "lsmod"}, {Target{Host: "esx-01"}, "", "modprobe x"}}, ".x.."},
		{"vm=vm-01,command=ip addr,do=drop", []call{
			{Target{VM: "vm-01"}, "", "ip link"}, {Target{VM: "vm-01"}, "", "/usr/sbin/ip addr show"}}, ".x"},
		{"host=esx-01,do=drop", []call{{Target{Host: "esx-01"}, "PowerOnVM_Task", ""}, {Target{Host: "esx-01"}, "", "esxcli x"},
			{Target{}, "Login", ""}}, "xx."},
		{"method=*,do=slow:10ms", []call{{Target{}, "Login", ""}, {Target{}, "", "ls"}}, "x."},
	} {
		t.Run(row.rule, func(t *testing.T) {
			f, err := Parse([]string{row.rule})
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, c := range row.calls {
				rule, hit := f.Take(c.target, c.method, c.command)
				got.WriteByte(".x"[map[bool]int{true: 1}[hit]])
				if hit && rule.Rule != row.rule {
					t.Errorf("rule %q", rule.Rule)
				}
			}
			if got.String() != row.hits {
				t.Errorf("hits %s, want %s", got.String(), row.hits)
			}
		})
	}
}

// A rule of reboot-never is about every reboot of its hosts or VMs, whatever starts it.
func TestRebootsThatNeverEnd(t *testing.T) {
	esx, vm := Target{Host: "esx-01"}, Target{VM: "vm-01"}
	for rule, hits := range map[string]string{
		"do=reboot-never":                                    "xx.x",
		"host=esx-01,do=reboot-never":                        "x..x",
		"host=esx-01,method=RebootHost_Task,do=reboot-never": "x..x",
		"host=esx-*,method=RebootHost,nth=2,do=reboot-never": "...x",
		"vm=vm-01,do=reboot-never":                           ".x..",
		"vm=vm-*,command=systemctl reboot,do=reboot-never":   ".x..",
		"method=RebootHost_Task,do=reboot-never":             "x..x",
		"host=esx-02,do=reboot-never":                        "....",
	} {
		f, err := Parse([]string{rule})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for n, at := range []Target{esx, vm, esx, esx} {
			if n == 2 { // the call that starts the reboot is not one
				f.Take(at, "RebootHost_Task", "")
				got.WriteByte('.')
				continue
			}
			_, hit := f.NeverBack(at)
			got.WriteByte(".x"[map[bool]int{true: 1}[hit]])
		}
		if got.String() != hits {
			t.Errorf("%s: hits %s, want %s", rule, got.String(), hits)
		}
	}
}

func TestFaultRulesRefused(t *testing.T) {
	for rule, want := range map[string]string{
		"host=esx-01":                           "do= is missing",
		"hosts=esx-01,do=drop":                  `unknown key "hosts"`,
		"nth=0,do=drop":                         "nth must be a number from 1",
		"nth=many,do=drop":                      "nth must be a number from 1",
		"do=explode":                            `unknown do "explode"`,
		"do=slow:soon":                          `slow needs a duration such as 5s or 1m30s, not "soon"`,
		"do=fault":                              "fault needs a text",
		"do=noise:much":                         "is no size",
		"do=noise:":                             "is no size",
		"method=Login,command=modprobe,do=drop": "exclude each other",
		"host,do=drop":                          `"host" is not key=value`,
		"method=PowerOnVM,do=reboot-never":      "reboot-never is about reboots",
		"command=modprobe,do=reboot-never":      "reboot-never is about reboots",
	} {
		if _, err := Parse([]string{rule}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", rule, err, want)
		}
	}
}

func TestFaultArguments(t *testing.T) {
	f, err := Parse([]string{"do=slow:1m30s", "do=fail:a, b: c"})
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := f.Take(Target{}, "Login", ""); !ok || r.Wait != 90*time.Second {
		t.Errorf("rule %+v", r)
	}
	f.Clear()
	if err := f.Add("do=fail:a, b: c"); err != nil {
		t.Fatal(err)
	}
	if r, ok := f.Take(Target{}, "", "ls"); !ok || r.Arg != "a, b: c" {
		t.Errorf("rule %+v", r)
	}
}

// A held task is counted by itself, not by the call that starts it, and is released when the rules are removed.
func TestHeldTask(t *testing.T) {
	f, err := Parse([]string{"method=CreateDVS,nth=2,do=task-hold"})
	if err != nil {
		t.Fatal(err)
	}
	if r, hit := f.Take(Target{}, "CreateDVS_Task", ""); hit {
		t.Errorf("the call is a hit: %+v", r)
	}
	if _, held := f.Hold(Target{}, "CreateDVS_Task"); held != nil {
		t.Error("the first task is held")
	}
	_, held := f.Hold(Target{}, "CreateDVS_Task")
	if held == nil {
		t.Fatal("the second task is not held")
	}
	f.Clear()
	<-held
}

// A rule that was applied to no call is known afterwards, and how many calls matched it.
func TestUnusedRules(t *testing.T) {
	f, err := Parse([]string{"host=esx-01,do=reboot-never", "method=Login,nth=3,do=drop", "method=Logout,do=drop", "vm=vm-01,do=disconnect",
		"vm=vm-02,do=disconnect"})
	if err != nil {
		t.Fatal(err)
	}
	f.Take(Target{}, "Login", "")
	f.Take(Target{}, "Login", "")
	f.Take(Target{}, "Logout", "")
	f.Disconnects("vm-02")
	var got []string
	for _, u := range f.Unused() {
		got = append(got, fmt.Sprint(u.Matched, " ", u.Rule.Rule))
	}
	want := []string{"0 host=esx-01,do=reboot-never", "2 method=Login,nth=3,do=drop", "0 vm=vm-01,do=disconnect"}
	if !slices.Equal(got, want) {
		t.Errorf("unused: %q, want %q", got, want)
	}
}

func FuzzParseFault(f *testing.F) {
	f.Add("host=esx-02,method=EnableRuleset,nth=1,do=fault:NoPermission")
	f.Add("vm=[,command=a,do=fail:x")
	f.Fuzz(func(t *testing.T, rule string) {
		faults, err := Parse([]string{rule})
		if err != nil {
			return
		}
		faults.Take(Target{Host: "esx-01", VM: "vm-01"}, "Login", "")
		faults.Take(Target{Host: "esx-01", VM: "vm-01"}, "", "modprobe x")
	})
}
