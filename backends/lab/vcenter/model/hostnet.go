package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// pnicKey and the functions after it return the keys by which the parts of a host's network refer to each other.
func pnicKey(device string) string { return "key-vim.host.PhysicalNic-" + device }
func rdmaKey(device string) string { return "key-vim.host.RdmaDevice-" + device }
func vnicKey(device string) string { return "key-vim.host.VirtualNic-" + device }

func pnicKeys(devices []string) []string {
	var keys []string
	for _, d := range devices {
		keys = append(keys, pnicKey(d))
	}
	return keys
}

func network(s *world.State, h *world.Host) *types.HostNetworkInfo {
	info := &types.HostNetworkInfo{
		NetStackInstance: []types.HostNetStackInstance{{Key: "defaultTcpipStack", Name: "defaultTcpipStack"}},
		DnsConfig:        &types.HostDnsConfig{HostName: h.Name, DomainName: "lab.example"},
		IpRouteConfig:    &types.HostIpRouteConfig{DefaultGateway: "10.10.255.254"},
	}
	for _, p := range h.PNICs {
		info.Pnic = append(info.Pnic, pnic(h, p))
		if p.RDMA != nil && tellsRDMA(h) {
			info.RdmaDevice = append(info.RdmaDevice, rdmaDevice(s, h, p))
		}
	}
	for _, v := range h.VSwitch {
		info.Vswitch = append(info.Vswitch, vswitch(v))
		for _, name := range v.PortGroups {
			info.Portgroup = append(info.Portgroup, types.HostPortGroup{Key: "key-vim.host.PortGroup-" + name,
				Vswitch: "key-vim.host.VirtualSwitch-" + v.Name, Spec: types.HostPortGroupSpec{Name: name, VswitchName: v.Name}})
		}
	}
	for _, o := range h.Opaque {
		status := "up"
		if h.HasProblem(world.SwitchDown) {
			status = "down"
		}
		info.OpaqueSwitch = append(info.OpaqueSwitch, types.HostOpaqueSwitch{Key: o.ID, Name: o.Name, Pnic: pnicKeys(o.Uplinks), Status: status})
	}
	for n, d := range s.Switches {
		if m := d.Member(h.Name); m != nil {
			info.ProxySwitch = append(info.ProxySwitch, proxySwitch(n, d, m))
		}
	}
	for _, v := range h.VMKs {
		info.Vnic = append(info.Vnic, vnic(s, v, vnicKey(v.Device)))
	}
	return info
}

// networkConfig returns the current values of the network settings that can be changed (API reference, HostNetworkSystem.networkConfig).
func networkConfig(info *types.HostNetworkInfo) *types.HostNetworkConfig {
	c := &types.HostNetworkConfig{DnsConfig: info.DnsConfig, IpRouteConfig: info.IpRouteConfig}
	for _, v := range info.Vswitch {
		c.Vswitch = append(c.Vswitch, types.HostVirtualSwitchConfig{Name: v.Name, Spec: &v.Spec})
	}
	for _, v := range info.ProxySwitch {
		c.ProxySwitch = append(c.ProxySwitch, types.HostProxySwitchConfig{Uuid: v.DvsUuid, Spec: &v.Spec})
	}
	for _, g := range info.Portgroup {
		c.Portgroup = append(c.Portgroup, types.HostPortGroupConfig{Spec: &g.Spec})
	}
	for _, p := range info.Pnic {
		c.Pnic = append(c.Pnic, types.PhysicalNicConfig{Device: p.Device, Spec: p.Spec})
	}
	for _, v := range info.Vnic {
		c.Vnic = append(c.Vnic, types.HostVirtualNicConfig{Device: v.Device, Portgroup: v.Portgroup, Spec: &v.Spec})
	}
	return c
}

// tellsRDMA reports whether the network info of a host contains RDMA devices (vSphere Web Services API reference, HostRdmaDevice
// and PhysicalNic.rdmaDevice, "Since vSphere API 7.0"). On an older host, with any vCenter version, only esxcli shows them.
func tellsRDMA(h *world.Host) bool { return !world.VersionLess(h.Version, "7.0.0") }

