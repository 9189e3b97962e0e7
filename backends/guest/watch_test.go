package guest_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

var wantedAddress = backends.ValueOf(backends.AddressSpec{CIDR: "192.168.50.21/24", MTU: 9000})

// whileAddressed calls refused when the guest gets the wanted address, and from then on refuses new connections as long as the guest
// has it.
func (m *machine) whileAddressed(refused func()) {
	var mu sync.Mutex
	had := false
	m.world.Watch(func(world.Event) {
		has := false
		m.world.View(func(s *world.State) {
			for _, nic := range s.VMs[0].Guest.NICs {
				has = has || slices.Contains(nic.Addrs, "192.168.50.21/24")
			}
		})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case has && !had:
			m.proxy.refuse()
			refused()
		case had && !has:
			m.proxy.reopen()
		}
		had = has
	})
}

// unconfirmed sets an address in a run that is killed before it confirms the change: the watch waits.
func (m *machine) unconfirmed(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.whileAddressed(cancel)
	err := m.Setters()[backends.KindAddress].Set(ctx, m.setting(backends.KindAddress, m.group), wantedAddress, nil)
	if err == nil || ctx.Err() == nil {
		t.Fatalf("the run was not killed: %v", err)
	}
	m.proxy.reopen()
}

// ofWatch lists what is left of a watch: its unit, its processes and its directory.
func (m *machine) ofWatch(t *testing.T) string {
	t.Helper()
	return m.root(t,
		"systemctl list-units --all --no-legend 'rdma-setup-watch-*'; pgrep -f '^/bin/sh /run/[r]dma-setup/address-'; ls -d /run/rdma-setup "+
			"2>/dev/null || :")
}

const killWatch = "pkill -KILL -f '^/bin/sh /run/[r]dma-setup/address-' && while systemctl list-units 'rdma-setup-watch-*' | grep -q " +
	"running; do sleep 0.01; done"

// Only the run that sets an address can compare the other interfaces with before. If it was killed before it confirmed the address, the
// run that continues undoes the change at once, and a reader waits until the watch has: nothing of the watch is left then.
func TestWatchOfAKilledRun(t *testing.T) {
	for name, test := range map[string]struct {
		happens  string
		takeBack time.Duration
		resumes  bool
	}{
		"waits":                    {":", 0, true},
		"waits, and a reader too":  {":", time.Second, false},
		"was killed (by OOM)":      {killWatch, 0, false},
		"was killed, and a resume": {killWatch, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: "ubuntu-22.04", vf: true, options: guest.Options{TakeBack: test.takeBack}})
			const etc = "ls -l /etc/netplan; cat /etc/netplan/*"
			before := m.root(t, etc)
			m.unconfirmed(t)
			m.root(t, test.happens)
			if test.takeBack == 0 && (m.ofWatch(t) == "" || m.root(t, etc) == before) {
				t.Fatal("there was no watch, or no change")
			}
			s := m.setting(backends.KindAddress, m.group)
			next := m.again(t, guest.Options{})
			if test.resumes {
				if err := next.Settle(t.Context(), m.vm); err != nil {
					t.Error(err)
				}
			}
			next.Want(s, wantedAddress)
			if now, err := next.Setters()[backends.KindAddress].Read(t.Context(), s); err != nil || !now.IsAbsent() {
				t.Errorf("the address is %s, %v", now, err)
			}
			if left := m.ofWatch(t) + cmp.Diff(before, m.root(t, etc)); left != "" {
				t.Errorf("left of the watch or the change:\n%s", left)
			}
		})
	}
}

