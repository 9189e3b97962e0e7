package guest_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

func (m *machine) fault(t *testing.T, rule string) {
	t.Helper()
	testclass.OK(t, m.world.Faults.Add("vm="+m.vm+","+rule))
}

// What goes wrong in a guest is said in words that fit, of the kind that fits, and leaves no half-written file.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		which int // of wanted
		rule  string
		kind  backends.ErrorKind
		says  string
		hint  string
	}{
		{"no network for apt", 0, "command=apt-get,do=fail:Temporary failure resolving 'archive.ubuntu.com'", backends.KindUnreachable,
			"repositories cannot be reached", "mirror"},
		{"dpkg was interrupted", 0, "command=apt-get,do=fail:E: dpkg was interrupted, you must manually run 'dpkg --configure -a'",
			backends.KindPermanent, "dpkg was interrupted", ""},
		{"somebody else holds the lock", 0,
			"command=apt-get,do=fail:E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)",
			backends.KindTransient, "another package manager", "unattended-upgrades"},
		{"no such module", 1, "command=modprobe,do=fail:modprobe: FATAL: Module rdma_ucm not found in directory /lib/modules/5.15.0-112-generic",
			backends.KindPermanent, "rdma_ucm not found", "modules-extra"},
		{"module in use", 1, "command=modprobe -r,do=fail:modprobe: FATAL: Module vmw_pvrdma is in use.", backends.KindTransient, "in use",
			"Stop what uses RDMA"},
		{"disk full", 2, "command=mktemp,do=fail:mktemp: failed to create file via template: No space left on device", backends.KindPermanent,
			"No space left", "Free some space"},
		{"read-only file system", 4, "command=mktemp,do=fail:mktemp: failed to create file via template: Read-only file system",
			backends.KindPermanent, "Read-only", "read-only"},
		{"no room for the initial RAM disk", 2, "command=update-initramfs,do=fail:update-initramfs: failed: No space left on device",
			backends.KindPermanent, "No space left", "Free some space"},
		{"netplan refuses the files", 3, "command=netplan,do=fail:Error in network definition", backends.KindRefused,
			"Error in network definition", "no network after its next boot"},
		{"netplan fails", 3, "command=netplan generate,nth=3,do=fail:Error in network definition", backends.KindPermanent,
			"Error in network definition", "undone the change"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: "ubuntu-22.04", options: guest.Options{AptLock: 300 * time.Millisecond}})
			if test.which > 0 && test.which != 3 {
				if err := m.Setters()[backends.KindPackages].Set(t.Context(), wanted(m, "ubuntu-22.04")[0].Setting, wanted(m, "ubuntu-22.04")[0].To,
					nil); err != nil {
					t.Fatal(err)
				}
			}
			a := wanted(m, "ubuntu-22.04")[test.which]
			disk := m.disk(t)
			m.fault(t, test.rule)
			err := m.Setters()[a.Kind].Set(t.Context(), a.Setting, a.To, nil)
			if backends.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says) || !strings.Contains(backends.HintOf(err), test.hint) {
				t.Errorf("error %v of kind %q, hint %q", err, backends.KindOf(err), backends.HintOf(err))
			}
			m.world.Faults.Clear()
			// What is read back as set counts as done, whatever was reported. Modules that are in use are loaded, and the port
			// reports whether that will do.
			if now, err := m.Setters()[a.Kind].Read(t.Context(), a.Setting); err != nil || now == a.To && test.which != 1 {
				t.Errorf("after the failure it reads as set: %s, %v", now, err)
			}
			if test.which == 3 && disk != m.disk(t) {
				t.Error("the files were not taken back")
			}
			if err := m.Setters()[a.Kind].Set(t.Context(), a.Setting, a.To, nil); err != nil {
				t.Errorf("it cannot be set any more: %v", err)
			}
			if now, err := m.Setters()[a.Kind].Read(t.Context(), a.Setting); err != nil || now != a.To {
				t.Errorf("it is %s, %v", now, err)
			}
		})
	}
}

func TestUnknownPackagesAreNamedAndTheOthersInstalled(t *testing.T) {
	for _, os := range []string{"ubuntu-22.04", "rhel-9"} {
		t.Run(os, func(t *testing.T) {
			m := newMachine(t, config{os: os})
			s, set := m.setting(backends.KindPackages, "rdma"), m.Setters()[backends.KindPackages]
			err := set.Set(t.Context(), s, backends.ValueOf(backends.PackageSpec{Installed: []string{"no-such-package", "perftest", "rdma-core"}}),
				nil)
			if backends.KindOf(err) != backends.KindPermanent || !strings.Contains(err.Error(), "no-such-package") ||
				strings.Contains(err.Error(), "perftest") || backends.HintOf(err) == "" {
				t.Errorf("%v, hint %q", err, backends.HintOf(err))
			}
			if now, err := set.Read(t.Context(), s); err != nil ||
				now != backends.ValueOf(backends.PackageSpec{Installed: []string{"perftest", "rdma-core"}}) {
				t.Errorf("installed are %s, %v", now, err)
			}
		})
	}
}

