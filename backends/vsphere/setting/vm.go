package setting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// vmSetter sets memory, adapters, passed-through devices and extraConfig of a VM together in one reconfigure.
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
	cpuMHz   int64 // reserved CPU
	latency  types.LatencySensitivitySensitivityLevel
	nested   bool
	devices  []types.BaseVirtualDevice
	extra    []types.BaseOptionValue // only if it was requested
	groups   []types.BaseVirtualMachineVirtualDeviceGroupsDeviceGroup
	host     place.Ref
	browser  place.Ref
}

var viewPaths = []string{"config.changeVersion", "config.hardware.memoryMB", "config.hardware.device",
	"config.memoryAllocation.reservation",
	"config.memoryReservationLockedToMax", "config.cpuAllocation.reservation", "config.latencySensitivity.level", "config.nestedHVEnabled",
	"runtime.powerState", "runtime.host", "environmentBrowser"}

// view reads a VM. It reads extraConfig, which is long, and device groups, which vCenter declares only since 8.0, only if one of
// the settings needs them.
func (s *vmSetter) view(ctx context.Context, vm place.Ref, settings ...backends.Setting) (*vmView, error) {
	paths := slices.Clone(viewPaths)
	if slices.ContainsFunc(settings, func(t backends.Setting) bool { return t.Kind == backends.KindExtra }) {
		paths = append(paths, "config.extraConfig")
	}
	if slices.ContainsFunc(settings, func(t backends.Setting) bool { return t.Kind == backends.KindDeviceGroup }) {
		paths = append(paths, "config.deviceGroups")
	}
	o, err := backends.Again(ctx, fmt.Sprintln(vm, paths), func() (wire.Object, error) { return s.conn.One(ctx, vm, paths...) })
	if err != nil {
		return nil, err
	}
	v := &vmView{
		ref: vm, change: wire.Value[string](o, "config.changeVersion"), power: wire.Value[types.VirtualMachinePowerState](o,
			"runtime.powerState"),
		memoryMB: int64(wire.Value[int32](o, "config.hardware.memoryMB")),
		devices:  wire.Value[types.ArrayOfVirtualDevice](o, "config.hardware.device").VirtualDevice,
		extra:    wire.Value[types.ArrayOfOptionValue](o, "config.extraConfig").OptionValue,
		groups:   wire.Value[types.VirtualMachineVirtualDeviceGroups](o, "config.deviceGroups").DeviceGroup,
		host:     wire.Value[place.Ref](o, "runtime.host"), browser: wire.Value[place.Ref](o, "environmentBrowser"),
		nested: wire.Value[bool](o, "config.nestedHVEnabled"), cpuMHz: wire.Value[int64](o, "config.cpuAllocation.reservation"),
		latency: cmp.Or(wire.Value[types.LatencySensitivitySensitivityLevel](o, "config.latencySensitivity.level"),
			types.LatencySensitivitySensitivityLevelNormal),
	}
	v.memory = backends.MemorySpec{
		Locked:        wire.Value[bool](o, "config.memoryReservationLockedToMax"),
		ReservationMB: wire.Value[int64](o, "config.memoryAllocation.reservation"),
	}
	return v, nil
}

func (s *vmSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	vm, err := s.places.Find(ctx, t.Target)
	if err != nil {
		return backends.Absent, err
	}
	v, err := s.view(ctx, vm, t)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, "read the VM's "+thing(t))
	}
	got, err := s.of(ctx, v, t)
	return got, wire.Explain(err, t.Target.Name, "read the VM's "+thing(t))
}

// ReadMany reads settings of VMs with one read per VM.
func (s *vmSetter) ReadMany(ctx context.Context, ss []backends.Setting) ([]backends.Value, []error) {
	values, errs := make([]backends.Value, len(ss)), make([]error, len(ss))
	views := map[backends.Ref]*vmView{}
	for i, t := range ss {
		v := views[t.Target]
		if v == nil {
			vm, err := s.places.Find(ctx, t.Target)
			if err == nil {
				v, err = s.view(ctx, vm, ss...)
			}
			if err != nil {
				errs[i] = wire.Explain(err, t.Target.Name, "read the VM's "+thing(t))
				continue
			}
			views[t.Target] = v
		}
		got, err := s.of(ctx, v, t)
		values[i], errs[i] = got, wire.Explain(err, t.Target.Name, "read the VM's "+thing(t))
	}
	return values, errs
}

func thing(t backends.Setting) string {
	what := map[backends.Kind]string{
		backends.KindMemory: "memory reservation", backends.KindCPU: "CPU reservation", backends.KindLatency: "latency sensitivity",
		backends.KindNested: "nested virtualization", backends.KindExtra: "setting ", backends.KindDevice: "device ",
		backends.KindVGPU: "vGPUs ", backends.KindDeviceGroup: "vendor device group ", backends.KindAdapter: "adapter on ",
	}[t.Kind]
	if strings.HasSuffix(what, " ") {
		what += t.Name
	}
	return what
}

