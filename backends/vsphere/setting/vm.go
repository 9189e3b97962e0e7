package setting

import (
	"context"
	"errors"
	"sync"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// vmSetter sets memory and adapters of a VM together in one reconfigure.
type vmSetter struct {
	*site
	mu   sync.Mutex
	nets map[place.Ref]network
}

// A vmView is a VM as it was read.
type vmView struct {
	ref      place.Ref
	change   string // changeVersion
	power    types.VirtualMachinePowerState
	memoryMB int64
	memory   backends.MemorySpec
	devices  []types.BaseVirtualDevice
	host     place.Ref
	browser  place.Ref
}

func (s *vmSetter) view(ctx context.Context, vm place.Ref) (*vmView, error) {
	o, err := s.conn.One(ctx, vm, "config.changeVersion", "config.hardware.memoryMB", "config.hardware.device", "config.memoryAllocation.reservation",
		"config.memoryReservationLockedToMax", "runtime.powerState", "runtime.host", "environmentBrowser")
	if err != nil {
		return nil, err
	}
	v := &vmView{
		ref: vm, change: wire.Value[string](o, "config.changeVersion"), power: wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState"),
		memoryMB: int64(wire.Value[int32](o, "config.hardware.memoryMB")),
		devices:  wire.Value[types.ArrayOfVirtualDevice](o, "config.hardware.device").VirtualDevice,
		host:     wire.Value[place.Ref](o, "runtime.host"), browser: wire.Value[place.Ref](o, "environmentBrowser"),
	}
	v.memory = backends.MemorySpec{
		Locked: wire.Value[bool](o, "config.memoryReservationLockedToMax"), ReservationMB: wire.Value[int64](o, "config.memoryAllocation.reservation"),
	}
	return v, nil
}

// Read gives the memory reservation of a VM or its adapter on a port group.
func (s *vmSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	vm, err := s.places.Find(ctx, t.Target)
	if err != nil {
		return backends.Absent, err
	}
	v, err := s.view(ctx, vm)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, "read the VM's "+thing(t))
	}
	got, err := s.of(ctx, v, t)
	return got, wire.Explain(err, t.Target.Name, "read the VM's "+thing(t))
}

func thing(t backends.Setting) string {
	if t.Kind == backends.KindMemory {
		return "memory reservation"
	}
	return "adapter on " + t.Name
}

// of gives a setting out of a view.
func (s *vmSetter) of(ctx context.Context, v *vmView, t backends.Setting) (backends.Value, error) {
	if t.Kind == backends.KindMemory {
		return backends.ValueOf(v.memory), nil
	}
	net, ok, err := s.network(ctx, t.Name)
	if err != nil || !ok {
		return backends.Absent, err
	}
	if _, spec, ok := net.adapter(v.devices); ok {
		spec.PortGroup = t.Name
		return backends.ValueOf(spec), nil
	}
	return backends.Absent, nil
}

// is tells whether a setting reads as wanted. A locked reservation is the whole memory, whatever number was asked for.
func (s *vmSetter) is(ctx context.Context, v *vmView, a backends.Assignment) (bool, error) {
	got, err := s.of(ctx, v, a.Setting)
	if err != nil || got == a.To {
		return err == nil, err
	}
	if a.Kind != backends.KindMemory || a.To.IsAbsent() {
		return false, nil
	}
	want, err := decode[backends.MemorySpec](a.To, a.Target.Name, "set the memory reservation")
	return err == nil && want.Locked && v.memory.Locked && v.memory.ReservationMB == v.memoryMB, err
}

// Set changes one setting.
func (s *vmSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	return s.SetMany(ctx, []backends.Assignment{{Setting: t, To: to}}, progress)[0]
}

// Parent is the VM.
func (s *vmSetter) Parent(t backends.Setting) string { return t.Target.String() }

// SetMany changes settings of one VM in one reconfigure. When vCenter refuses them together, each is tried by itself,
// so that the error stands at the one that is at fault.
func (s *vmSetter) SetMany(ctx context.Context, as []backends.Assignment, progress backends.Progress) []error {
	errs := make([]error, len(as))
	var open []int // what is not yet as wanted
	for i := range as {
		open = append(open, i)
	}
	all := func(err error) []error {
		for _, i := range open {
			errs[i] = wire.Explain(err, as[i].Target.Name, "set the VM's "+thing(as[i].Setting))
		}
		return errs
	}
	vm, err := s.places.Find(ctx, as[0].Target)
	if err != nil {
		return all(err)
	}
	for try := 1; ; try++ {
		v, err := s.view(ctx, vm)
		if err != nil {
			return all(err)
		}
		spec, left, err := s.spec(ctx, v, as)
		if err == nil {
			open = left
		}
		switch {
		case err != nil && len(as) > 1:
			return s.each(ctx, as, progress)
		case err != nil:
			return all(err)
		case len(open) == 0:
			return errs
		case v.power != types.VirtualMachinePowerStatePoweredOff:
			return all(errNotOff(v.power))
		case try > tries:
			return all(backends.Errorf(backends.KindConflict, "", "look at the VM's events in vCenter", "it was accepted, but does not read so"))
		}
		if err = s.reconfigure(ctx, v, spec, progress); err == nil {
			continue // the next view reads it back
		}
		why := wire.Explain(err, "", "")
		if again(why) && pause(ctx, try) {
			continue
		}
		if len(open) == 1 || backends.KindOf(why) != backends.KindPermanent {
			return all(err)
		}
		return s.each(ctx, as, progress)
	}
}

func (s *vmSetter) each(ctx context.Context, as []backends.Assignment, progress backends.Progress) []error {
	errs := make([]error, len(as))
	for i := range as {
		errs[i] = s.SetMany(ctx, as[i:i+1], progress)[0]
	}
	return errs
}

// spec works out the one reconfigure for what is not yet as wanted.
func (s *vmSetter) spec(ctx context.Context, v *vmView, as []backends.Assignment) (*types.VirtualMachineConfigSpec, []int, error) {
	spec := &types.VirtualMachineConfigSpec{ChangeVersion: v.change}
	var open []int
	for i, a := range as {
		done, err := s.is(ctx, v, a)
		if err != nil {
			return nil, nil, err
		}
		if done {
			continue
		}
		open = append(open, i)
		switch a.Kind {
		case backends.KindMemory:
			err = memory(spec, v, a)
		case backends.KindAdapter:
			err = s.adapter(ctx, spec, v, a)
		default:
			err = errors.New("not a setting of a VM: " + string(a.Kind))
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return spec, open, nil
}

// memory locks or unlocks the reservation. While locked vCenter accepts no other number than the whole memory.
func memory(spec *types.VirtualMachineConfigSpec, v *vmView, a backends.Assignment) error {
	want, err := decode[backends.MemorySpec](a.To, a.Target.Name, "set the memory reservation")
	if err != nil {
		return err
	}
	reserve := want.ReservationMB
	if want.Locked {
		reserve = v.memoryMB
	}
	spec.MemoryReservationLockedToMax = ref(want.Locked)
	spec.MemoryAllocation = &types.ResourceAllocationInfo{Reservation: ref(reserve)}
	return nil
}

func (s *vmSetter) reconfigure(ctx context.Context, v *vmView, spec *types.VirtualMachineConfigSpec, progress backends.Progress) error {
	res, err := methods.ReconfigVM_Task(ctx, s.conn.VIM(), &types.ReconfigVM_Task{This: v.ref, Spec: *spec})
	if err != nil {
		return err
	}
	_, err = s.task(ctx, res.Returnval, progress)
	return err
}