func pnic(h *world.Host, p *world.PNIC) types.PhysicalNic {
	nic := types.PhysicalNic{
		Key: pnicKey(p.Device), Device: p.Device, Pci: p.PCI, Driver: p.Driver,
		Mac: p.MAC, AutoNegotiateSupported: types.NewBool(true), ResourcePoolSchedulerAllowed: types.NewBool(true),
		Spec: types.PhysicalNicSpec{Ip: &types.HostIpConfig{}, EnableEnhancedNetworkingStack: types.NewBool(false)},
	}
	if !world.VersionLess(h.Version, "8.0.0") { // since vSphere API 8.0.0.1; on an older host only esxcli shows them
		nic.DriverVersion, nic.FirmwareVersion = p.DriverVersion, p.Firmware
	}
	for _, mbps := range []int{10000, 25000, 40000, 50000, 100000, p.MaxSpeedMbps} {
		listed := slices.ContainsFunc(nic.ValidLinkSpecification, func(l types.PhysicalNicLinkInfo) bool { return int(l.SpeedMb) == mbps })
		if mbps <= p.MaxSpeedMbps && mbps > 0 && !listed {
			nic.ValidLinkSpecification = append(nic.ValidLinkSpecification, types.PhysicalNicLinkInfo{SpeedMb: int32(mbps), Duplex: true})
		}
	}
	if p.LinkUp {
		nic.LinkSpeed = &types.PhysicalNicLinkInfo{SpeedMb: int32(p.SpeedMbps), Duplex: true}
	}
	if p.RDMA != nil && tellsRDMA(h) {
		nic.RdmaDevice = rdmaKey(p.RDMA.Name)
	}
	return nic
}

func rdmaDevice(s *world.State, h *world.Host, p *world.PNIC) types.HostRdmaDevice {
	dev := types.HostRdmaDevice{
		Key: rdmaKey(p.RDMA.Name), Device: p.RDMA.Name, Driver: p.RDMA.Driver, Description: p.Model,
		Backing:        &types.HostRdmaDevicePnicBacking{PairedUplink: pnicKey(p.Device)},
		Capability:     types.HostRdmaDeviceCapability{RoceV1Capable: p.RDMA.RoCEv1, RoceV2Capable: p.RDMA.RoCEv2, IWarpCapable: p.RDMA.IWARP},
		ConnectionInfo: types.HostRdmaDeviceConnectionInfo{State: "down", Mtu: int32(world.RDMAMTU(s.MTU(h, p)))},
	}
	if p.LinkUp {
		dev.ConnectionInfo.State, dev.ConnectionInfo.SpeedInMbps = "active", int32(p.SpeedMbps)
	}
	return dev
}

func vswitch(v *world.VSwitch) types.HostVirtualSwitch {
	var groups []string
	for _, name := range v.PortGroups {
		groups = append(groups, "key-vim.host.PortGroup-"+name)
	}
	return types.HostVirtualSwitch{
		Name: v.Name, Key: "key-vim.host.VirtualSwitch-" + v.Name, NumPorts: 1536, NumPortsAvailable: 1530, Mtu: int32(v.MTU),
		Portgroup: groups, Pnic: pnicKeys(v.Uplinks),
		Spec: types.HostVirtualSwitchSpec{NumPorts: 128, Mtu: int32(v.MTU), Bridge: &types.HostVirtualSwitchBondBridge{NicDevice: v.Uplinks}},
	}
}

func proxySwitch(n int, d *world.DVS, m *world.Member) types.HostProxySwitch {
	sw := types.HostProxySwitch{
		DvsUuid: d.UUID, DvsName: d.Shown(), Key: fmt.Sprintf("key-vim.host.HostProxySwitch-%s", d.Shown()), NumPorts: 9216, ConfigNumPorts: 512,
		NumPortsAvailable: 9200, Mtu: int32(d.MTU), Pnic: pnicKeys(m.PNICs), EnsEnabled: types.NewBool(m.ENS),
		EnsInterruptEnabled: types.NewBool(m.Interrupt),
		Spec:                types.HostProxySwitchSpec{Backing: memberBacking(n, d, m)},
	}
	for i, uplink := range d.Uplinks {
		sw.UplinkPort = append(sw.UplinkPort, types.KeyValue{Key: fmt.Sprint(uplinkPort(n, m, i)), Value: uplink})
	}
	return sw
}