func (s *vmSetter) of(ctx context.Context, v *vmView, t backends.Setting) (backends.Value, error) {
	switch t.Kind {
	case backends.KindMemory:
		return backends.ValueOf(v.memory), nil
	case backends.KindCPU:
		return backends.ValueOf(v.cpuMHz), nil
	case backends.KindLatency:
		return backends.ValueOf(v.latency), nil
	case backends.KindNested:
		return backends.ValueOf(v.nested), nil
	case backends.KindExtra:
		_, value := v.option(t.Name)
		return value, nil
	case backends.KindVGPU:
		if n := len(v.vgpus(t.Name)); n > 0 {
			return backends.ValueOf(n), nil
		}
		return backends.Absent, nil
	case backends.KindDeviceGroup:
		if v.group(t.Name) != nil {
			return backends.ValueOf(true), nil
		}
		return backends.Absent, nil
	case backends.KindDevice:
		_, value, err := s.passthrough(ctx, v, t.Name)
		return value, err
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

// is reports whether a setting has the requested value. A locked reservation is all memory, whatever number was requested.
func (s *vmSetter) is(ctx context.Context, v *vmView, a backends.Assignment) (bool, error) {
	got, err := s.of(ctx, v, a.Setting)
	if err != nil || got == a.To {
		return err == nil, err
	}
	if a.Kind != backends.KindMemory || a.To.IsAbsent() {
		return false, nil
	}
	want, err := backends.Decoded[backends.MemorySpec](a.To, a.Target.Name, "set the memory reservation")
	return err == nil && want.Locked && v.memory.Locked && v.memory.ReservationMB == v.memoryMB, err
}

func (s *vmSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	return s.SetMany(ctx, []backends.Assignment{{Setting: t, To: to}}, progress)[0]
}

func (s *vmSetter) Parent(t backends.Setting) string { return t.Target.String() }

// SetMany changes settings of one VM in one reconfigure. If vCenter refuses them together, each is tried alone, so that the error
// is returned for the one that causes it.
func (s *vmSetter) SetMany(ctx context.Context, as []backends.Assignment, progress backends.Progress) []error {
	errs := make([]error, len(as))
	var open []int // not yet as requested
	var settings []backends.Setting
	for i, a := range as {
		open, settings = append(open, i), append(settings, a.Setting)
	}
	all := func(err error) []error {
		for _, i := range open {
			errs[i] = wire.Explain(err, as[i].Target.Name, "set the VM's "+thing(as[i].Setting))
		}
		return errs
	}
	if err := twins(as); err != nil {
		return all(err)
	}
	vm, err := s.places.Find(ctx, as[0].Target)
	if err != nil {
		return all(err)
	}
	for try := 1; ; try++ {
		v, err := s.view(ctx, vm, settings...)
		if err != nil {
			return all(err)
		}
		spec, left, err := s.spec(ctx, v, as)
		if err == nil {
			open = left
		}
		if len(left) > 0 || err != nil {
			backends.ReadsOf(ctx).Forget() // the spec edits the devices that were read, whether or not it is sent
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
		case try > wire.Tries:
			return all(backends.Conflictf("", "look at the VM's events in vCenter",
				"it was accepted, but reads back differently"))
		}
		if err = s.reconfigure(ctx, v, spec, progress); err == nil {
			continue // the next iteration reads it back
		}
		why := wire.Explain(err, "", "")
		if wire.Retriable(why) && wire.Pause(ctx, try) {
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

// spec computes the reconfigure for everything that is not yet as requested.
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
			err = take(a, "set the memory reservation", func(want backends.MemorySpec) {
				if want.Locked { // then vCenter accepts only a reservation of all memory
					want.ReservationMB = v.memoryMB
				}
				spec.MemoryReservationLockedToMax = &want.Locked
				spec.MemoryAllocation = &types.ResourceAllocationInfo{Reservation: &want.ReservationMB}
			})
		case backends.KindCPU:
			err = take(a, "set the CPU reservation", func(mhz int64) { spec.CpuAllocation = &types.ResourceAllocationInfo{Reservation: &mhz} })
		case backends.KindLatency:
			err = take(a, "set the latency sensitivity", func(level types.LatencySensitivitySensitivityLevel) {
				spec.LatencySensitivity = &types.LatencySensitivity{Level: level}
			})
		case backends.KindNested:
			err = take(a, "set nested virtualization", func(on bool) { spec.NestedHVEnabled = &on })
		case backends.KindAdapter:
			err = s.adapter(ctx, spec, v, a)
		case backends.KindExtra:
			err = extra(spec, v, a)
		case backends.KindDevice:
			err = s.device(ctx, spec, v, a)
		case backends.KindVGPU:
			err = vgpus(spec, v, a)
		case backends.KindDeviceGroup:
			err = s.deviceGroup(ctx, spec, v, a)
		default:
			err = errors.New("not a setting of a VM: " + string(a.Kind))
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return spec, open, nil
}

// take passes the value that a setting is to get to set.
func take[T any](a backends.Assignment, what string, set func(T)) error {
	want, err := backends.Decoded[T](a.To, a.Target.Name, what)
	if err == nil {
		set(want)
	}
	return err
}

func (s *vmSetter) reconfigure(ctx context.Context, v *vmView, spec *types.VirtualMachineConfigSpec, progress backends.Progress) error {
	backends.ReadsOf(ctx).Forget()
	_, err := s.run(ctx, progress, wire.Starts(s.conn, methods.ReconfigVM_Task, &types.ReconfigVM_Task{This: v.ref, Spec: *spec}))
	return err
}