// A watch that systemd does not stop is named, as long as it is not known that it has ended, and the run after that ends it.
func TestWatchThatIsNotStopped(t *testing.T) {
	const killed = "\npkill -KILL -f '^/bin/sh /run/[r]dma-setup/address-'; pkill -KILL -f 'sleep[.]real 60'\n" +
		"while systemctl list-units 'rdma-setup-watch-*' | grep -q running; do sleep 0.01; done"
	for name, test := range map[string]struct{ happens, commands, do string }{
		"the stop fails":          {"", "systemctl stop", "fail:Failed to stop: Connection timed out"},
		"systemd does not answer": {"", "systemctl stop,systemctl is-active", "hang"},
		"systemd is gone":         {"", "systemctl stop,systemctl is-active", "fail:Failed to connect to bus: Connection refused"},
		"its failure stays":       {killed, "systemctl reset-failed", "hang"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: "ubuntu-22.04", vf: true})
			m.unconfirmed(t)
			// The watch does not end by itself meanwhile: from the end of the killed run's step on, it sleeps longer. The limit of 10
			// seconds is shorter.
			m.root(t, `while [ -e /run/rdma-setup/running ]; do sleep 0.01; done
for p in sleep timeout; do mv /usr/bin/$p /usr/bin/$p.real; done
printf '#!/bin/sh\n[ "$1" != 1 ] || set -- 60\nexec /usr/bin/sleep.real "$@"\n' >/usr/bin/sleep
printf '#!/bin/sh\n[ "$1" != 10 ] || { shift; set -- 0.2 "$@"; }\nexec /usr/bin/timeout.real "$@"\n' >/usr/bin/timeout
chmod 755 /usr/bin/sleep /usr/bin/timeout
until pgrep -f 'sleep[.]real 60'; do sleep 0.01; done`+test.happens)
			for command := range strings.SplitSeq(test.commands, ",") {
				m.fault(t, "command="+command+" rdma-setup-watch,do="+test.do)
			}
			s := m.setting(backends.KindAddress, m.group)
			err := m.again(t, guest.Options{}).Settle(t.Context(), m.vm)
			if backends.KindOf(err) != backends.KindTransient || !strings.Contains(err.Error(), "systemd does not stop the watch") ||
				!strings.Contains(backends.HintOf(err), "systemctl list-units 'rdma-setup-watch-*'") {
				t.Errorf("%v, hint %q", err, backends.HintOf(err))
			}
			m.world.Faults.Clear()
			if left := m.root(t, "ls -d /run/rdma-setup/address-* || :"); left == "" {
				t.Error("the files of the watch were removed")
			}
			if _, err := m.again(t, guest.Options{}).Setters()[backends.KindAddress].Read(t.Context(), s); err != nil {
				t.Error(err)
			}
			if left := m.ofWatch(t); left != "" {
				t.Errorf("left of the watch:\n%s", left)
			}
		})
	}
}

// Where systemd does not run, as in most containers, systemctl exists but answers nothing (systemctl of systemd 252): the watch is no
// unit, and its files are removed.
func TestWatchWithoutSystemd(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04", vf: true})
	m.root(t, "rmdir /run/systemd/system")
	const says = ",do=fail:System has not been booted with systemd as init system (PID 1). Can't operate."
	for _, command := range []string{"systemd-run", "systemctl stop", "systemctl is-active", "systemctl reset-failed"} {
		m.fault(t, "command="+command+says)
	}
	m.unconfirmed(t)
	if m.root(t, "pgrep -f '^/bin/sh /run/[r]dma-setup/address-'; systemctl list-units --no-legend 'rdma-setup-watch-*'") == "" {
		t.Fatal("there was no watch")
	}
	s := m.setting(backends.KindAddress, m.group)
	next := m.again(t, guest.Options{})
	if err := next.Settle(t.Context(), m.vm); err != nil {
		t.Error(err)
	}
	if now, err := next.Setters()[backends.KindAddress].Read(t.Context(), s); err != nil || !now.IsAbsent() {
		t.Errorf("the address is %s, %v", now, err)
	}
	if left := m.root(t, "ls -d /run/rdma-setup 2>/dev/null || :"); left != "" {
		t.Errorf("left of the watch:\n%s", left)
	}
}

// Also a change that was undone leaves nothing of its watch when that is reported.
func TestWatchOfAChangeThatWasUndone(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(t *testing.T, m *machine)
		says    string
	}{
		"it failed": {func(t *testing.T, m *machine) {
			m.root(t, `printf '#!/bin/sh\nsleep 0.2\necho netplan: broken >&2\nexit 1\n' >"$(command -v netplan)"`)
		}, "netplan: broken"},
		"the guest could not be reached": {func(_ *testing.T, m *machine) { m.whileAddressed(func() {}) }, "it undid the change by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: "ubuntu-22.04", vf: true, options: guest.Options{TakeBack: time.Second}})
			test.happens(t, m)
			err := m.Setters()[backends.KindAddress].Set(t.Context(), m.setting(backends.KindAddress, m.group), wantedAddress, nil)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v", err)
			}
			if left := m.ofWatch(t); left != "" {
				t.Errorf("left of the watch:\n%s", left)
			}
		})
	}
}

// A change that was confirmed stays, and is not reported as undone, if the answer to the confirmation is lost.
func TestAnswerToTheConfirmationIsLost(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04", vf: true})
	m.fault(t, "command=systemctl stop,nth=1,do=drop-after")
	s := m.setting(backends.KindAddress, m.group)
	if err := m.Setters()[backends.KindAddress].Set(t.Context(), s, wantedAddress, nil); err != nil {
		t.Error(err)
	}
	if now, err := m.Setters()[backends.KindAddress].Read(t.Context(), s); err != nil || now != wantedAddress {
		t.Errorf("the address is %s, %v", now, err)
	}
	lost := slices.ContainsFunc(m.world.Log.Events(), func(e world.Event) bool { return e.What == world.FaultApplied })
	if left := m.ofWatch(t); left != "" || !lost {
		t.Errorf("the answer was lost: %t; left of the watch:\n%s", lost, left)
	}
}
