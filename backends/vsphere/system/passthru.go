package system

import (
	"context"
	"fmt"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// passthru is HostPciPassthruSystem: PCI devices that a host provides to VMs, whole or as VFs.
type passthru struct{ *System }

const passthruInfo = "config.pciPassthruInfo"

// info returns a PCI function. It is a HostSriovInfo only if SR-IOV is enabled in BIOS and firmware.
func (s passthru) info(ctx context.Context, t backends.Setting, what string) (types.BaseHostPciPassthruInfo, error) {
	host, err := s.places.Find(ctx, t.Target)
	if err != nil {
		return nil, wire.Explain(err, t.Target.Name, what)
	}
	o, err := s.conn.One(ctx, host, passthruInfo)
	if err != nil {
		return nil, wire.Explain(err, t.Target.Name, what)
	}
	for _, p := range wire.Value[types.ArrayOfHostPciPassthruInfo](o, passthruInfo).HostPciPassthruInfo {
		if strings.EqualFold(p.GetHostPciPassthruInfo().Id, t.Name) {
			return p, nil
		}
	}
	return nil, backends.Errorf(backends.KindPermanent, t.Target.Name, "compare with: rdma-setup discover", "%s: the host has no PCI device %s", what, t.Name)
}

// refresh makes vCenter read the host's devices again: after a change it may show the old ones for a while. Without the privilege
// for it, the cached data is used.
func (s passthru) refresh(ctx context.Context, t backends.Setting) error {
	_, system, err := s.places.Part(ctx, t.Target, func(m types.HostConfigManager) *types.ManagedObjectReference { return m.PciPassthruSystem })
	if err != nil {
		return err
	}
	if _, err = methods.Refresh(ctx, s.conn.VIM(), &types.Refresh{This: system}); err != nil {
		if _, denied := wire.FaultOf(err).(*types.NoPermission); denied {
			return nil
		}
	}
	return err
}

// update changes one function and reads it back.
func (s passthru) update(ctx context.Context, t backends.Setting, what string, to backends.Value, progress backends.Progress,
	config types.BaseHostPciPassthruConfig, value func(types.BaseHostPciPassthruInfo) backends.Value) error {
	_, system, err := s.places.Part(ctx, t.Target, func(m types.HostConfigManager) *types.ManagedObjectReference { return m.PciPassthruSystem })
	if err != nil {
		return wire.Explain(err, t.Target.Name, what)
	}
	read := func() (backends.Value, bool, error) {
		if err := s.refresh(ctx, t); err != nil {
			return backends.Absent, false, err
		}
		info, err := s.info(ctx, t, what)
		if err != nil {
			return backends.Absent, false, err
		}
		return value(info), value(info) == to, nil
	}
	return wire.Set(ctx, t.Target.Name, what, to, progress, read, func() error {
		_, err := methods.UpdatePassthruConfig(ctx, s.conn.VIM(), &types.UpdatePassthruConfig{This: system, Config: []types.BaseHostPciPassthruConfig{config}})
		return err
	})
}

// vfSetter sets how many VFs vCenter requests from a PF. They exist after the next boot.
type vfSetter struct{ passthru }

func vfs(p types.BaseHostPciPassthruInfo) backends.Value {
	spec := backends.VFSpec{}
	if s, ok := p.(*types.HostSriovInfo); ok && s.SriovEnabled {
		spec = backends.VFSpec{Enabled: true, VFs: int(s.NumVirtualFunctionRequested)}
	}
	return backends.ValueOf(spec)
}

// Read returns the requested number, not the existing one: numVirtualFunctionRequested.
func (s vfSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	info, err := s.info(ctx, t, "read the VFs of "+t.Name)
	if err != nil {
		return backends.Absent, err
	}
	return vfs(info), nil
}

// Set requests VFs.
func (s vfSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	what := "set the VFs of " + t.Name
	want, err := backends.Decoded[backends.VFSpec](to, t.Target.Name, what)
	if err != nil {
		return err
	}
	if !want.Enabled {
		want.VFs = 0
	}
	to = backends.ValueOf(want)
	if err := s.refresh(ctx, t); err != nil {
		return wire.Explain(err, t.Target.Name, what)
	}
	info, err := s.info(ctx, t, what)
	if err != nil {
		return err
	}
	if vfs(info) == to {
		return nil
	}
	refuse := func(hint, format string, args ...any) error {
		return backends.Errorf(backends.KindRefused, t.Target.Name, hint, "%s: %s", what, fmt.Sprintf(format, args...))
	}
	pf, can := info.(*types.HostSriovInfo)
	switch {
	case !can || !pf.SriovCapable:
		return refuse("switch SR-IOV on in the BIOS and in the card's firmware (SRIOV_EN, NUM_OF_VFS), then reboot", "the device offers no SR-IOV")
	case want.Enabled && want.VFs < 1:
		return refuse("ask for 1 VF at least, or leave SR-IOV off", "%d VFs", want.VFs)
	case want.Enabled && want.VFs > int(pf.MaxVirtualFunctionSupported):
		return refuse("ask for fewer VFs, or raise NUM_OF_VFS in the firmware and reboot", "%d VFs, but the device supports %d", want.VFs, pf.MaxVirtualFunctionSupported)
	}
	config := &types.HostSriovConfig{
		HostPciPassthruConfig: types.HostPciPassthruConfig{Id: pf.Id, PassthruEnabled: pf.PassthruEnabled},
		SriovEnabled:          want.Enabled, NumVirtualFunction: int32(want.VFs),
	}
	return s.update(ctx, t, what, to, progress, config, vfs)
}

// passthroughSetter enables and disables passthrough of PCI functions. If the host can rebind a device it takes effect
// immediately, else at the next boot.
type passthroughSetter struct{ passthru }

func enabled(p types.BaseHostPciPassthruInfo) backends.Value {
	return backends.ValueOf(p.GetHostPciPassthruInfo().PassthruEnabled)
}

// Read reports whether passthrough is enabled, possibly only from the next boot on.
func (s passthroughSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	info, err := s.info(ctx, t, "read the passthrough of "+t.Name)
	if err != nil {
		return backends.Absent, err
	}
	return enabled(info), nil
}

// Set enables or disables passthrough.
func (s passthroughSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	what := "set the passthrough of " + t.Name
	on, err := backends.Decoded[bool](to, t.Target.Name, what)
	if err != nil {
		return err
	}
	if err := s.refresh(ctx, t); err != nil {
		return wire.Explain(err, t.Target.Name, what)
	}
	info, err := s.info(ctx, t, what)
	if err != nil {
		return err
	}
	now := info.GetHostPciPassthruInfo()
	switch {
	case now.PassthruEnabled == on:
		return nil
	case on && !now.PassthruCapable:
		return backends.Errorf(backends.KindRefused, t.Target.Name, "switch VT-d or the AMD IOMMU on in the BIOS", "%s: the device cannot be passed through", what)
	}
	return s.update(ctx, t, what, to, progress, &types.HostPciPassthruConfig{Id: now.Id, PassthruEnabled: on}, enabled)
}
