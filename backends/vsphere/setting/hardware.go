package setting

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

type hardwareSetter struct{ *site }

// Read returns a VM's hardware version: 19 for vmx-19.
func (s hardwareSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	vm, err := s.places.Find(ctx, t.Target)
	if err != nil {
		return backends.Absent, err
	}
	n, _, err := s.version(ctx, vm)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, "read the hardware version")
	}
	return backends.ValueOf(n), nil
}

func (s hardwareSetter) version(ctx context.Context, vm place.Ref) (version int, power types.VirtualMachinePowerState, err error) {
	o, err := s.conn.One(ctx, vm, "config.version", "runtime.powerState")
	if err != nil {
		return 0, "", err
	}
	return survey.HardwareVersion(wire.Value[string](o, "config.version")),
		wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState"), nil
}

// Set upgrades a VM that is off. A version is never lowered.
func (s hardwareSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	name := t.Target.Name
	want, err := backends.Decoded[int](to, name, "upgrade the hardware version")
	if err != nil {
		return err
	}
	what := fmt.Sprintf("upgrade the hardware version to vmx-%d", want)
	vm, err := s.places.Find(ctx, t.Target)
	if err != nil {
		return err
	}
	read := func() (backends.Value, bool, error) {
		n, _, err := s.version(ctx, vm)
		return backends.ValueOf(n), n == want, err
	}
	return wire.Apply(ctx, name, what, to, read, func() error {
		is, power, err := s.version(ctx, vm)
		switch {
		case err != nil || is == want:
			return err
		case is > want:
			return backends.Permanentf("", "a newer hardware version is kept", "it is vmx-%d already and cannot be lowered", is)
		case power != types.VirtualMachinePowerStatePoweredOff:
			return errNotOff(power)
		}
		_, err = s.run(ctx, progress,
			wire.Starts(s.conn, methods.UpgradeVM_Task, &types.UpgradeVM_Task{This: vm, Version: fmt.Sprintf("vmx-%02d", want)}))
		return err
	})
}

func errNotOff(power types.VirtualMachinePowerState) error {
	return backends.Permanentf("", "shut the VM down first", "the VM is %s, and its devices change only while it is off",
		words(power))
}

func words(power types.VirtualMachinePowerState) string {
	switch power {
	case types.VirtualMachinePowerStatePoweredOn:
		return "powered on"
	case types.VirtualMachinePowerStateSuspended:
		return "suspended"
	}
	return string(power)
}