// libmlx4-1 has no package of its own: ibverbs-providers provides it.
func TestAVirtualPackageCountsByItsProvider(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04"})
	s, set := m.setting(backends.KindPackages, "rdma"), m.Setters()[backends.KindPackages]
	want := backends.ValueOf(backends.PackageSpec{Installed: []string{"libmlx4-1", "rdma-core"}})
	testclass.OK(t, set.Set(t.Context(), s, want, nil))
	if now, err := set.Read(t.Context(), s); err != nil || now != want {
		t.Errorf("%s, %v", now, err)
	}
}

func TestPackagesThatOthersNeedAreNotRemoved(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04"})
	s, set := m.setting(backends.KindPackages, "rdma"), m.Setters()[backends.KindPackages]
	one := backends.ValueOf(backends.PackageSpec{Installed: []string{"ibverbs-providers"}})
	kept, err := set.(backends.Keeper).Keep(t.Context(), s, one)
	testclass.OK(t, err)
	testclass.OK(t, set.Set(t.Context(), s, one, nil))
	m.root(t, "apt-get -y install perftest infiniband-diags") // somebody else, later
	err = set.(backends.Keeper).Restore(t.Context(), s, kept, nil)
	if backends.KindOf(err) != backends.KindConflict {
		t.Errorf("kept %v: %v", kept, err)
	}
	if now, _ := set.Read(t.Context(), s); now != one {
		t.Errorf("installed are %s", now)
	}
}

// What a first attempt keeps stays: without any package list it would be the names alone, and going back would leave all
// the libraries that a later attempt brought.
func TestNothingIsRecordedOfUnavailablePackages(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04"})
	s, set := m.setting(backends.KindPackages, "rdma"), m.Setters()[backends.KindPackages]
	one := backends.ValueOf(backends.PackageSpec{Installed: []string{"perftest"}})
	for _, said := range []string{"E: Unable to locate package perftest", "E: Write error - write (28: No space left on device)"} {
		m.fault(t, "command=apt-get,do=fail:"+said)
		if kept, err := set.(backends.Keeper).Keep(t.Context(), s, one); err == nil || len(kept.Items) > 0 {
			t.Errorf("%s: kept %v: %v", said, kept, err)
		}
	}
}

// A package manager that does not answer is not one that has no packages: a run would record as absent what it then installs.
func TestPackagesThatCannotBeRead(t *testing.T) {
	for os, command := range map[string]string{"ubuntu-22.04": "dpkg-query", "rhel-9": "rpm"} {
		t.Run(os, func(t *testing.T) {
			m := newMachine(t, config{os: os})
			s, set := m.setting(backends.KindPackages, "rdma"), m.Setters()[backends.KindPackages]
			one := backends.ValueOf(backends.PackageSpec{Installed: []string{"perftest"}})
			unread := func(err error) {
				t.Helper()
				if backends.KindOf(err) != backends.KindTransient || !strings.Contains(err.Error(), "its packages cannot be read") ||
					backends.HintOf(err) == "" {
					t.Errorf("%v, hint %q", err, backends.HintOf(err))
				}
			}
			if command == "rpm" { // is asked for each package
				m.fault(t, "command=rpm,nth=2,do=fail:error: cannot open the database")
				_, err := set.Read(t.Context(), s)
				unread(err)
				m.world.Faults.Clear()
			}
			m.fault(t, "command="+command+",do=fail:error: cannot open the database")
			_, err := set.Read(t.Context(), s)
			unread(err)
			_, err = set.(backends.Keeper).Keep(t.Context(), s, one)
			unread(err)
			unread(set.Set(t.Context(), s, one, nil))
			if g := m.Survey(t.Context(), m.vm); g.Error != "" || g.Packages != nil {
				t.Errorf("the survey has %+v", g)
			}
			m.world.Faults.Clear()
			if now, err := set.Read(t.Context(), s); err != nil || now != backends.ValueOf(backends.PackageSpec{Installed: []string{}}) {
				t.Errorf("installed are %s, %v", now, err)
			}
		})
	}
}

