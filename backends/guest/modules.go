package guest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// modules sets which kernel modules are loaded: KindModules. Modules that are built into the kernel count as loaded: modprobe
// succeeds for them and does nothing, and cannot remove them (kmod, modprobe.c: "Module X is builtin.").
type modules struct{ g *Guests }

const pvrdma = backends.PVRDMAModule

// Read returns the modules of the set that are loaded, in the order of the set.
func (m modules) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	set := m.set(s)
	loaded, builtIn, err := m.loaded(ctx, s.Target.Name, set)
	if err != nil {
		return backends.Absent, err
	}
	return backends.ValueOf(ordered(set, append(loaded, builtIn...))), nil
}

func (m modules) set(s backends.Setting) []string {
	var list []string
	if !m.g.want(s, &list) {
		list = m.g.options.ModuleSet
	}
	return list
}

// loaded returns the modules that were loaded, and which of those named are built into the kernel.
func (m modules) loaded(ctx context.Context, vm string, names []string) (loaded, builtIn []string, err error) {
	f, err := m.g.lookFacts(ctx, vm,
		ssh.Command{Script: section("modules", "cat /proc/modules") + section("builtin", script("builtin.sh", names...))})
	if err != nil {
		return nil, nil, err
	}
	return f.loaded(), f.builtIn(), nil
}

// Set loads missing modules in the given order, and unloads modules of the set that are no longer wanted. vmw_pvrdma is loaded
// last, and loaded again if anything was loaded before it: its port becomes active only if its netdev comes up after the driver
// was loaded (PVRDMA and vSphere Bitfusion, VMware, 2021, Additional Steps; vmw_pvrdma, NETDEV_UP).
func (m modules) Set(ctx context.Context, s backends.Setting, to backends.Value, _ backends.Progress) error {
	vm := s.Target.Name
	want, err := wanted[[]string](to)
	if err != nil {
		return err
	}
	m.g.learn(s, to)
	set := m.set(s)
	loaded, builtIn, err := m.loaded(ctx, vm, set)
	if err != nil {
		return err
	}
	fixed := func(name string) bool { return slices.Contains(builtIn, name) }
	want = slices.DeleteFunc(want, fixed)
	script := moduleScript(want, loaded, slices.DeleteFunc(slices.Clone(set), fixed))
	if script == "" {
		return nil
	}
	r, err := m.g.step(ctx, vm, step{what: "load kernel modules", Command: ssh.Command{Script: script, Limit: 2 * time.Minute}})
	if err != nil {
		return err
	}
	if r.ExitCode != 0 {
		return moduleError(vm, r)
	}
	if loaded, _, err = m.loaded(ctx, vm, set); err != nil {
		return err
	}
	if left := ordered(want, loaded); len(left) != len(want) {
		return backends.Permanentf(label(vm), "Look at the guest's kernel log.",
			"load the modules %s: only %s are loaded", strings.Join(want, ", "), strings.Join(left, ", "))
	}
	return nil
}

// moduleScript returns a script that changes loaded to want within set; "" if nothing is to be done.
func moduleScript(want, loaded, set []string) string {
	var b strings.Builder
	is := func(m string) bool { return slices.Contains(loaded, m) }
	fresh := false
	for _, m := range want {
		if m != pvrdma && !is(m) {
			b.WriteString("modprobe -- " + ssh.Quote(m) + " || exit 1\n")
			fresh = true
		}
	}
	if slices.Contains(want, pvrdma) && (fresh || !is(pvrdma)) {
		if is(pvrdma) {
			b.WriteString("modprobe -r " + pvrdma + " || exit 1\n")
		}
		b.WriteString("modprobe " + pvrdma + " || exit 1\n")
	}
	for _, m := range slices.Backward(set) {
		if is(m) && !slices.Contains(want, m) {
			if m == "rdma_cm" {
				b.WriteString("modprobe -r rpcrdma 2>/dev/null\n") // rdma-core loads it on top of rdma_cm
			}
			b.WriteString("modprobe -r -- " + ssh.Quote(m) + " || exit 1\n")
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return traceGuard(b.String())
}

// traceGuard makes a script fail if the kernel log has more call traces afterwards.
func traceGuard(body string) string { return script("trace-guard.sh", body) }

func moduleError(vm string, r ssh.Result) error {
	said := lastLines(r.Stderr, 2)
	peer := strings.Contains(said, "peermem") || strings.Contains(said, "nv_peer_mem")
	switch {
	case peer && (strings.Contains(said, "Invalid argument") || strings.Contains(said, "Unknown symbol")):
		// nv_peer_memory issues 8, 28, 84: built without ib_core's interface for peer memory, or for another version of it.
		return backends.Permanentf(label(vm),
			"It was built for another ib_core: install MLNX_OFED or DOCA first and the NVIDIA driver after it (or build its modules again: dkms "+
				"install), or "+
				"use the driver's open kernel modules, which need no peer memory (DMA-BUF).",
			"load the peer memory module: %s", said)
	case strings.Contains(said, "No such device"):
		return backends.Permanentf(label(vm),
			"The driver supports none of the GPUs that it finds. Check lspci and the kernel log in the guest, and the MMIO window of the VM.",
			"load the modules: %s", said)
	case strings.Contains(said, "Key was rejected") || strings.Contains(said, "Required key not available"):
		return backends.Permanentf(label(vm),
			"Secure Boot refuses unsigned modules: install signed ones, enroll the signing key "+
				"(mokutil --import), or disable Secure Boot of the VM.",
			"load the modules: %s", said)
	case strings.Contains(said, "new Call Trace"):
		return backends.Permanentf(label(vm),
			"Collect the kernel log (dmesg) and reboot the guest; do not load the modules again.",
			"load the modules: %s", said)
	case peer && strings.Contains(said, "not found"):
		return backends.Permanentf(label(vm),
			"Install the NVIDIA driver's kernel modules for this kernel. nvidia-peermem is one of them from release 470 on.",
			"load the peer memory module: %s", said)
	case strings.Contains(said, "not found"):
		return backends.Permanentf(label(vm),
			"Install the rest of the kernel's modules (Ubuntu: linux-modules-extra, EL: kernel-modules-extra, Debian: not the cloud kernel), or "+
				"use a kernel that has it.",
			"load the modules: %s", said)
	}
	return failed(vm, "load the modules", r)
}
