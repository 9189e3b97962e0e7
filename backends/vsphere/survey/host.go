package survey

import (
	"cmp"
	"net"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// hostRow is a host while it is being read: names of switches and port groups are filled in after everything was read.
type hostRow struct {
	ref      place.Ref
	host     backends.Host
	keys     []string // keys of host.NICs, in order
	switches []uplinks
	vmks     []vmk
	hbas     []hba
	parent   place.Ref
	shared   map[string][]place.Ref // VMs with a vGPU, by the PCI address of the GPU

	firewall, services place.Ref // managers; unset on a disconnected host
}

// uplinks are the uplinks of a switch on a host.
type uplinks struct {
	uuid  string // of a DVS, "" for a standard vSwitch
	name  string
	pnics []string // keys of pNICs
	ens   bool

	opaque bool // managed outside vSphere: an N-VDS of NSX
}

// vmk is where a vmknic is connected: a port group of a standard switch or a port of a DVS.
type vmk struct {
	uuid, group string // DVS and key of its port group
	standard    string // name of the standard switch
	opaque      bool   // an opaque network, whose switch is not reported

	order []string // pNICs by the teaming policy of a standard port group; nil: all of the switch
}

// carries reports whether a vmknic is connected to the switch; an opaque network may be on any opaque switch of the host.
func (u uplinks) carries(v vmk) bool {
	switch {
	case u.opaque || v.opaque:
		return u.opaque && v.opaque
	case u.uuid != "":
		return v.uuid == u.uuid
	}
	return v.uuid == "" && v.standard == u.name
}

type hba struct{ name, rdma, pnic string }

func hostOf(o wire.Object) *hostRow {
	r := &hostRow{ref: o.Ref, parent: wire.Value[place.Ref](o, "parent")}
	r.firewall, r.services = wire.Value[place.Ref](o, "configManager.firewallSystem"), wire.Value[place.Ref](o, "configManager.serviceSystem")
	mb := number(o, "summary.hardware.memorySize") >> 20
	r.host = backends.Host{
		Version: text(o, "summary.config.product.version"), Build: text(o, "summary.config.product.build"),
		State:  text(o, "runtime.connectionState"),
		Vendor: strings.TrimSpace(text(o, "summary.hardware.vendor")), Model: strings.TrimSpace(text(o, "summary.hardware.model")),
		InMaintenance: flag(o, "runtime.inMaintenanceMode"), RebootRequired: flag(o, "summary.rebootRequired"),
		BootTime: moment(o, "runtime.bootTime"),
		CPUModel: strings.TrimSpace(text(o, "summary.hardware.cpuModel")), Sockets: int(number(o, "summary.hardware.numCpuPkgs")),
		Cores: int(number(o, "summary.hardware.numCpuCores")), CPUMHz: int(number(o, "summary.hardware.cpuMhz")),
		MemoryMB: mb, MemoryUsedMB: number(o, "summary.quickStats.overallMemoryUsage"),
		Hyperthreads: flag(o, "config.hyperThread.active"), Lockdown: lockdown(text(o, "config.lockdownMode")),
		GraphicsType: text(o, "config.graphicsConfig.hostDefaultGraphicsType"),
		Datastores:   references(o, "datastore"),
		NICs:         []backends.NIC{}, GPUs: []backends.GPU{},
	}
	tree := pciOf(o)
	r.host.PCI = tree.rows()
	graphics := wire.Value[types.ArrayOfHostGraphicsInfo](o, "config.graphicsInfo").HostGraphicsInfo
	if gpus := tree.gpus(graphics); gpus != nil {
		r.host.GPUs = gpus
	}
	for _, g := range graphics {
		if len(g.Vm) > 0 && r.shared == nil {
			r.shared = map[string][]place.Ref{}
		}
		if len(g.Vm) > 0 {
			r.shared[g.PciId] = g.Vm
		}
	}
	r.host.Baseboard = r.host.FindBaseboard()
	for _, d := range wire.Value[types.ArrayOfHostGraphicsConfigDeviceType](o, "config.graphicsConfig.deviceType").
		HostGraphicsConfigDeviceType {
		if r.host.GraphicsDevices == nil {
			r.host.GraphicsDevices = map[string]string{}
		}
		r.host.GraphicsDevices[d.DeviceId] = d.GraphicsType
	}
	r.host.Profiles = wire.Value[types.ArrayOfString](o, "config.sharedPassthruGpuTypes").String
	r.nics(o, tree)
	r.rdma(o)
	r.networks(o)
	r.roles(o)
	for _, a := range wire.Value[types.ArrayOfHostHostBusAdapter](o, "config.storageDevice.hostBusAdapter").HostHostBusAdapter {
		switch a := a.(type) {
		case *types.HostRdmaHba:
			r.hbas = append(r.hbas, hba{name: a.Device, rdma: a.AssociatedRdmaDevice})
		case *types.HostTcpHba:
			r.hbas = append(r.hbas, hba{name: a.Device, pnic: a.AssociatedPnic})
		}
	}
	return r
}

// lockdown converts the API's term to the usual one: lockdownNormal -> normal.
func lockdown(mode string) string {
	return strings.ToLower(strings.TrimPrefix(mode, "lockdown"))
}

func (r *hostRow) nics(o wire.Object, tree pciTree) {
	for _, p := range wire.Value[types.ArrayOfPhysicalNic](o, "config.network.pnic").PhysicalNic {
		n := backends.NIC{
			Device: p.Device, MAC: strings.ToLower(p.Mac), Driver: p.Driver, DriverVersion: p.DriverVersion, Firmware: p.FirmwareVersion,
			PCI: p.Pci, NUMA: tree.node(p.Pci), SRIOV: tree.sriov(p.Pci), DPU: p.DpuId, Roles: []string{},
		}
		if d, ok := tree.devices[p.Pci]; ok {
			n.Vendor, n.PCIDeviceID, n.Model = Hex(d.VendorId), Hex(d.DeviceId), strings.TrimSpace(d.DeviceName)
		}
		if p.LinkSpeed != nil { // absent: no link
			n.SpeedMbps, n.FullDuplex = int(p.LinkSpeed.SpeedMb), p.LinkSpeed.Duplex
		}
		for _, l := range p.ValidLinkSpecification {
			n.MaxSpeedMbps = max(n.MaxSpeedMbps, int(l.SpeedMb))
		}
		r.host.NICs = append(r.host.NICs, n)
		r.keys = append(r.keys, p.Key)
	}
}

// rdma matches RDMA devices to pNICs. The backing contains the pNIC's key ("key-vim.host.PhysicalNic-vmnic2"), not its name;
// devices of older builds without a backing are found by the pNIC's own reference.
func (r *hostRow) rdma(o wire.Object) {
	byKey := map[string]string{}
	for _, p := range wire.Value[types.ArrayOfPhysicalNic](o, "config.network.pnic").PhysicalNic {
		if p.RdmaDevice != "" {
			byKey[p.RdmaDevice] = p.Key
		}
	}
	for _, d := range wire.Value[types.ArrayOfHostRdmaDevice](o, "config.network.rdmaDevice").HostRdmaDevice {
		key := byKey[d.Key]
		if b, ok := d.Backing.(*types.HostRdmaDevicePnicBacking); ok {
			key = b.PairedUplink
		}
		dev := backends.RDMADevice{
			Name: d.Device, Driver: d.Driver, State: d.ConnectionInfo.State,
			RoCEv1: d.Capability.RoceV1Capable, RoCEv2: d.Capability.RoceV2Capable, IWARP: d.Capability.IWarpCapable,
		}
		if i := r.nicByKey(key); i >= 0 {
			dev.NIC = r.host.NICs[i].Device
		}
		r.pair([]backends.RDMADevice{dev})
	}
}

func (r *hostRow) nicByKey(key string) int {
	if i := slices.Index(r.keys, key); i >= 0 {
		return i
	}
	// Some servers return the device name although the API documents the key.
	return slices.IndexFunc(r.host.NICs, func(n backends.NIC) bool {
		return key != "" && n.Device == strings.TrimPrefix(key, "key-vim.host.PhysicalNic-")
	})
}

func (r *hostRow) networks(o wire.Object) {
	for _, s := range wire.Value[types.ArrayOfHostVirtualSwitch](o, "config.network.vswitch").HostVirtualSwitch {
		r.switches = append(r.switches, uplinks{name: s.Name, pnics: s.Pnic})
		v := backends.VSwitch{Name: s.Name, MTU: int(s.Mtu)}
		for _, key := range s.Pnic {
			if i := r.nicByKey(key); i >= 0 {
				v.PNICs = append(v.PNICs, r.host.NICs[i].Device)
			}
		}
		r.host.VSwitches = append(r.host.VSwitches, v)
	}
	for _, s := range wire.Value[types.ArrayOfHostProxySwitch](o, "config.network.proxySwitch").HostProxySwitch {
		r.switches = append(r.switches, uplinks{uuid: s.DvsUuid, name: s.DvsName, pnics: s.Pnic, ens: yes(s.EnsEnabled)})
	}
	for _, s := range wire.Value[types.ArrayOfHostOpaqueSwitch](o, "config.network.opaqueSwitch").HostOpaqueSwitch {
		pnics := slices.Clone(s.Pnic)
		for _, z := range s.PnicZone {
			pnics = append(pnics, z.PnicDevice...)
		}
		r.switches = append(r.switches, uplinks{name: cmp.Or(s.Name, s.Key), pnics: pnics, opaque: true})
	}
	home, order := map[string]string{}, map[string][]string{}
	for _, g := range wire.Value[types.ArrayOfHostPortGroup](o, "config.network.portgroup").HostPortGroup {
		home[g.Spec.Name] = g.Spec.VswitchName
		r.host.Networks = append(r.host.Networks, g.Spec.Name)
		if i := slices.IndexFunc(r.host.VSwitches, func(v backends.VSwitch) bool { return v.Name == g.Spec.VswitchName }); i >= 0 {
			r.host.VSwitches[i].PortGroups = append(r.host.VSwitches[i].PortGroups, g.Spec.Name)
		}
		// computedPolicy includes what the port group inherits from its switch (HostPortGroup in the vSphere Web Services API).
		if t := g.ComputedPolicy.NicTeaming; t != nil && t.NicOrder != nil {
			order[g.Spec.Name] = slices.Concat(t.NicOrder.ActiveNic, t.NicOrder.StandbyNic)
		}
	}
	for _, v := range wire.Value[types.ArrayOfHostVirtualNic](o, "config.network.vnic").HostVirtualNic {
		k := backends.VMKernelNIC{
			Device: v.Device, MAC: strings.ToLower(v.Spec.Mac), MTU: int(v.Spec.Mtu), NetStack: v.Spec.NetStackInstanceKey, Roles: []string{},
		}
		if k.MTU == 0 {
			k.MTU = 1500 // unset is the default
		}
		if ip := v.Spec.Ip; ip != nil {
			k.IP, k.PrefixLen, k.DHCP = ip.IpAddress, PrefixLen(ip.SubnetMask), ip.Dhcp
		}
		var at vmk
		if dv := v.Spec.DistributedVirtualPort; dv != nil {
			at = vmk{uuid: dv.SwitchUuid, group: dv.PortgroupKey}
		} else if v.Spec.OpaqueNetwork != nil {
			at = vmk{opaque: true}
		} else {
			k.PortGroup = v.Portgroup
			if k.PortGroup == "" {
				k.PortGroup = v.Spec.Portgroup
			}
			at = vmk{standard: home[k.PortGroup], order: order[k.PortGroup]}
			k.Switch = at.standard
		}
		r.host.VMKs = append(r.host.VMKs, k)
		r.vmks = append(r.vmks, at)
	}
}

// PrefixLen returns the length of an IPv4 netmask, 0 if it is none.
func PrefixLen(mask string) int {
	n, _ := net.IPMask(net.ParseIP(mask).To4()).Size()
	return n
}

// roles reads which services are enabled on each vmknic. A selection names a candidate by key
// ("vmotion.key-vim.host.VirtualNic-vmk1").
func (r *hostRow) roles(o wire.Object) {
	for _, c := range wire.Value[types.ArrayOfVirtualNicManagerNetConfig](o, "config.virtualNicManagerInfo.netConfig").
		VirtualNicManagerNetConfig {
		device := map[string]string{}
		for _, v := range c.CandidateVnic {
			device[v.Key] = v.Device
		}
		for _, key := range c.SelectedVnic {
			dev, ok := device[key]
			if !ok {
				dev = key[strings.LastIndexByte(key, '-')+1:]
			}
			r.role(dev, c.NicType)
		}
	}
	for i := range r.host.VMKs {
		// The TCP/IP stack of a vmknic is a role too: no other traffic may use these stacks.
		switch r.host.VMKs[i].NetStack {
		case "vmotion":
			r.role(r.host.VMKs[i].Device, "vmotion")
		case "vSphereProvisioning":
			r.role(r.host.VMKs[i].Device, "vSphereProvisioning")
		}
	}
}

func (r *hostRow) role(device, role string) {
	if k := r.host.VMK(device); k != nil && !slices.Contains(k.Roles, role) {
		k.Roles = append(k.Roles, role)
		slices.Sort(k.Roles)
	}
}
