package guest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// again returns the guests of another process of the program that works on the same guest.
func (m *machine) again(t *testing.T, o guest.Options) *guest.Guests {
	t.Helper()
	pool, err := ssh.NewPool(m.ssh)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	o.Poll, o.Settle, o.TakeBack = 20*time.Millisecond, 4*time.Second, 20*time.Second
	g := guest.New(pool, m.targets, m, o)
	t.Cleanup(func() { g.Close() })
	return g
}

// ours lists everything that a step could leave in a guest.
func (m *machine) ours(t *testing.T) string {
	t.Helper()
	return m.root(t, "ls -d /run/rdma-setup /var/lib/rdma-setup /var/tmp/rdma-setup* /tmp/rdma-setup* /tmp/mlnx* 2>/dev/null || :")
}

// A command of sshd outlives a killed client (sshd(8) ends no command that has no terminal). The next process finds the step, waits
// for its end and reports it; nothing of it is left then.
func TestAStepThatOutlivesItsConnection(t *testing.T) {
	for _, os := range []string{"ubuntu-22.04", "rocky-9"} {
		t.Run(os, func(t *testing.T) {
			m := newMachine(t, config{os: os})
			program := map[bool]string{true: "apt-get", false: "dnf"}[os == "ubuntu-22.04"]
			s, to := m.setting(backends.KindPackages, "rdma"), backends.ValueOf(backends.PackageSpec{Installed: []string{"perftest"}})
			// Each installation takes a second here.
			m.root(t, "mv /usr/bin/"+program+" /usr/bin/"+program+`.real
printf '#!/bin/sh\ncase "$*" in *" -s "*|*assumeno*) ;; *install*) touch /root/begun; sleep 1 ;; esac\nexec /usr/bin/`+program+`.real "$@"\n' >/usr/bin/`+program+`
chmod 755 /usr/bin/`+program)
			ended := make(chan error, 1)
			go func() { ended <- m.Setters()[backends.KindPackages].Set(t.Context(), s, to, nil) }()
			m.watch(t, "until [ -e /root/begun ]; do sleep 0.01; done")
			m.proxy.close() // as kill -9 of the client would
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "may still be running") {
				t.Errorf("the connection was lost: %v", err)
			}
			m.proxy.reopen()
			var waited []string
			g := m.again(t, guest.Options{Waiting: func(vm, step string, began time.Time) {
				if time.Since(began) > time.Hour || vm != m.vm {
					t.Errorf("%s: %s began at %s", vm, step, began)
				}
				waited = append(waited, step)
			}})
			g.Want(s, to)
			if now, err := g.Setters()[backends.KindPackages].Read(t.Context(), s); err != nil || now != to {
				t.Errorf("after the step it reads %s, %v", now, err)
			}
			if len(waited) != 1 || waited[0] != "install packages" {
				t.Errorf("waited for %q", waited)
			}
			if left := m.ours(t); left != "" {
				t.Errorf("left: %s", left)
			}
		})
	}
}

