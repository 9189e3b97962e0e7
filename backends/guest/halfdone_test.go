package guest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// listing is everything that a rollback must give back, by programs that share nothing with the product: files by their
// content, mode and owner, links, what is enabled, what is left in working directories, beside files and in RAM disks.
func (m *machine) listing(t *testing.T) string {
	t.Helper()
	return m.root(t, `find /etc /usr/local /opt /var/lib/rdma-setup /run/rdma-setup /var/tmp /boot ! -type d 2>/dev/null | grep -v -e '/initrd.img-[^/]*$' | sort | while read -r f; do
	if [ -L "$f" ]; then echo "$f -> $(readlink "$f")"; else echo "$(stat -c '%n %a %u:%g' "$f") $(sha256sum <"$f")"; fi
done
find /var/lib/rdma-setup /run/rdma-setup /opt -type d 2>/dev/null | sort
find /boot -name '*.new'
for i in /boot/initrd.img-*; do [ ! -e "$i" ] || lsinitramfs "$i" | grep rdma-setup; done
systemctl list-units --all --no-legend 'rdma-setup-*' 2>/dev/null | grep rdma-setup
:`)
}

// differences checks that Observe sees a difference exactly where the listing shows one.
func (m *machine) differs(t *testing.T, a backends.Assignment, kept backends.Kept) []backends.Difference {
	t.Helper()
	k, _ := backends.As[backends.Keeper](m.Setters()[a.Kind])
	now, err := k.Observe(t.Context(), a.Setting, kept.Bare())
	testclass.OK(t, err)
	return backends.Differences(kept.Bare(), now)
}

// systemsOf returns two of the four systems, each in turn: a matrix of all of them would take minutes. With the race detector
// it is one of the two.
func systemsOf(name string) []string {
	if testclass.Small() {
		return []string{[]string{"ubuntu-22.04", "debian-12", "rocky-9", "rhel-9"}[len(name)%4]}
	}
	if len(name)%2 == 0 {
		return []string{"ubuntu-22.04", "rocky-9"}
	}
	return []string{"debian-12", "rhel-9"}
}

