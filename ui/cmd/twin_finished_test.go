package cmd_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/cmd/torture/witness"
)

// A site that this program has finished has nothing left to do, and neither has its twin: an outside client sees no difference, the plans
// are the same and empty, and the quick checks find the same.
func TestTwinOfAFinishedSite(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	rows := []struct {
		name, scenario, mode string
		unlike               *regexp.Regexp // keys of the guests' dumps that differ beside those of unlike
	}{
		{"pvrdma-rails", "rails", "pvrdma", nil},
		{"sriov-rails", "rails", "sriov", nil},
		{"gpudirect", "healthy", "gpudirect", nil},

		// Files that someone else wrote have other names, and NVIDIA's driver is in packages even if an installer of its own installed it.
		{"gpudirect-done", "gpudirect-done", "gpudirect",
			regexp.MustCompile(` (file|path) /etc/(modules-load|netplan|security)| package nvidia-driver-570-server-open$`)},
		{"pvrdma", "healthy", "pvrdma", nil},
		{"pvrdma-dhcp", "dhcp", "pvrdma", nil},
		{"pvrdma-containers", "containers", "pvrdma", nil},
		{"sriov", "healthy", "sriov", nil},
		{"sriov-centos", "centos", "sriov", nil},
		{"gpudirect-source", "gpudirect-source", "gpudirect", regexp.MustCompile(`cuda|nvidia|initrd| package lib| path (/mnt|/usr/include)`)},
	}
	if !testclass.Sized(t) {
		rows = rows[:3]
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			site := newBench(t, lab.Options{Scenario: row.scenario, Hosts: 2, VMs: 2, BootTime: 50 * time.Millisecond,
				RebootTime: 100 * time.Millisecond})
			answers := filepath.Join(site.lab.Dir(), "answers-"+row.mode+".yaml")
			if code, out, errs := site.run("apply", "-f", answers, "--yes"); code != 0 {
				t.Fatalf("apply: %d\n%s\n%s", code, out, errs)
			}
			sameAsItsTwin(t, site, answers, row.unlike)
		})
	}
}

// What is active in a guest and not persistent, and the opposite, is the same in the twin: both need the same changes.
func TestTwinOfAGuestThatWasChanged(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	site := newBench(t, lab.Options{Hosts: 2, VMs: 2, BootTime: 50 * time.Millisecond, RebootTime: 100 * time.Millisecond})
	answers := filepath.Join(site.lab.Dir(), "answers-sriov.yaml")
	if code, out, errs := site.run("apply", "-f", answers, "--yes"); code != 0 {
		t.Fatalf("apply: %d\n%s\n%s", code, out, errs)
	}
	for vm, script := range map[string]string{
		"vm-01": "rm /etc/netplan/60-rdma-setup-*.yaml; systemctl disable rdma-setup-class-*.service; modprobe -r rdma_ucm",
		"vm-02": "ip link set dev $(ls /sys/class/net | tail -n 1) mtu 1500; for f in /sys/kernel/config/rdma_cm/*/ports/1/default_roce_tos; " +
			"do echo 8 >$f; done; rm /etc/security/limits.d/*",
	} {
		site.enter(vm, script)
	}
	served, _, again := twinOf(t, site, answers)
	_, want, _ := site.run("plan", "-f", answers)
	if _, got, _ := served.run("plan", "-f", again); got != want || strings.Count(want, "absent -> ") < 1 ||
		!strings.Contains(want, "rdma_ucm") || !strings.Contains(want, "traffic class") {
		t.Errorf("plan on the site\n%s\non the twin\n%s", want, got)
	}
	if want, got := site.planHash(answers), served.planHash(again); got != want || len(want) != 64 {
		t.Errorf("plan %s on the site, %s on the twin", want, got)
	}
}

// enter runs a script as root in a guest.
func (b *bench) enter(vm, script string) {
	b.t.Helper()
	var g world.Guest
	b.lab.World().View(func(s *world.State) { g = s.VM(vm).Guest })
	script = fmt.Sprintf("echo '%s' | sudo -S -p '' sh -c '%s'", b.env["RDMA_SETUP_SUDO_PASSWORD"], script)
	if out, err := remote(b.lab, net.JoinHostPort(g.Address, strconv.Itoa(g.Port)), g.User, script); err != nil {
		b.t.Fatalf("%s: %v\n%s", vm, err, out)
	}
}