// A step that may be interrupted ends with its run; one that may not continues.
func TestAnInterruptedStep(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04"})
	m.root(t, `mv /usr/sbin/update-initramfs /usr/sbin/update-initramfs.real
printf '#!/bin/sh\ntouch /root/begun\nsleep 1\n/usr/sbin/update-initramfs.real "$@" && touch /root/renewed\n' >/usr/sbin/update-initramfs
chmod 755 /usr/sbin/update-initramfs`)
	s, to := m.setting(backends.KindPersist, ""), backends.ValueOf(backends.Persist{Modules: []string{"ib_umad"}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- m.Setters()[backends.KindPersist].Set(ctx, s, to, nil) }()
	m.watch(t, "until [ -e /root/begun ]; do sleep 0.01; done")
	cancel()
	if err := <-ended; err == nil {
		t.Error("nothing was said")
	}
	if err := m.Setters()[backends.KindPersist].Set(t.Context(), s, to, nil); err != nil {
		t.Error(err)
	}
	m.root(t, "[ -e /root/renewed ]")
	if left := m.ours(t); left != "" {
		t.Errorf("left: %s", left)
	}
}

// Root uses only its own working directory.
func TestWorkingDirectoryOfAnotherUser(t *testing.T) {
	for _, before := range []string{
		"mkdir -m 777 /run/rdma-setup && chown ops /run/rdma-setup",
		"mkdir /home/ops/x && chown ops /home/ops/x && ln -s /home/ops/x /run/rdma-setup",
		"touch /run/rdma-setup && chown ops /run/rdma-setup",
	} {
		m := newMachine(t, config{os: "ubuntu-22.04"})
		m.root(t, before)
		s := m.setting(backends.KindMemlock, "")
		err := m.Setters()[backends.KindMemlock].Set(t.Context(), s, backends.ValueOf("unlimited"), nil)
		if err == nil || !strings.Contains(err.Error(), "/run/rdma-setup is not a directory of root") || backends.HintOf(err) == "" {
			t.Errorf("%s: %v", before, err)
		}
		if made := m.root(t, "ls /home/ops/x /etc/security/limits.d 2>/dev/null || :"); strings.Contains(made, "60-rdma") ||
			strings.Contains(made, "step.") {
			t.Errorf("%s: made %s", before, made)
		}
	}
}

// watch runs a script on a connection of its own, which the proxy does not close.
func (m *machine) watch(t *testing.T, script string) {
	t.Helper()
	pool, err := ssh.NewPool(m.ssh)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	to, _ := m.targets(m.vm)
	c, err := pool.Dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r, err := c.Run(t.Context(), ssh.Command{Script: script, Sudo: true, Limit: time.Minute}); err != nil || r.ExitCode != 0 {
		t.Fatalf("%s: %+v, %v", script, r, err)
	}
}

// If a setting reads as half done while another process works in the guest, it is read once more when that process's step has
// ended, even if this process has waited for earlier steps already.
func TestWhatAnotherProcessIsWriting(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04"})
	s := m.setting(backends.KindPersist, "")
	persist := m.Setters()[backends.KindPersist]
	if now, err := persist.Read(t.Context(), s); err != nil || !now.IsAbsent() {
		t.Fatalf("before: %s, %v", now, err)
	}
	// For a second the remains of an unfinished write exist beside a file of this program.
	m.root(t, `mv /usr/bin/apt-get /usr/bin/apt-get.real
printf '#!/bin/sh\ncase "$*" in *" -s "*) ;; *install*) touch /etc/modules-load.d/.rdma-setup.conf.abcdef /root/begun; sleep 1; rm /etc/modules-load.d/.rdma-setup.conf.abcdef ;; esac\nexec /usr/bin/apt-get.real "$@"\n' >/usr/bin/apt-get
chmod 755 /usr/bin/apt-get`)
	another := m.again(t, guest.Options{}).Setters()[backends.KindPackages]
	packages := m.setting(backends.KindPackages, "rdma")
	ended := make(chan error, 1)
	go func() {
		ended <- another.Set(t.Context(), packages, backends.ValueOf(backends.PackageSpec{Installed: []string{"perftest"}}), nil)
	}()
	m.watch(t, "until [ -e /root/begun ]; do sleep 0.01; done")
	if now, err := persist.Read(t.Context(), s); err != nil || !now.IsAbsent() {
		t.Errorf("while another process is at work: %s, %v", now, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A setting that another process writes in several steps reads as half done in a different way each time: it is read until its
// value no longer changes.
func TestWhatAnotherProcessWritesStepByStep(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04"})
	s := m.setting(backends.KindPersist, "")
	// Each read finds the next step of the other process: two unfinished writes, then nothing.
	m.root(t, `at=$(command -v grep) && mv "$at" /usr/bin/grep.real
printf '#!/bin/sh\ncd /etc/modules-load.d\ncase "$*" in "-ls modprobe"*) if [ -e .rdma-setup.conf.bbbbbb ]; then rm .rdma-setup.conf.bbbbbb; elif [ -e .rdma-setup.conf.aaaaaa ]; then mv .rdma-setup.conf.aaaaaa .rdma-setup.conf.bbbbbb; elif [ ! -e begun ]; then touch begun .rdma-setup.conf.aaaaaa; fi ;; esac\nexec /usr/bin/grep.real "$@"\n' >"$at"
chmod 755 "$at"
chmod 777 /etc/modules-load.d`) // reads are those of a user
	if now, err := m.Setters()[backends.KindPersist].Read(t.Context(), s); err != nil || !now.IsAbsent() {
		t.Errorf("it reads %s, %v", now, err)
	}
	m.root(t, "[ -e /etc/modules-load.d/begun ]")
}
