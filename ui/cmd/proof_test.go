package cmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// states is what another client of the vCenter sees of power, maintenance, boots, SSH services and events.
func (b *bench) states() map[string]string {
	b.t.Helper()
	ctx := b.t.Context()
	c := outsider(ctx, b.t, b.env)
	v, err := view.NewManager(c.Client).CreateContainerView(ctx, c.ServiceContent.RootFolder, []string{"VirtualMachine", "HostSystem"}, true)
	if err != nil {
		b.t.Fatal(err)
	}
	var vms []mo.VirtualMachine
	var hosts []mo.HostSystem
	if err := v.Retrieve(ctx, []string{"VirtualMachine"}, []string{"name", "runtime"}, &vms); err != nil {
		b.t.Fatal(err)
	}
	if err := v.Retrieve(ctx, []string{"HostSystem"}, []string{"name", "runtime", "config.service"}, &hosts); err != nil {
		b.t.Fatal(err)
	}
	events, err := event.NewManager(c.Client).QueryEvents(ctx, types.EventFilterSpec{})
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range events {
		if kind := fmt.Sprintf("%T", e); !strings.HasSuffix(kind, "SessionEvent") {
			out["event "+fmt.Sprint(e.GetEvent().Key)] = kind
		}
	}
	for _, v := range vms {
		out[v.Name] = string(v.Runtime.PowerState)
	}
	for _, h := range hosts {
		out[h.Name] = fmt.Sprintf("maintenance %t, booted %s", h.Runtime.InMaintenanceMode, h.Runtime.BootTime)
		for _, s := range h.Config.Service.Service {
			if s.Key == "TSM-SSH" {
				out[h.Name] += fmt.Sprintf(", SSH %t", s.Running)
			}
		}
	}
	return out
}

// written returns what was changed in the lab, except for SSH services and logins.
func (b *bench) written() []string {
	var out []string
	for _, e := range b.lab.World().Log.Events() {
		ssh := e.What == world.HostService && strings.HasPrefix(e.Detail, "TSM-SSH") ||
			e.What == world.HostFirewall && strings.HasPrefix(e.Detail, "sshServer")
		if !ssh && !slices.Contains([]string{world.HostLogin, world.Process, world.Call, world.FaultApplied, world.VMGuest}, e.What) {
			out = append(out, e.What+" "+e.Host+e.VM+" "+e.Detail)
		}
	}
	return out
}

// logins counts the passwords that were sent to a host for root.
func (b *bench) logins(host, verdict string) int {
	n := 0
	for _, e := range b.lab.World().Log.Events() {
		if e.What == world.HostLogin && e.Host == host && e.Detail == verdict {
			n++
		}
	}
	return n
}

