package guest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// A module that is built into the kernel is loaded: there is nothing to load, and nothing to unload afterwards. /proc/modules does
// not list it, modules.builtin does (Documentation/kbuild/kbuild.rst).
func TestBuiltInModules(t *testing.T) {
	testclass.Plain(t)
	all := []string{"ib_core", "ib_uverbs", "ib_umad", "rdma_cm", "rdma_ucm", "vmw_pvrdma"}
	for name, c := range map[string]struct {
		builtIn       []string
		before, fixed []string // of all: loaded before, built into the kernel
		prepare       string
	}{
		"none":                         {nil, []string{"ib_core", "ib_uverbs", "vmw_pvrdma"}, nil, ""},
		"none, and no modules.builtin": {nil, []string{"ib_core", "ib_uverbs", "vmw_pvrdma"}, nil, "rm /lib/modules/$(uname -r)/modules.builtin"},
		"the core":                     {[]string{"ib_core"}, []string{"ib_core", "ib_uverbs", "vmw_pvrdma"}, []string{"ib_core"}, ""},
		"some": {[]string{"rdma_cm", "ib_umad"}, []string{"ib_core", "ib_uverbs", "ib_umad", "rdma_cm", "vmw_pvrdma"},
			[]string{"ib_core", "ib_umad", "rdma_cm"}, ""},
		"the driver": {[]string{"vmw_pvrdma"}, []string{"ib_core", "ib_uverbs", "vmw_pvrdma"}, []string{"ib_core", "ib_uverbs", "vmw_pvrdma"},
			""},
		"all": {all, all, all, ""},
		"no driver is loaded": {[]string{"ib_core"}, []string{"ib_core"}, []string{"ib_core"},
			"modprobe -r vmw_pvrdma"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: "ubuntu-22.04", builtIn: c.builtIn, options: guest.Options{Modules: all}})
			m.root(t, c.prepare)
			proc := m.root(t, "cut -d ' ' -f 1 /proc/modules | sort")
			g := m.Survey(t.Context(), m.vm)
			if d := cmp.Diff([][]string{c.before, c.fixed, all}, [][]string{g.Loaded, g.BuiltIn, g.Available}); d != "" || g.Nouveau != nil {
				t.Errorf("survey (-want +got), nouveau %+v:\n%s", g.Nouveau, d)
			}
			s, setter := m.setting(backends.KindModules, "rdma"), m.Setters()[backends.KindModules]
			m.Want(s, backends.ValueOf(all))
			for _, to := range [][]string{all, c.before, all, nil} {
				value, want := backends.ValueOf(to), to
				if to == nil {
					value, want = backends.Absent, append([]string{}, c.fixed...)
				}
				if err := setter.Set(t.Context(), s, value, nil); err != nil {
					t.Fatalf("set %s: %v\nhint: %s", value, err, backends.HintOf(err))
				}
				if now, err := setter.Read(t.Context(), s); err != nil || now != backends.ValueOf(want) {
					t.Errorf("set to %s, reads as %s, %v", value, now, err)
				}
				listed := m.root(t, "cut -d ' ' -f 1 /proc/modules | sort")
				for _, f := range c.fixed {
					if slices.Contains(strings.Fields(listed), f) {
						t.Errorf("%s is built in and in /proc/modules", f)
					}
				}
				if slices.Equal(to, c.before) && listed != proc {
					t.Errorf("before:\n%s\nundone:\n%s", proc, listed)
				}
			}
			m.reboot(t)
			if got := m.Survey(t.Context(), m.vm).BuiltIn; !slices.Equal(got, c.fixed) {
				t.Errorf("built in after a reboot: %v", got)
			}
		})
	}
}

// The whole cycle on a kernel with ib_core and rdma_cm built in.
func TestSetupAndRollbackWithBuiltInModules(t *testing.T) {
	testclass.Plain(t)
	t.Parallel()
	m := newMachine(t, config{os: "ubuntu-22.04", builtIn: []string{"ib_core", "rdma_cm"}})
	m.thereAndBack(t, wanted(m, "ubuntu-22.04"), "vmw_pvrdma")
}

// kmod's programs and a module that is built in. The texts are those of kmod 30 (Debian 12) with a tree of its own: -d and -S.
func TestKmodAndBuiltInModules(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04", builtIn: []string{"ib_core"}})
	kernel := strings.TrimSpace(m.root(t, "uname -r"))
	const core = "/kernel/drivers/infiniband/core/"
	for command, want := range map[string]ssh.Result{
		"cat /lib/modules/$(uname -r)/modules.builtin": {Stdout: "kernel/drivers/infiniband/core/ib_core.ko\n"},
		"modprobe ib_core":                  {},
		"modprobe ib-core":                  {},
		"modprobe --first-time ib_core":     {ExitCode: 1, Stderr: "modprobe: ERROR: could not insert 'ib_core': Module already in kernel\n"},
		"modprobe -r ib_core":               {ExitCode: 1, Stderr: "modprobe: FATAL: Module ib_core is builtin.\n"},
		"modprobe -r -- ib-core":            {ExitCode: 1, Stderr: "modprobe: FATAL: Module ib_core is builtin.\n"},
		"modprobe -r -n ib_core":            {ExitCode: 1, Stderr: "modprobe: FATAL: Module ib_core is builtin.\n"},
		"modprobe -r -q ib_core":            {ExitCode: 1},
		"modprobe --show-depends ib_core":   {Stdout: "builtin ib_core\n"},
		"modprobe --show-depends ib_uverbs": {Stdout: "insmod /lib/modules/" + kernel + core + "ib_uverbs.ko \n"},
		"rmmod ib_core":                     {ExitCode: 1, Stderr: "rmmod: ERROR: Module ib_core is not currently loaded\n"},
		"modinfo -n ib_core ib_uverbs":      {Stdout: "(builtin)\n/lib/modules/" + kernel + core + "ib_uverbs.ko\n"},
		"modinfo -F depends ib_core":        {},
		"modinfo ib_core": {Stdout: "name:           ib_core\nfilename:       (builtin)\nlicense:        Dual BSD/GPL\n" +
			"description:    core kernel InfiniBand API\nfile:           drivers/infiniband/core/ib_core\n"},
	} {
		r, err := m.Run(t.Context(), m.vm, ssh.Command{Script: command, Sudo: true})
		if err != nil || r.Stdout != want.Stdout || r.Stderr != want.Stderr || r.ExitCode != want.ExitCode {
			t.Errorf("%s: %d, %q, %q, %v; want %d, %q, %q", command, r.ExitCode, r.Stdout, r.Stderr, err, want.ExitCode, want.Stdout, want.Stderr)
		}
	}
}
