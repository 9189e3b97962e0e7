package bracket

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// vmPower keeps a VM powered off while its devices change. Its state is the power state: "poweredOn", "poweredOff", "suspended".
type vmPower struct{ site }

func (b vmPower) State(ctx context.Context, t backends.Ref) (backends.Value, error) {
	_, power, _, err := b.read(ctx, t)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Name, "read the power state")
	}
	return backends.ValueOf(string(power)), nil
}

func (b vmPower) read(ctx context.Context, t backends.Ref) (vm place.Ref, power types.VirtualMachinePowerState, tools bool, err error) {
	o, err := b.places.One(ctx, t, "runtime.powerState", "guest.toolsRunningStatus")
	if err != nil {
		return vm, "", false, err
	}
	return o.Ref, wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState"), toolsRun(o), nil
}

func toolsRun(o wire.Object) bool {
	return wire.Value[string](o, "guest.toolsRunningStatus") == string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)
}

func toolsRunOrOff(o wire.Object) bool { return toolsRun(o) || isOff(o) }

// Open shuts the guest down through VMware Tools and waits until the VM is off.
func (b vmPower) Open(ctx context.Context, t backends.Ref, progress backends.Progress) error {
	vm, power, tools, err := b.read(ctx, t)
	if err != nil {
		return wire.Explain(err, t.Name, "shut down the guest")
	}
	switch power {
	case types.VirtualMachinePowerStatePoweredOff:
		return nil
	case types.VirtualMachinePowerStateSuspended:
		return backends.Refusedf(t.Name, "resume the VM or power it off first",
			"the VM is suspended, and what its guest holds in memory would be lost")
	}
	b.leaving.shut(vm, true)
	refuse := func(hint, why string) error {
		if b.opt.PowerOff {
			return b.powerOff(ctx, t, vm, progress)
		}
		return backends.Refusedf(t.Name, hint, "shut down the guest: %s", why)
	}
	if !tools {
		if tools, err = b.starting(ctx, t, vm); err != nil {
			return wire.Explain(err, t.Name, "wait for VMware Tools")
		}
	}
	if !tools {
		return refuse("start VMware Tools (open-vm-tools) in the guest, or shut it down yourself, then run "+
			"rdma-setup resume", "VMware Tools do not run in it")
	}
	const what = "shut down the guest"
	err = wire.Attempt(ctx, t.Name, what, func() (backends.Value, bool, error) {
		_, power, _, err := b.read(ctx, t)
		return backends.ValueOf(string(power)), power == types.VirtualMachinePowerStatePoweredOff, err
	}, func() error {
		_, err := methods.ShutdownGuest(ctx, b.conn.VIM(), &types.ShutdownGuest{This: vm}) // a second request does no harm
		return err
	})
	if err != nil {
		switch wire.FaultOf(err).(type) {
		case *types.ToolsUnavailable:
			return refuse("start VMware Tools (open-vm-tools) in the guest, or shut it down yourself, then run "+
				"rdma-setup resume", "VMware Tools do not answer")
		case *types.InvalidPowerState: // it powered off in the meantime, or is about to
		default:
			return wire.Explain(err, t.Name, "shut down the guest")
		}
	}
	limit, err := b.watch(ctx, vm, "wait until it is off", t.Name, b.opt.Shutdown, func(o wire.Object) bool {
		return wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState") == types.VirtualMachinePowerStatePoweredOff
	})
	if errors.Is(err, errLate) {
		return refuse("look at the guest's console; shut it down yourself, then run rdma-setup resume",
			"it was asked, but is still running after "+limit.String())
	}
	if err == nil {
		progress.Report(100)
	}
	return wire.Explain(err, t.Name, "shut down the guest")
}

// starting waits for VMware Tools in a VM that was powered on so recently that its guest may still be starting, as after the
// power cycle of another run, and reports whether they run or the VM powered off again (VirtualMachineRuntimeInfo.bootTime in the
// vSphere Web Services API is the time of the power-on, by the clock of its host).
func (b vmPower) starting(ctx context.Context, t backends.Ref, vm place.Ref) (bool, error) {
	o, err := b.conn.One(ctx, vm, "runtime.bootTime", "guest.toolsVersionStatus2")
	if err != nil ||
		wire.Value[string](o, "guest.toolsVersionStatus2") == string(types.VirtualMachineToolsVersionStatusGuestToolsNotInstalled) {
		return false, err
	}
	now, err := methods.GetCurrentTime(ctx, b.conn.VIM())
	if err != nil {
		return false, err
	}
	on := now.Sub(wire.Value[time.Time](o, "runtime.bootTime")).Abs() // the two clocks may differ slightly
	if on >= b.opt.PowerOn {
		return false, nil
	}
	_, err = b.watch(ctx, vm, "wait until VMware Tools run", t.Name, b.opt.PowerOn-on, toolsRunOrOff)
	if errors.Is(err, errLate) {
		return false, nil
	}
	return err == nil, err
}

func (b vmPower) powerOff(ctx context.Context, t backends.Ref, vm place.Ref, progress backends.Progress) error {
	_, err := b.order(vm, opPowerOff, progress, wire.Starts(b.conn, methods.PowerOffVM_Task, &types.PowerOffVM_Task{This: vm}),
		types.VirtualMachinePowerStatePoweredOff).carryOut(ctx)
	return wire.Explain(err, t.Name, "power the VM off")
}

