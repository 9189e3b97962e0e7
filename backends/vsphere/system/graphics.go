package system

import (
	"context"
	"maps"
	"slices"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// graphicsSetter sets the use of the GPUs of a host (HostGraphicsManager in the vSphere Web Services API).
type graphicsSetter struct{ *System }

// config reads the complete configuration, because a write replaces all of it.
func (s graphicsSetter) config(ctx context.Context, t backends.Setting) (manager place.Ref, c types.HostGraphicsConfig, err error) {
	_, manager, err = s.places.Part(ctx, t.Target, func(m types.HostConfigManager) *types.ManagedObjectReference { return m.GraphicsManager })
	if err != nil {
		return manager, c, err
	}
	const path = "graphicsConfig"
	o, err := s.conn.One(ctx, manager, path)
	if err != nil {
		return manager, c, err
	}
	c, is := wire.Prop[types.HostGraphicsConfig](o, path)
	if !is {
		return manager, c, backends.Permanentf("", "", "the host has no graphics configuration")
	}
	return manager, c, nil
}

func graphicsSpec(c types.HostGraphicsConfig) backends.Value {
	spec := backends.GraphicsSpec{Default: c.HostDefaultGraphicsType, Devices: map[string]string{}}
	for _, d := range c.DeviceType {
		spec.Devices[d.DeviceId] = d.GraphicsType
	}
	return backends.ValueOf(spec)
}

// Read returns the configured type, not the active one.
func (s graphicsSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	_, c, err := s.config(ctx, t)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, "read the graphics settings")
	}
	return graphicsSpec(c), nil
}

// Set writes the types and leaves the rest of the configuration unchanged.
func (s graphicsSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	const what = "set the graphics settings"
	want, err := backends.Decoded[backends.GraphicsSpec](to, t.Target.Name, what)
	if err != nil {
		return err
	}
	return wire.Set(ctx, t.Target.Name, what, to, progress, wire.Reading(ctx, s.Read, t, to), func() error {
		manager, c, err := s.config(ctx, t)
		if err != nil {
			return err
		}
		modes := map[string]string{}
		for _, d := range c.DeviceType {
			modes[d.DeviceId] = d.VgpuMode
		}
		c.HostDefaultGraphicsType, c.DeviceType = want.Default, nil
		for _, id := range slices.Sorted(maps.Keys(want.Devices)) {
			c.DeviceType = append(c.DeviceType, types.HostGraphicsConfigDeviceType{DeviceId: id, GraphicsType: want.Devices[id],
				VgpuMode: modes[id]})
		}
		_, err = methods.UpdateGraphicsConfig(ctx, s.conn.VIM(), &types.UpdateGraphicsConfig{This: manager, Config: c})
		return err
	})
}

// activeGraphicsSetter reads whether the GPUs of a host can provide vGPUs now. That cannot be set: it results from the
// configuration and a boot.
type activeGraphicsSetter struct{ graphicsSetter }

// Read returns whether all GPUs that are not passed through are of type sharedDirect.
func (s activeGraphicsSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	const path, what = "config.graphicsInfo", "read the active graphics type"
	o, err := s.places.One(ctx, t.Target, path)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, what)
	}
	var active []string
	for _, g := range wire.Value[types.ArrayOfHostGraphicsInfo](o, path).HostGraphicsInfo {
		active = append(active, g.GraphicsType)
	}
	return backends.ValueOf(backends.ServeVGPUs(active)), nil
}

// Set changes nothing: it fails if they cannot.
func (s activeGraphicsSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, _ backends.Progress) error {
	is, err := s.Read(ctx, t)
	if err != nil || is == to {
		return err
	}
	return backends.Permanentf(t.Target.Name,
		"see that the NVIDIA vGPU Manager runs (nvidia-smi and nvidia-smi vgpu -s in the ESXi shell), then run rdma-setup resume",
		"serve vGPUs: the graphics type is set, but no GPU has the active type Shared Direct after the boot")
}