// Whatever of a setting is there when it was cut short, it neither reads as before nor as done; the record tells it apart,
// and what is restored from the record is as before to the byte.
func TestModulesAtBootHalfDone(t *testing.T) {
	testclass.Plain(t)
	const unit = "/etc/systemd/system/rdma-setup-vmw_pvrdma.service"
	const wants = "/etc/systemd/system/multi-user.target.wants/rdma-setup-vmw_pvrdma.service"
	for name, half := range map[string]string{
		"a unit without its link": "rm " + wants + " && systemctl daemon-reload",
		"a disabled unit":         "systemctl disable rdma-setup-vmw_pvrdma.service",
		"a link without its unit": "rm " + unit,
		"no list of modules":      "rm /etc/modules-load.d/rdma-setup.conf",
		"no options":              "rm /etc/modprobe.d/rdma-setup.conf",
		"a file that was begun":   "cp /etc/modules-load.d/rdma-setup.conf /etc/modules-load.d/.rdma-setup.conf.Ab3xYz",
		"only a file that was begun": "rm " + wants + " " + unit +
			" /etc/modprobe.d/rdma-setup.conf && mv /etc/modules-load.d/rdma-setup.conf /etc/modules-load.d/.rdma-setup.conf.Ab3xYz",
		"only the unit":       "rm " + wants + " /etc/modprobe.d/rdma-setup.conf /etc/modules-load.d/rdma-setup.conf",
		"a masked unit":       "rm " + unit + " && ln -s /dev/null " + unit,
		"the unit is running": "systemctl start rdma-setup-vmw_pvrdma.service",
		"an edited unit":      "echo '# mine' >>" + unit,
		"another mode":        "chmod 600 /etc/modules-load.d/rdma-setup.conf",
		"unfinished RAM disk": `for i in /boot/initrd.img-*; do [ ! -e "$i" ] || cp "$i" "$i.new"; done`,
	} {
		for _, os := range systemsOf(name) {
			t.Run(os+"/"+name, func(t *testing.T) {
				if os == "debian-12" && strings.Contains(name, "running") {
					half = strings.ReplaceAll(half, "start", "start --no-block") // its kernel has no vmw_pvrdma
				}
				t.Parallel()
				m := newMachine(t, config{os: os})
				a := backends.Assignment{Setting: m.setting(backends.KindPersist, ""), To: backends.ValueOf(backends.Persist{
					Modules: []string{"ib_umad"}, Options: map[string]string{"ib_umad": "x=1"}, Reload: "vmw_pvrdma"})}
				set := m.Setters()[a.Kind]
				before := m.listing(t)
				k, _ := backends.As[backends.Keeper](set)
				kept, err := k.Keep(t.Context(), a.Setting, a.To)
				testclass.OK(t, err)
				if d := m.differs(t, a, kept); len(d) > 0 {
					t.Errorf("before the change there differ %v", d)
				}
				testclass.OK(t, set.Set(t.Context(), a.Setting, a.To, nil))
				if done := m.listing(t); !strings.Contains(done, unit+" 644 0:0") || !strings.Contains(done, wants+" -> ") {
					t.Errorf("the listing does not show what was set:\n%s", done)
				}
				if now, err := set.Read(t.Context(), a.Setting); err != nil || now != a.To {
					t.Fatalf("it reads %s, %v", now, err)
				}
				m.root(t, half+" || :")
				now, err := set.Read(t.Context(), a.Setting)
				if err != nil || now.IsAbsent() {
					t.Errorf("half done it reads %s, %v", now, err)
				}
				if d := m.differs(t, a, kept); len(d) == 0 {
					t.Error("half done nothing differs from the record")
				}
				for range 2 { // the second time there is nothing to do
					testclass.OK(t, k.Restore(t.Context(), a.Setting, kept, nil))
					if d := m.differs(t, a, kept); len(d) > 0 {
						t.Errorf("restored there differ %v", d)
					}
				}
				if d := cmp.Diff(strings.Split(before, "\n"), strings.Split(m.listing(t), "\n")); d != "" {
					t.Errorf("left (-before +after):\n%s", d)
				}
				if now, err := set.Read(t.Context(), a.Setting); err != nil || !now.IsAbsent() {
					t.Errorf("restored it reads %s, %v", now, err)
				}
				// And the next run sets it again.
				if err := set.Set(t.Context(), a.Setting, a.To, nil); err != nil {
					t.Error(err)
				}
				if now, err := set.Read(t.Context(), a.Setting); err != nil || now != a.To {
					t.Errorf("set again it reads %s, %v", now, err)
				}
			})
		}
	}
}

// While an obstacle lasts a restore says so; once it is gone the same restore is exact.
func TestModulesAtBootWithObstacles(t *testing.T) {
	for _, o := range []struct{ name, fault, says string }{
		{"a full /boot", "command=update-initramfs,do=fail:update-initramfs: failed: No space left on device", "No space left"},
		{"a read-only /etc", "command=rm -f -- /etc,do=fail:rm: cannot remove: Read-only file system", "Read-only"},
	} {
		for _, os := range []string{"ubuntu-22.04", "debian-12"} {
			t.Run(os+"/"+o.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, config{os: os})
				a := backends.Assignment{Setting: m.setting(backends.KindPersist, ""), To: backends.ValueOf(backends.Persist{
					Modules: []string{"ib_umad"}, Options: map[string]string{"ib_umad": "x=1"}, Reload: "vmw_pvrdma"})}
				set := m.Setters()[a.Kind]
				before := m.listing(t)
				k, _ := backends.As[backends.Keeper](set)
				kept, err := k.Keep(t.Context(), a.Setting, a.To)
				testclass.OK(t, err)
				testclass.OK(t, set.Set(t.Context(), a.Setting, a.To, nil))
				m.fault(t, o.fault)
				if err := k.Restore(t.Context(), a.Setting, kept, nil); err == nil || !strings.Contains(err.Error(), o.says) {
					t.Errorf("with %s: %v", o.name, err)
				}
				if d := m.differs(t, a, kept); len(d) == 0 {
					t.Errorf("with %s nothing differs", o.name)
				}
				m.world.Faults.Clear()
				if err := k.Restore(t.Context(), a.Setting, kept, nil); err != nil {
					t.Error(err)
				}
				if d := m.differs(t, a, kept); len(d) > 0 {
					t.Errorf("restored there differ %v", d)
				}
				if d := cmp.Diff(before, m.listing(t)); d != "" {
					t.Errorf("left (-before +after):\n%s", d)
				}
			})
		}
	}
}