// Close powers the VM on again if it was on before.
func (b vmPower) Close(ctx context.Context, t backends.Ref, leave backends.Value, progress backends.Progress) error {
	want, err := state[types.VirtualMachinePowerState](leave, t.Name)
	if err != nil {
		return err
	}
	if want != types.VirtualMachinePowerStatePoweredOn {
		return nil
	}
	vm, power, tools, err := b.read(ctx, t)
	if err != nil {
		return wire.Explain(err, t.Name, "power the VM on")
	}
	defer b.leaving.shut(vm, false)
	if power != types.VirtualMachinePowerStatePoweredOn {
		if err := b.powerOn(ctx, t, vm, progress); err != nil {
			return wire.Explain(b.diagnose(ctx, vm, err), t.Name, "power the VM on")
		}
	}
	if !b.opt.Tools || tools {
		return nil
	}
	limit, err := b.watch(ctx, vm, "wait until VMware Tools run", t.Name, b.opt.PowerOn, toolsRunOrOff)
	if err == nil {
		_, power, _, err = b.read(ctx, t)
		if err == nil && power == types.VirtualMachinePowerStatePoweredOff {
			return wire.Explain(b.wentOff(ctx, vm), t.Name, "power the VM on")
		}
	}
	if errors.Is(err, errLate) {
		return backends.Transientf(t.Name, "look at the guest's console, then run rdma-setup resume",
			"the VM is on, but VMware Tools have not come up within %s", limit)
	}
	return wire.Explain(err, t.Name, "wait for VMware Tools")
}

func offAgain(vm string) error {
	return backends.Permanentf(vm,
		"look at the VM's vmware.log; where it says \"failed to register interrupt\", the host is out of interrupt vectors: "+
			"reduce the number of VFs in use on it", "power the VM on: it went off again by itself")
}

// OffAgain waits until a VM that was powered on is off, and then returns an error; nil if ctx ends first.
func OffAgain(ctx context.Context, conn *wire.Conn, places *place.Places, vm string) error {
	b := vmPower{site{conn: conn, places: places}}
	ref, err := places.Find(ctx, backends.VMRef(vm))
	for try := 1; err == nil; try++ {
		if err = conn.Watch(ctx, ref, isOff); err != nil {
			break
		}
		var power types.VirtualMachinePowerState
		if _, power, _, err = b.read(ctx, backends.VMRef(vm)); err == nil && power == types.VirtualMachinePowerStatePoweredOff {
			return wire.Explain(b.wentOff(ctx, ref), vm, "power the VM on")
		}
		if !wire.Pause(ctx, min(try, wire.Tries)) { // the state may be slightly outdated
			break
		}
	}
	return nil // the caller, which waits for the guest, notices by itself that vCenter cannot be reached
}

// Off waits until a VM whose guest is shutting down is off, with the same limit as Open.
func Off(ctx context.Context, conn *wire.Conn, places *place.Places, vm string) error {
	ref, err := places.Find(ctx, backends.VMRef(vm))
	if err == nil {
		s := site{conn: conn, places: places, opt: Options{}.filled()}
		_, err = s.watch(ctx, ref, "wait until it is off", vm, s.opt.Shutdown, isOff)
	}
	return wire.Explain(err, vm, "wait for it to be off")
}

func isOff(o wire.Object) bool {
	return wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState") == types.VirtualMachinePowerStatePoweredOff
}

// refusals maps messages of hosts on which a VM with passed-through devices does not start to remedies.
var refusals = []struct{ mark, hint string }{
	{"No SR-IOV virtual function",
		"compare the VFs of the host with max_vfs by PCI order (a card added or removed shifts them, KB 309346): rdma-setup check; or " +
			"move the VM"},
	{"sched.mem.min", "reserve all guest memory of the VM"},
	{"sched.cpu.min", "reserve the VM's CPUs in full, or set its latency sensitivity back to normal"},
	{"Out of interrupt vectors", "reduce the number of VFs in use on this host"},
}

// explainPowerOn adds a remedy to a refusal that is complete by itself; false if vmware.log has more details.
func explainPowerOn(err error) (error, bool) {
	text := wire.Text(err)
	for _, r := range refusals {
		if strings.Contains(text, r.mark) {
			return backends.Permanentf("", r.hint, "%s", text), true
		}
	}
	return err, false
}

func (b vmPower) powerOn(ctx context.Context, t backends.Ref, vm place.Ref, progress backends.Progress) error {
	ctx, limit, late, over := b.within(ctx, "wait until it is on", t.Name, b.opt.PowerOn)
	defer over()
	o := b.order(vm, opPowerOn, progress, wire.Starts(b.conn, methods.PowerOnVM_Task, &types.PowerOnVM_Task{This: vm}),
		types.VirtualMachinePowerStatePoweredOn)
	_, err := o.carryOut(ctx)
	if _, is := wire.FaultOf(err).(*types.InvalidPowerState); is {
		// An earlier attempt requested it and did not wait for it.
		if on, rerr := o.done(ctx); rerr == nil && on {
			return nil
		}
	}
	if late() {
		return backends.Transientf("", "vCenter may wait for an answer to a question: look at the VM's summary page",
			"it is not on after %s", limit)
	}
	return err
}

// order returns the order that brings a VM into a power state.
func (b vmPower) order(vm place.Ref, op string, progress backends.Progress,
	send func(context.Context) (types.ManagedObjectReference, error), to types.VirtualMachinePowerState) order {
	return order{site: b.site, machine: vm, op: op, send: send, progress: progress, done: func(ctx context.Context) (bool, error) {
		o, err := b.conn.One(ctx, vm, "runtime.powerState")
		return wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState") == to, err
	}}
}