// sameAsItsTwin compares a finished site with its twin.
func sameAsItsTwin(t *testing.T, site *bench, answers string, other *regexp.Regexp) {
	t.Helper()
	served, tw, again := twinOf(t, site, answers)
	if want, got := site.planHash(answers), served.planHash(again); got != want || len(want) != 64 {
		t.Errorf("plan %s on the site, %s on the twin", want, got)
	}
	for where, plan := range map[string]func() (int, string, string){
		"the site": func() (int, string, string) { return site.run("plan", "-f", answers, "--detailed-exitcode") },
		"the twin": func() (int, string, string) { return served.run("plan", "-f", again, "--detailed-exitcode") },
	} {
		if code, out, errs := plan(); code != 0 {
			t.Errorf("plan on %s: exit %d\n%s\n%s", where, code, out, errs)
		}
	}
	if diff := witness.Diff(site.outside(), served.outside(), assumed.MatchString); len(diff) > 0 {
		t.Errorf("%d differences:\n%s\nassumed:\n%s", len(diff), strings.Join(diff[:min(len(diff), 30)], "\n"), strings.Join(tw.Assumed, "\n"))
	}
	ignored := func(key string) bool { return unlike.MatchString(key) || other != nil && other.MatchString(key) }
	if _, err := exec.LookPath("ssh"); err != nil && os.Getenv("CI") == "" {
		t.Log("the guests are not compared: there is no ssh on this machine, which is the outside client")
	} else if diff := witness.Diff(site.guests(), served.guests(), ignored); len(diff) > 0 {
		t.Errorf("%d differences in the guests:\n%s", len(diff), strings.Join(diff[:min(len(diff), 60)], "\n"))
	}
	want, code := site.quickChecks(answers)
	got, twinCode := served.quickChecks(again)
	if code != twinCode {
		t.Errorf("check: exit %d on the site, %d on the twin", code, twinCode)
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("only on the site: %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("only on the twin: %s", line)
		}
	}
}

// unlike matches the keys of a guest's dump that differ between two guests that are set up alike: each lab has a key of its own, and in
// the twin, whose guests have just booted, a unit that was only enabled has run, and udev has loaded modules that nothing of RDMA needs.
var unlike = regexp.MustCompile(`^guest \S+ (file \S+/authorized_keys sha256|(active|loaded) rdma-setup-vmw_pvrdma.service` +
	`|(path /sys/module/|modules )(rpcrdma|sunrpc|nvidia_(drm|modeset|uvm))(/.*)?)$`)

// guests returns what a client that shares no code with the program sees of the guests.
func (b *bench) guests() witness.Dump {
	b.t.Helper()
	s := witness.Site{URL: b.lab.URL().String(), User: b.env["GOVC_USERNAME"], Password: b.env["GOVC_PASSWORD"],
		CACerts: b.env["GOVC_TLS_CA_CERTS"],
		Key:     b.env["RDMA_SETUP_SSH_KEY"], SudoPassword: b.env["RDMA_SETUP_SUDO_PASSWORD"]}
	b.lab.World().View(func(st *world.State) {
		for _, v := range st.VMs {
			s.Guests = append(s.Guests, witness.Guest{VM: v.Name, Address: v.Guest.Address, Port: v.Guest.Port, User: v.Guest.User})
		}
	})
	d, err := witness.Inspect(b.t.Context(), s)
	if err != nil {
		b.t.Fatal(err)
	}
	maps.DeleteFunc(d, func(key, _ string) bool { return !strings.HasPrefix(key, "guest ") })
	return d
}

// quickChecks returns the result of each quick check on each target, and the exit code.
func (b *bench) quickChecks(answers string) (list []string, code int) {
	b.t.Helper()
	code, out, errs := b.run("check", "-f", answers, "--quick", "-o", "json")
	var doc struct {
		Verdict string
		Results []struct{ ID, Target, Status string }
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		b.t.Fatalf("check: %d, %v\n%s\n%s", code, err, out, errs)
	}
	list = append(list, "verdict "+doc.Verdict)
	for _, r := range doc.Results {
		target, _, _ := strings.Cut(r.Target, "/https:") // the address of vCenter differs
		list = append(list, r.ID+" "+target+" "+r.Status)
	}
	return list, code
}