// A restore does not depend on an obstacle to something that the change never reached: with a full /boot the RAM disk was
// not renewed, and need not be.
func TestAFullBootFromTheStart(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04"})
	s, to := m.setting(backends.KindPersist, ""), backends.ValueOf(backends.Persist{Modules: []string{"ib_umad"}, Reload: "vmw_pvrdma"})
	set := m.Setters()[backends.KindPersist]
	k, _ := backends.As[backends.Keeper](set)
	before := m.listing(t)
	kept, err := k.Keep(t.Context(), s, to)
	testclass.OK(t, err)
	m.fault(t, "command=update-initramfs,do=fail:update-initramfs: failed: No space left on device")
	if err := set.Set(t.Context(), s, to, nil); err == nil {
		t.Error("nothing was said")
	}
	if now, err := set.Read(t.Context(), s); err != nil || now.IsAbsent() || now == to {
		t.Errorf("it reads %s, %v", now, err)
	}
	if err := k.Restore(t.Context(), s, kept, nil); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(before, m.listing(t)); d != "" {
		t.Errorf("left (-before +after):\n%s", d)
	}
}

// The same with the other settings that are more than one file.
func TestOtherSettingsHalfDone(t *testing.T) {
	testclass.Plain(t)
	type half struct {
		kind   backends.Kind
		name   string
		script string
	}
	netFile := map[string]string{"ubuntu-22.04": "/etc/netplan/60-rdma-setup-*.yaml", "debian-12": "/etc/netplan/60-rdma-setup-*.yaml",
		"rhel-9": "/etc/NetworkManager/system-connections/rdma-setup-*", "rocky-9": "/etc/NetworkManager/system-connections/rdma-setup-*"}
	for _, h := range []half{
		{backends.KindAddress, "a file without its address",
			"for a in $(ip -o -4 addr show dev $nic | awk '{print $4}'); do ip addr del $a dev $nic; done"},
		{backends.KindAddress, "an address without its file", "rm $file"},
		{backends.KindAddress, "a file that was begun", `d=${file%/*} b=${file##*/}; cp $file "$d/.$b.Ab3xYz"`},
		{backends.KindAddress, "an address of its own", "ip addr add 192.168.50.99/24 dev $nic"},
		{backends.KindAddress, "another mode", "chmod 640 $file"},
		{backends.KindAddress, "an address without its rule", "ip rule del from 192.168.50.21 table 5001"},
		{backends.KindARP, "a file that is not in force", "echo 0 >/proc/sys/net/ipv4/conf/$nic/arp_ignore"},
		{backends.KindARP, "numbers without their file", "rm /etc/sysctl.d/60-rdma_setup-*"},
		{backends.KindARP, "a file that was begun", "mv /etc/sysctl.d/60-rdma_setup-$group.conf /etc/sysctl.d/.60-rdma_setup-$group.conf.Ab3xYz"},
		{backends.KindMemlock, "a file that was begun",
			"mv /etc/security/limits.d/60-rdma-setup.conf /etc/security/limits.d/.60-rdma-setup.conf.Ab3xYz"},
		{backends.KindMemlock, "another owner", "chown ops /etc/security/limits.d/60-rdma-setup.conf"},
		{backends.KindEnvironment, "a file that was cut short", "echo export UCX_IB_TRAFFIC_CLASS=106 >/etc/profile.d/rdma-setup.sh"},
		{backends.KindTrafficClass, "a script without its unit", "systemctl disable $unit; rm /etc/systemd/system/$unit"},
		{backends.KindTrafficClass, "a unit without its link", "rm /etc/systemd/system/multi-user.target.wants/$unit"},
		{backends.KindTrafficClass, "a unit without its script", "rm /usr/local/sbin/rdma-setup-traffic-class"},
		{backends.KindTrafficClass, "a unit that failed", "rm /usr/local/sbin/rdma-setup-traffic-class; ! systemctl restart $unit"},
		{backends.KindTrafficClass, "a link without its unit", "rm /etc/systemd/system/$unit"},
	} {
		for _, os := range systemsOf(h.name) {
			t.Run(os+"/"+string(h.kind)+"/"+h.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, config{os: os, vf: true})
				m.root(t, "modprobe -a rdma_cm rdma_ucm 2>/dev/null || :")
				var a backends.Assignment
				for _, w := range append(wanted(m, strings.Replace(os, "rocky", "rhel", 1)),
					backends.Assignment{Setting: m.setting(backends.KindARP, m.group), To: backends.ValueOf(backends.OneSubnet())},
					backends.Assignment{Setting: m.setting(backends.KindAddress, m.group),
						To: backends.ValueOf(backends.AddressSpec{CIDR: "192.168.50.21/24", MTU: 9000, Table: 5001})},
					backends.Assignment{Setting: m.setting(backends.KindEnvironment, ""), To: backends.ValueOf(106)},
					backends.Assignment{Setting: m.setting(backends.KindTrafficClass, m.group), To: backends.ValueOf(106)}) {
					if w.Kind == backends.KindPackages || w.Kind == backends.KindAddress && h.kind == backends.KindTrafficClass {
						testclass.OK(t, m.Setters()[w.Kind].Set(t.Context(), w.Setting, w.To, nil))
					}
					if w.Kind == h.kind {
						a = w
					}
				}
				set := m.Setters()[a.Kind]
				k, _ := backends.As[backends.Keeper](set)
				g := m.Survey(t.Context(), m.vm)
				nic := g.Interface(m.mac).Name
				state := func() string {
					return m.listing(t) +
						m.root(t, "ip -o -4 addr show dev "+nic+" | awk '{print $4}'; ip rule; cat /sys/class/net/"+nic+"/mtu /proc/sys/net/ipv4/conf/"+nic+
							"/*; ls /sys/kernel/config/rdma_cm 2>/dev/null || :")
				}
				before := state()
				prior, err := set.Read(t.Context(), a.Setting)
				testclass.OK(t, err)
				kept, err := k.Keep(t.Context(), a.Setting, a.To)
				testclass.OK(t, err)
				testclass.OK(t, set.Set(t.Context(), a.Setting, a.To, nil))
				if d := m.differs(t, a, kept); len(d) == 0 {
					t.Error("when it is set nothing differs from the record")
				}
				m.root(t, "nic="+nic+" group="+m.group+"\nunit=$(cd /etc/systemd/system && ls rdma-setup-class-*.service 2>/dev/null)\nfor f in "+
					netFile[os]+"; do file=$f; done\n"+h.script)
				if now, err := set.Read(t.Context(), a.Setting); h.kind != backends.KindMemlock &&
					(err != nil || now == prior && len(m.differs(t, a, kept)) == 0) {
					t.Errorf("half done it reads %s as before, %v", now, err)
				}
				if d := m.differs(t, a, kept); len(d) == 0 {
					t.Error("half done nothing differs from the record")
				}
				for range 2 {
					testclass.OK(t, k.Restore(t.Context(), a.Setting, kept, nil))
					if d := m.differs(t, a, kept); len(d) > 0 {
						t.Errorf("restored there differ %v", d)
					}
				}
				if now, err := set.Read(t.Context(), a.Setting); err != nil || now != prior {
					t.Errorf("restored it reads %s, %v; before it was %s", now, err, prior)
				}
				if d := cmp.Diff(strings.Split(before, "\n"), strings.Split(state(), "\n")); d != "" {
					t.Errorf("left (-before +after):\n%s", d)
				}
			})
		}
	}
}

