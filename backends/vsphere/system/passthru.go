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
	o, err := s.places.One(ctx, t.Target, passthruInfo)
	if err != nil {
		return nil, wire.Explain(err, t.Target.Name, what)
	}
	for _, p := range wire.Value[types.ArrayOfHostPciPassthruInfo](o, passthruInfo).HostPciPassthruInfo {
		if strings.EqualFold(p.GetHostPciPassthruInfo().Id, t.Name) {
			return p, nil
		}
	}
	return nil, backends.Permanentf(t.Target.Name, "compare with: rdma-setup discover",
		"%s: the host has no PCI device %s", what, t.Name)
}

// refresh makes vCenter read the host's devices again: after a change it may show the old ones for a while. Without the privilege
// for it, the cached data is used.
func (s passthru) refresh(ctx context.Context, t backends.Setting) error {
	_, system, err := s.places.Part(ctx, t.Target, func(m types.HostConfigManager) *types.ManagedObjectReference {
		return m.PciPassthruSystem
	})
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

func (s passthru) update(ctx context.Context, t backends.Setting, what string, to backends.Value, progress backends.Progress,
	config types.BaseHostPciPassthruConfig, value func(types.BaseHostPciPassthruInfo) backends.Value) error {
	_, system, err := s.places.Part(ctx, t.Target, func(m types.HostConfigManager) *types.ManagedObjectReference {
		return m.PciPassthruSystem
	})
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
		_, err := methods.UpdatePassthruConfig(ctx, s.conn.VIM(),
			&types.UpdatePassthruConfig{This: system, Config: []types.BaseHostPciPassthruConfig{config}})
		return err
	})
}

func (s passthru) read(ctx context.Context, t backends.Setting, what string,
	of func(types.BaseHostPciPassthruInfo) backends.Value) (backends.Value, error) {
	info, err := s.info(ctx, t, what)
	if err != nil {
		return backends.Absent, err
	}
	return of(info), nil
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
	return s.read(ctx, t, "read the VFs of "+t.Name, vfs)
}

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
		return backends.Refusedf(t.Target.Name, hint, "%s: %s", what, fmt.Sprintf(format, args...))
	}
	pf, can := info.(*types.HostSriovInfo)
	switch {
	case !can || !pf.SriovCapable:
		return refuse("switch SR-IOV on in the BIOS and in the card's firmware (SRIOV_EN, NUM_OF_VFS), then reboot",
			"the device offers no SR-IOV")
	case want.Enabled && want.VFs < 1:
		return refuse("ask for 1 VF at least, or leave SR-IOV off", "%d VFs", want.VFs)
	case want.Enabled && want.VFs > int(pf.MaxVirtualFunctionSupported):
		return refuse("ask for fewer VFs, or raise NUM_OF_VFS in the firmware and reboot", "%d VFs, but the device supports %d", want.VFs,
			pf.MaxVirtualFunctionSupported)
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
	return s.read(ctx, t, "read the passthrough of "+t.Name, enabled)
}

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
		return backends.Refusedf(t.Target.Name, "switch VT-d or the AMD IOMMU on in the BIOS",
			"%s: the device cannot be passed through", what)
	}
	return s.update(ctx, t, what, to, progress, &types.HostPciPassthruConfig{Id: now.Id, PassthruEnabled: on}, enabled)
}

// activeSetter reads how many VFs a PF has now. The number cannot be set: it results from BIOS, firmware and driver at boot.
type activeSetter struct{ passthru }

func (s activeSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	n, _, err := s.count(ctx, t)
	return backends.ValueOf(n), err
}

// Set changes nothing: it fails if the number of VFs differs, and names the first cause it finds.
func (s activeSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, _ backends.Progress) error {
	what := "find the VFs of " + t.Name
	want, err := backends.Decoded[int](to, t.Target.Name, what)
	if err != nil {
		return err
	}
	n, most, err := s.count(ctx, t)
	if err != nil || n == want {
		return err
	}
	hint := "look at: esxcli system module parameters list -m DRIVER, with the driver of the pNIC, and whether another card has taken its " +
		"place in the list of VFs"
	if most < want {
		hint = "switch SR-IOV and VT-d (AMD: IOMMU) on in the BIOS (Dell: racadm set BIOS.IntegratedDevices.SriovGlobalEnable Enabled; HPE: " +
			"ilorest set Sriov=Enabled --selector=Bios.; " +
			"Supermicro: PCIe/PCI/PnP Configuration > SR-IOV Support), power-cycle the host, then run rdma-setup resume"
	}
	return backends.Permanentf(t.Target.Name, hint, "%s: %d are there and %d are wanted; the device offers %d", what, n,
		want, most)
}

// count returns the number of existing VFs and the number that the device supports.
func (s activeSetter) count(ctx context.Context, t backends.Setting) (now, most int, err error) {
	info, err := s.info(ctx, t, "count the VFs of "+t.Name)
	if err != nil {
		return 0, 0, err
	}
	pf, can := info.(*types.HostSriovInfo)
	if !can {
		return 0, 0, nil
	}
	return int(pf.NumVirtualFunction), int(pf.MaxVirtualFunctionSupported), nil
}

// passedSetter reads whether VMs can use a device now. That cannot be set: it results from enabling passthrough and a boot.
type passedSetter struct{ passthru }

func (s passedSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	if err := s.refresh(ctx, t); err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, "see whether "+t.Name+" is passed through")
	}
	info, err := s.info(ctx, t, "see whether "+t.Name+" is passed through")
	if err != nil {
		return backends.Absent, err
	}
	return backends.ValueOf(info.GetHostPciPassthruInfo().PassthruActive), nil
}

// Set changes nothing: it fails while passthrough is enabled and not active, and the error says what disables it.
func (s passedSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, _ backends.Progress) error {
	is, err := s.Read(ctx, t)
	if err != nil || is == to {
		return err
	}
	return backends.Permanentf(t.Target.Name,
		"look in vmkernel.log for \"is not a passthrough device\" and pciehp: where the host takes the device away by PCIe hot-plug (HPE "+
			"a00121002), switch "+
			"PCIe hot-plug off in the host's kernel settings as that advisory says, and reboot; else see that no driver of the host has claimed "+
			"it; then run rdma-setup resume",
		"pass %s through: it is enabled, but not active after the reboot", t.Name)
}