// replaceKeys writes the key of another host for the shells of hosts and guests to the known_hosts file; restore undoes it.
func (b *bench) replaceKeys(other string, names ...string) (restore func()) {
	b.t.Helper()
	path := b.env["RDMA_SETUP_KNOWN_HOSTS"]
	was, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	key := map[string]string{}
	for line := range strings.Lines(string(was)) {
		name, k, _ := strings.Cut(line, " ")
		key[name] = k
	}
	at := map[string]string{}
	b.lab.World().View(func(s *world.State) {
		for _, name := range append(names, other) {
			if v := s.VM(name); v != nil {
				at[name] = fmt.Sprintf("[%s]:%d", v.Guest.Address, v.Guest.Port)
				continue
			}
			addr, port, _ := strings.Cut(s.Host(name).ShellAddr, ":")
			at[name] = "[" + addr + "]:" + port
		}
	})
	replaced := string(was)
	for name, address := range at {
		if key[address] == "" {
			b.t.Fatalf("known_hosts has no key of %s, %s:\n%s", name, address, was)
		}
		replaced = strings.Replace(replaced, address+" "+key[address], address+" "+key[at[other]], 1)
	}
	if err := os.WriteFile(path, []byte(replaced), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(path, was, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestLoginsAreTestedBeforeAnythingElse: a stale host key, an SSH service that may not be started, a wrong password on a third
// host, and a guest with a stale host key are listed together. Only the SSH services were changed, and they are off again. After
// they are fixed, the same command works. Source of the lockout: see backends/lab/esxi/password.go.
func TestLoginsAreTestedBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-password", Hosts: 3, VMs: 3,
		Faults: []string{"host=esx-02,method=StartService,nth=1,do=fault:NoPermission"}})
	b.env["RDMA_SETUP_SSH_KEY"] = ""
	fix := b.replaceKeys("esx-02", "esx-01", "vm-02")
	before, written := b.states(), len(b.written())
	_, errs := b.must(3, "apply", "-f", file, "--yes")
	for _, want := range []string{
		`(?m)^Nothing was changed`,
		`(?m)^error: vm-02: .*host key.*\nhint:  `,
		`(?m)^error: esx-01: .*host key.*\nhint:  `,
		`(?m)^error: esx-02: start the SSH service: permission denied.*\nhint:  grant Host.Config.NetService`,
		`(?m)^error: esx-03: user root was refused .*\nhint:  .*15 minutes after five failures`,
	} {
		if !regexp.MustCompile(want).MatchString(errs) {
			t.Errorf("it does not say %s", want)
		}
	}
	if t.Failed() {
		t.Log(errs)
	}
	if diff := cmp.Diff(before, b.states()); diff != "" {
		t.Errorf("another client sees a change:\n%s", diff)
	}
	if after := b.written(); len(after) != written {
		t.Errorf("written: %q", after[written:])
	}
	if n := b.logins("esx-03", "refused"); n != 1 {
		t.Errorf("the wrong password was tried %d times on esx-03", n)
	}

	fix()
	passwords := filepath.Join(t.TempDir(), "passwords")
	if err := os.WriteFile(passwords, []byte("esx-03 Lab-esxi-2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must(0, "apply", "-f", file, "--yes", "--esxi-passwords", passwords)
}

// TestProofIsConfinedByLimit excludes the host with the wrong password: there is no login to it.
func TestProofIsConfinedByLimit(t *testing.T) {
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-password", Hosts: 2, VMs: 2})
	b.env["RDMA_SETUP_SSH_KEY"] = ""
	b.must(0, "apply", "-f", file, "--limit", "esx-01", "--yes")
	if n := b.logins("esx-02", "refused") + b.logins("esx-02", "accepted"); n != 0 {
		t.Errorf("%d log-ins to esx-02", n)
	}
	out, _ := b.must(4, "apply", "-f", file, "--yes", "-o", "json")
	if last := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]; !strings.Contains(last, `"status":"refused"`) ||
		!strings.Contains(last, `"target":"host/esx-02"`) {
		t.Errorf("the result names no host:\n%s", last)
	}
}

// TestResumeAndRollbackTestTheirLogins has a run fail on one host after the firmware of the other was set, then changes the root
// password of both: resume and rollback stop before they change anything, and name each host.
func TestResumeAndRollbackTestTheirLogins(t *testing.T) {
	t.Parallel()
	b, file := sriovBench(t,
		lab.Options{Scenario: "bare", Hosts: 2, VMs: 2,
			Faults: []string{"host=esx-02,command=mlxconfig,do=fail:-E- the card is busy with something"}})
	b.env["RDMA_SETUP_SSH_KEY"] = ""
	b.must(5, "apply", "-f", file, "--yes")
	b.lab.World().Faults.Clear()
	b.change(world.Event{What: world.HostLogin}, func(s *world.State) {
		for _, h := range s.Hosts {
			h.Password = "changed since"
		}
	})
	before, written := b.states(), len(b.written())
	fix := b.replaceKeys("esx-01", "vm-01")
	for _, command := range []string{"resume", "rollback"} {
		code, _, errs := b.run(command, "--yes")
		if code != 4 || command == "resume" && !strings.Contains(errs, "error: vm-01: ") {
			t.Errorf("%s: exit %d, want 4 and the guest:\n%s", command, code, errs)
		}
		if !regexp.MustCompile(`(?m)^Nothing was changed`).MatchString(errs) || !strings.Contains(errs, "error: esx-0") ||
			!strings.Contains(errs, "15 minutes after five failures") {
			t.Errorf("%s says:\n%s", command, errs)
		}
		if diff := cmp.Diff(before, b.states()); diff != "" {
			t.Errorf("%s: another client sees a change:\n%s", command, diff)
		}
		if after := b.written(); len(after) != written {
			t.Errorf("%s has written: %q", command, after[written:])
		}
	}
	fix()
	b.env["RDMA_SETUP_ESXI_PASSWORD"] = "changed since"
	b.must(0, "resume", "--yes")
}
