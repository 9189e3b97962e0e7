package setting

import (
	"context"
	"net"
	"net/netip"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// vmknicSetter creates and removes vmknics (HostNetworkSystem.AddVirtualNic and RemoveVirtualNic in the vSphere Web Services API).
type vmknicSetter struct{ *site }

// find returns the vmknic of a host that has the address; nil if there is none.
func (s vmknicSetter) find(ctx context.Context, t backends.Setting) (*types.HostVirtualNic, error) {
	const path = "config.network.vnic"
	o, err := s.places.One(ctx, t.Target, path)
	if err != nil {
		return nil, err
	}
	for _, k := range wire.Value[types.ArrayOfHostVirtualNic](o, path).HostVirtualNic {
		if k.Spec.Ip != nil && k.Spec.Ip.IpAddress == t.Name {
			return &k, nil
		}
	}
	return nil, nil
}

// Read returns the spec of the vmknic with an address; Absent if the host has none.
func (s vmknicSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	v, _, err := s.read(ctx, t)
	return v, wire.Explain(err, t.Target.Name, "read the vmknic with the address "+t.Name)
}

func (s vmknicSetter) read(ctx context.Context, t backends.Setting) (backends.Value, *types.HostVirtualNic, error) {
	k, err := s.find(ctx, t)
	if err != nil || k == nil {
		return backends.Absent, nil, err
	}
	spec := backends.VMKSpec{PortGroup: k.Portgroup, PrefixLen: survey.PrefixLen(k.Spec.Ip.SubnetMask), MTU: int(k.Spec.Mtu)}
	if port := k.Spec.DistributedVirtualPort; port != nil {
		spec.PortGroup = s.places.Name(place.Ref{Type: "DistributedVirtualPortgroup", Value: port.PortgroupKey})
	}
	return backends.ValueOf(spec), k, nil
}

// Set creates the vmknic, or removes it for Absent. A different vmknic with that address belongs to someone else and is not
// changed.
func (s vmknicSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	what := "create a vmknic with the address " + t.Name
	if to.IsAbsent() {
		what = "remove the vmknic with the address " + t.Name
	}
	return wire.Set(ctx, t.Target.Name, what, to, progress, wire.Reading(ctx, s.Read, t, to), func() error {
		_, system, err := s.places.Part(ctx, t.Target, func(m types.HostConfigManager) *types.ManagedObjectReference { return m.NetworkSystem })
		if err != nil {
			return err
		}
		is, k, err := s.read(ctx, t)
		switch {
		case err != nil:
			return err
		case to.IsAbsent() && k == nil:
			return nil
		case to.IsAbsent():
			_, err = methods.RemoveVirtualNic(ctx, s.conn.VIM(), &types.RemoveVirtualNic{This: system, Device: k.Device})
			return err
		case k != nil:
			return backends.Conflictf("", "choose another address, or remove "+k.Device, "%s has this address and is %s",
				k.Device, is)
		}
		return s.add(ctx, system, t, to)
	})
}

func (s vmknicSetter) add(ctx context.Context, system place.Ref, t backends.Setting, to backends.Value) error {
	want, err := backends.Decoded[backends.VMKSpec](to, t.Target.Name, "create the vmknic")
	if err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(t.Name); err != nil || !ip.Is4() || want.PrefixLen < 1 || want.PrefixLen > 32 {
		return backends.Permanentf("", "", "%s/%d is not an IPv4 address", t.Name, want.PrefixLen)
	}
	group, err := s.places.One(ctx, backends.PortGroupRef(want.PortGroup), "config.distributedVirtualSwitch")
	if err != nil {
		return err
	}
	dvs, err := s.conn.One(ctx, wire.Value[types.ManagedObjectReference](group, "config.distributedVirtualSwitch"), "uuid")
	if err != nil {
		return err
	}
	_, err = methods.AddVirtualNic(ctx, s.conn.VIM(), &types.AddVirtualNic{This: system, Nic: types.HostVirtualNicSpec{
		Ip: &types.HostIpConfig{IpAddress: t.Name, SubnetMask: net.IP(net.CIDRMask(want.PrefixLen, 32)).String()},
		DistributedVirtualPort: &types.DistributedVirtualSwitchPortConnection{SwitchUuid: wire.Value[string](dvs, "uuid"),
			PortgroupKey: group.Ref.Value},
		Mtu: int32(want.MTU),
	}})
	return err
}