// Files left by an interrupted write of another program are not part of the record: the write of this change takes it away,
// and the undo does not bring it back.
func TestRestoreLeavesOutTheWritesOfOthers(t *testing.T) {
	t.Parallel()
	m := newMachine(t, config{os: "ubuntu-22.04"})
	a := backends.Assignment{Setting: m.setting(backends.KindPersist, ""), To: backends.ValueOf(backends.Persist{Reload: "vmw_pvrdma"})}
	set := m.Setters()[a.Kind]
	before := m.root(t, "ls -A /etc/systemd/system")
	m.root(t, "echo half >/etc/systemd/system/.rdma-setup-vmw_pvrdma.service.Ab3xYz")
	k, _ := backends.As[backends.Keeper](set)
	kept, err := k.Keep(t.Context(), a.Setting, a.To)
	testclass.OK(t, err)
	testclass.OK(t, set.Set(t.Context(), a.Setting, a.To, nil))
	testclass.OK(t, k.Restore(t.Context(), a.Setting, kept, nil))
	if d := m.differs(t, a, kept); len(d) > 0 {
		t.Errorf("restored there differ %v", d)
	}
	if after := m.root(t, "ls -A /etc/systemd/system"); after != before {
		t.Errorf("left %q, before there was %q", after, before)
	}
}

