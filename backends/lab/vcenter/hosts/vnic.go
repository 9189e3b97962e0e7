package hosts

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// AddVirtualNic adds a vmkernel adapter to a port group of a standard switch, or of a distributed switch that the host is a
// member of. It fails as documented in "vSphere Web Services API, HostNetworkSystem.AddVirtualNic", and as the module
// vmware_vmkernel of Ansible's community.vmware expects: AlreadyExists if the standard port group already has an adapter,
// InvalidArgument if the address, mask or MTU is invalid, NotFound if the port group does not exist. It is unverified that a
// real host refuses an address that it already has.
func (m network) AddVirtualNic(_ *simulator.Context, req *types.AddVirtualNic) soap.HasFault {
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	device := ""
	err = m.f.World.Update(func(s *world.State) ([]world.Event, error) {
		h := s.Host(host)
		v, err := newVMK(s, h, req)
		if err != nil {
			return nil, err
		}
		device = v.Device
		h.VMKs = append(h.VMKs, v)
		return []world.Event{{What: world.HostNetwork, Host: host, Detail: device}}, nil
	})
	return frame.Answer(types.AddVirtualNicResponse{Returnval: device}, err)
}

func newVMK(s *world.State, h *world.Host, req *types.AddVirtualNic) (*world.VMK, error) {
	v := &world.VMK{MTU: 1500, NetStack: "defaultTcpipStack", PortGroup: req.Portgroup}
	if err := address(h, v, req.Nic.Ip); err != nil {
		return nil, err
	}
	if mtu := int(req.Nic.Mtu); mtu != 0 {
		if mtu < model.MinMTU || mtu > model.MaxMTU {
			return nil, frame.BadArgument("nic.mtu")
		}
		v.MTU = mtu
	}
	if stack := req.Nic.NetStackInstanceKey; stack != "" && stack != v.NetStack {
		return nil, frame.BadArgument("nic.netStackInstanceKey")
	}
	if err := connect(s, h, v, req); err != nil {
		return nil, err
	}
	for n := 0; v.Device == ""; n++ {
		if name := fmt.Sprintf("vmk%d", n); h.VMK(name) == nil {
			v.Device = name
		}
	}
	id := s.NextID()
	v.MAC = fmt.Sprintf("00:50:56:62:%02x:%02x", id>>8&0xff, id&0xff)
	return v, nil
}

// address sets a static address or DHCP. The lab does not model a DHCP server.
func address(h *world.Host, v *world.VMK, ip *types.HostIpConfig) error {
	if ip == nil {
		return frame.BadArgument("nic.ip")
	}
	if v.DHCP = ip.Dhcp; v.DHCP {
		return nil
	}
	addr, err := netip.ParseAddr(ip.IpAddress)
	if err != nil || !addr.Is4() || addr.IsMulticast() || addr.IsUnspecified() {
		return frame.BadArgument("nic.ip.ipAddress")
	}
	mask, err := netip.ParseAddr(ip.SubnetMask)
	if err != nil || !mask.Is4() {
		return frame.BadArgument("nic.ip.subnetMask")
	}
	b := mask.As4()
	m := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	if v.Prefix = bits.LeadingZeros32(^m); v.Prefix == 0 || m<<v.Prefix != 0 {
		return frame.BadArgument("nic.ip.subnetMask")
	}
	v.IP = addr.String()
	if slices.ContainsFunc(h.VMKs, func(k *world.VMK) bool { return k.IP == v.IP }) {
		return frame.BadArgument("nic.ip.ipAddress")
	}
	return nil
}

// connect finds the port group: by name on a standard switch, by key on a distributed switch. Exactly one of the two must be
// set.
func connect(s *world.State, h *world.Host, v *world.VMK, req *types.AddVirtualNic) error {
	port := req.Nic.DistributedVirtualPort
	if (port == nil) == (req.Portgroup == "") {
		return frame.BadArgument("portgroup")
	}
	if port == nil {
		i := slices.IndexFunc(h.VSwitch, func(sw *world.VSwitch) bool { return slices.Contains(sw.PortGroups, req.Portgroup) })
		if i < 0 {
			return frame.Refuse(&types.NotFound{})
		}
		v.VSwitch = h.VSwitch[i].Name
		if slices.ContainsFunc(h.VMKs, func(k *world.VMK) bool { return k.VSwitch == v.VSwitch && k.PortGroup == v.PortGroup }) {
			return frame.Refuse(&types.AlreadyExists{Name: req.Portgroup})
		}
		return nil
	}
	for _, d := range s.Switches {
		if d.UUID != port.SwitchUuid || d.Member(h.Name) == nil {
			continue
		}
		for _, g := range d.PortGroups {
			if g.Key == port.PortgroupKey && !g.Uplink {
				v.DVS, v.PortGroup = d.Name, g.Name
				return nil
			}
		}
	}
	return frame.Refuse(&types.NotFound{})
}

// RemoveVirtualNic removes a vmkernel adapter. The adapter by which vCenter manages the host is refused. On a real host, network
// rollback would restore it ("vSphere Networking"); the lab refuses immediately, as the Host Client does.
func (m network) RemoveVirtualNic(_ *simulator.Context, req *types.RemoveVirtualNic) soap.HasFault {
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	err = m.f.World.Update(func(s *world.State) ([]world.Event, error) {
		h := s.Host(host)
		v := h.VMK(req.Device)
		if v == nil {
			return nil, frame.Refuse(&types.NotFound{})
		}
		if v.IP == h.Address {
			return nil, frame.Refuse(&types.HostConfigFault{}, "the management address of the host cannot be removed")
		}
		h.VMKs = slices.DeleteFunc(h.VMKs, func(k *world.VMK) bool { return k == v })
		return []world.Event{{What: world.HostNetwork, Host: host, Detail: req.Device}}, nil
	})
	return frame.Answer(types.RemoveVirtualNicResponse{}, err)
}