// What cannot be read is not missing: a run would record as absent what it then changes, and leave it.
func TestItemsThatCannotBeRead(t *testing.T) {
	for command, once := range map[string]bool{"systemctl is-enabled": false, "systemctl is-active": false, "systemctl is-enabled,nth=1": true,
		"stat": false, "readlink": false} {
		t.Run(command, func(t *testing.T) {
			m := newMachine(t, config{os: "ubuntu-22.04"})
			w := wanted(m, "ubuntu-22.04")
			at := slices.IndexFunc(w, func(a backends.Assignment) bool { return a.Kind == backends.KindPersist })
			k := m.Setters()[backends.KindPersist].(backends.Keeper)
			m.root(t,
				"mkdir -p /etc/systemd/system/multi-user.target.wants; ln -s ../rdma-setup-vmw_pvrdma.service "+
					"/etc/systemd/system/multi-user.target.wants/; echo ib_umad >/etc/modules-load.d/rdma-setup.conf")
			m.fault(t, "command="+command+",do=fail:Failed to connect to bus: Connection refused")
			kept, err := k.Keep(t.Context(), w[at].Setting, w[at].To)
			if once != (err == nil) || !once && !strings.Contains(err.Error(), command) {
				t.Errorf("%+v, %v", kept, err)
			}
		})
	}
}

// A step that waits too long for another says so: what else the guest prints is not the reason.
func TestAnotherStepThatDoesNotEnd(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04"})
	m.root(t, `printf '#!/bin/sh\necho "/bin/sh: warning: setlocale: LC_ALL: cannot change locale" >&2\nexit 75\n' >"$(command -v flock)"`)
	err := m.again(t, guest.Options{}).Settle(t.Context(), m.vm)
	if backends.KindOf(err) != backends.KindTransient ||
		!strings.HasSuffix(err.Error(), "another step of rdma-setup is still running in the guest") ||
		!strings.Contains(backends.HintOf(err), "ps ax") {
		t.Errorf("%v, hint %q", err, backends.HintOf(err))
	}
}

func TestAPortThatIsDownIsRepaired(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04", preset: true})
	m.root(t, "rm -f /etc/systemd/system/multi-user.target.wants/rdma-setup-pvrdma.service")
	m.reboot(t)
	s, set := m.setting(backends.KindPort, m.group), m.Setters()[backends.KindPort]
	if now, err := set.Read(t.Context(), s); err != nil || now != backends.ValueOf("PORT_DOWN") {
		t.Fatalf("%s, %v", now, err)
	}
	testclass.OK(t, set.Set(t.Context(), s, backends.ValueOf("PORT_ACTIVE"), nil))
	if now, err := set.Read(t.Context(), s); err != nil || now != backends.ValueOf("PORT_ACTIVE") {
		t.Errorf("%s, %v", now, err)
	}
}

func TestTheManagementInterfaceIsNotTouched(t *testing.T) {
	for _, os := range []string{"ubuntu-22.04", "rhel-9"} {
		m := newMachine(t, config{os: os})
		g := m.Survey(t.Context(), m.vm)
		m.mac = g.Interfaces[0].MAC
		disk := m.disk(t)
		s := m.setting(backends.KindAddress, m.group)
		err := m.Setters()[backends.KindAddress].Set(t.Context(), s, backends.ValueOf(backends.AddressSpec{CIDR: "192.168.50.21/24", MTU: 9000}),
			nil)
		if backends.KindOf(err) != backends.KindRefused || backends.HintOf(err) == "" {
			t.Errorf("%v", err)
		}
		if m.disk(t) != disk {
			t.Error("something was written")
		}
	}
}

func TestASubnetThatIsTakenIsRefused(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04"})
	taken := m.Survey(t.Context(), m.vm).Interfaces[0].Addresses[0]
	s := m.setting(backends.KindAddress, m.group)
	cidr := taken[:strings.LastIndex(taken, ".")] + ".250/24"
	err := m.Setters()[backends.KindAddress].Set(t.Context(), s, backends.ValueOf(backends.AddressSpec{CIDR: cidr, MTU: 9000}), nil)
	if backends.KindOf(err) != backends.KindRefused || !strings.Contains(err.Error(), "subnet") {
		t.Errorf("%s: %v", cidr, err)
	}
}

// When the guest cannot be reached after the change, that is what the error says, and that the guest goes back.
func TestAGuestThatIsCutOffByItsAddress(t *testing.T) {
	m := newMachine(t, config{os: "rhel-9", options: guest.Options{TakeBack: time.Second, Settle: time.Second}})
	s, set := m.setting(backends.KindAddress, m.group), m.Setters()[backends.KindAddress]
	var cut atomic.Bool
	m.world.Watch(func(world.Event) { // the first thing that is told after the start is the new address
		m.proxy.refuse()
		cut.Store(true)
	})
	err := set.Set(t.Context(), s, backends.ValueOf(backends.AddressSpec{CIDR: "192.168.50.21/24", MTU: 9000}), nil)
	if !cut.Load() || backends.KindOf(err) != backends.KindUnreachable || !strings.Contains(err.Error(), "after the address of") ||
		!strings.Contains(backends.HintOf(err), "undoes the change by itself") {
		t.Fatalf("cut off %v: %v, hint %q", cut.Load(), err, backends.HintOf(err))
	}
	m.proxy.reopen()
	testclass.OK(t, m.Wait(t.Context(), m.vm))
}