// A file that another process renames or removes while it is read is missing, and nothing else is. If it is removed after its size
// was printed, the answer is incomplete: a retry may succeed.
func TestFilesThatDisappearWhileTheyAreRead(t *testing.T) {
	t.Parallel()
	const half = "/etc/systemd/system/.rdma-setup-vmw_pvrdma.service.Ab3xYz"
	for program, want := range map[string]backends.ErrorKind{"stat": "", "cat": backends.KindTransient} {
		m := newMachine(t, config{os: "ubuntu-22.04"})
		s, to := m.setting(backends.KindPersist, ""), backends.ValueOf(backends.Persist{Reload: "vmw_pvrdma"})
		k, _ := backends.As[backends.Keeper](m.Setters()[backends.KindPersist])
		before, err := k.Keep(t.Context(), s, to)
		testclass.OK(t, err)
		m.root(t, "echo half >"+half+`; printf '#!/bin/sh\nrm -f `+half+`\nexit 1\n' >"$(command -v `+program+`)"`)
		kept, err := k.Keep(t.Context(), s, to)
		if (err == nil) != (want == "") || backends.KindOf(err) != want {
			t.Errorf("%s: %v", program, err)
		}
		if d := backends.Differences(before.Bare(), kept.Bare()); err == nil && len(d) > 0 {
			t.Errorf("%s: %v", program, d)
		}
	}
}

// With a full /etc neither the change nor its undo writes half a file, and the undo says what remains until there is room.
func TestAFullEtc(t *testing.T) {
	for _, os := range []string{"ubuntu-22.04", "rocky-9"} {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os})
			s, to := m.setting(backends.KindPersist, ""), backends.ValueOf(backends.Persist{Modules: []string{"ib_umad"}, Reload: "vmw_pvrdma"})
			set := m.Setters()[backends.KindPersist]
			k, _ := backends.As[backends.Keeper](set)
			m.root(t, "echo '# of somebody else' >/etc/modules-load.d/rdma-setup.conf")
			before := m.listing(t)
			kept, err := k.Keep(t.Context(), s, to)
			testclass.OK(t, err)
			const full = "command=mktemp /etc,do=fail:mktemp: failed to create file: No space left on device"
			m.fault(t, full)
			if err := set.Set(t.Context(), s, to, nil); err == nil || !strings.Contains(err.Error(), "No space left") {
				t.Errorf("set: %v", err)
			}
			if d := cmp.Diff(before, m.listing(t)); d != "" {
				t.Errorf("half a change (-before +after):\n%s", d)
			}
			m.world.Faults.Clear()
			testclass.OK(t, set.Set(t.Context(), s, to, nil))
			m.fault(t, full)
			if err := k.Restore(t.Context(), s, kept, nil); err == nil || !strings.Contains(err.Error(), "No space left") {
				t.Errorf("restore: %v", err)
			}
			if d := m.differs(t, backends.Assignment{Setting: s, To: to}, kept); len(d) == 0 {
				t.Error("nothing differs while /etc is full")
			}
			m.world.Faults.Clear()
			if err := k.Restore(t.Context(), s, kept, nil); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(before, m.listing(t)); d != "" {
				t.Errorf("left (-before +after):\n%s", d)
			}
		})
	}
}