// uplinkPort returns the key of a host's uplink port. Uplink ports have their own range, separate from those of port groups.
func uplinkPort(n int, m *world.Member, i int) int {
	sum := 0
	for _, c := range m.Host {
		sum = (sum*31 + int(c)) % 9973
	}
	return 100000*(n+1) + 10*sum + i
}

// An UplinkPort is a port of the uplink port group. Each host of the DVS has one for each uplink.
type UplinkPort struct {
	Key, Name string
	Host      types.ManagedObjectReference
	Device    string // pNIC that is connected to it; "": none
}

// UplinkPorts returns the ports of the uplink port group (API reference, HostMember.uplinkPortKey: the uplink ports of a host, in
// the order of the names of DVSNameArrayUplinkPortPolicy).
func UplinkPorts(s *world.State, d *world.DVS) []UplinkPort {
	var list []UplinkPort
	for n, m := range d.Members {
		for i, name := range d.Uplinks {
			p := UplinkPort{Key: strconv.Itoa(uplinkPort(n, m, i)), Name: name, Host: HostRef(s.Host(m.Host))}
			if i < len(m.PNICs) {
				p.Device = m.PNICs[i]
			}
			list = append(list, p)
		}
	}
	return list
}

func memberBacking(n int, d *world.DVS, m *world.Member) *types.DistributedVirtualSwitchHostMemberPnicBacking {
	b := &types.DistributedVirtualSwitchHostMemberPnicBacking{}
	for i, device := range m.PNICs {
		spec := types.DistributedVirtualSwitchHostMemberPnicSpec{PnicDevice: device, UplinkPortKey: strconv.Itoa(uplinkPort(n, m, i)),
			ConnectionCookie: 1}
		if up := d.UplinkGroup(); up != nil {
			spec.UplinkPortgroupKey = up.Key
		}
		b.PnicSpec = append(b.PnicSpec, spec)
	}
	return b
}

func vnic(s *world.State, v *world.VMK, key string) types.HostVirtualNic {
	nic := types.HostVirtualNic{
		Device: v.Device, Key: key, Portgroup: v.PortGroup,
		Spec: types.HostVirtualNicSpec{
			Ip: &types.HostIpConfig{Dhcp: v.DHCP, IpAddress: v.IP, SubnetMask: v.Netmask()}, Mac: v.MAC, Mtu: int32(v.MTU),
			TsoEnabled:          types.NewBool(true),
			NetStackInstanceKey: v.NetStack, Portgroup: v.PortGroup,
		},
	}
	if d := s.Switch(v.DVS); d != nil {
		port := &types.DistributedVirtualSwitchPortConnection{SwitchUuid: d.UUID}
		if g := d.PortGroup(v.PortGroup); g != nil {
			port.PortgroupKey = g.Key
		}
		nic.Portgroup, nic.Spec.Portgroup, nic.Spec.DistributedVirtualPort = "", "", port
	}
	return nic
}

var nicTypes = []string{"management", "vmotion", "faultToleranceLogging", "vSphereReplication", "vSphereReplicationNFC", "vsan",
	"vsanWitness", "vsanExternal", "vSphereProvisioning", "vSphereBackupNFC", "ptp", "nvmeTcp", "nvmeRdma"}

// netConfig returns the vmkernel adapters that are enabled for each type of traffic.
func netConfig(s *world.State, h *world.Host) []types.VirtualNicManagerNetConfig {
	var list []types.VirtualNicManagerNetConfig
	for _, kind := range nicTypes {
		c := types.VirtualNicManagerNetConfig{NicType: kind, MultiSelectAllowed: true}
		for _, v := range h.VMKs {
			key := kind + "." + vnicKey(v.Device)
			c.CandidateVnic = append(c.CandidateVnic, vnic(s, v, key))
			if slices.ContainsFunc(v.Roles, func(r string) bool { return strings.EqualFold(r, kind) }) {
				c.SelectedVnic = append(c.SelectedVnic, key)
			}
		}
		list = append(list, c)
	}
	return list
}
