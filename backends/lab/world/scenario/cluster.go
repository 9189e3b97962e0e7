package scenario

import (
	"fmt"
	"net"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// clustered returns scenarios in which the cluster, or a workload on its hosts, prevents a reboot. All of them are based on
// sriov-half, in which each host needs one reboot.
func clustered() []Scenario {
	but := func(f func(*world.State)) func(*world.State) {
		return func(s *world.State) {
			half(s)
			f(s)
		}
	}
	return []Scenario{
		{Name: "sriov-vcenter", Text: "sriov-half, the first host runs vCenter itself", Apply: but(vcenterWithin)},
		{Name: "sriov-vcenter-manual", Text: "sriov-half, the first host runs vCenter itself and DRS is manual, so it is not moved",
			Apply: but(func(s *world.State) {
				vcenterWithin(s)
				s.Services.DRS = "manual"
			})},
		{Name: "sriov-ourselves", Text: "sriov-half, the first host runs the machine of the lab, and DRS is manual",
			Apply: but(func(s *world.State) {
				s.Services.DRS = "manual"
				if v := bystander(s, "jump-01"); v != nil {
					v.Guest.Others = []world.GuestNIC{{Name: "br0", Addrs: ownAddresses(), MTU: 1500}}
				}
			})},
		{Name: "sriov-drs-manual", Text: "sriov-half, DRS is manual and another owner's VM runs on the first host",
			Apply: but(func(s *world.State) {
				s.Services.DRS = "manual"
				bystander(s, "billing-01")
			})},
		{Name: "sriov-drs-local", Text: "sriov-drs-manual, and a disk of that VM is on a local datastore of its host",
			Apply: but(func(s *world.State) {
				s.Services.DRS = "manual"
				if v := bystander(s, "billing-01"); v != nil {
					v.Local = true
				}
			})},
		{Name: "sriov-drs-sharing", Text: "sriov-drs-manual, and the disks of that VM are on a SCSI bus that it shares",
			Apply: but(func(s *world.State) {
				s.Services.DRS = "manual"
				if v := bystander(s, "billing-01"); v != nil {
					v.Sharing = "physicalSharing"
				}
			})},
		{Name: "sriov-vcls-eam", Text: "sriov-half, with vSphere Cluster Services VMs of ESX Agent Manager (before 8.0 U3)",
			Apply: but(func(s *world.State) {
				clusterServices(s, "com.vmware.vim.eam")
			})},
		{Name: "sriov-vcls", Text: "sriov-half, with embedded vSphere Cluster Services VMs (since 8.0 U3)",
			Apply: but(func(s *world.State) { clusterServices(s, "") })},
		{Name: "sriov-ha", Text: "sriov-half, HA reserves memory for the failure of all hosts but one", Apply: but(func(s *world.State) {
			s.Services.HA, s.Services.Failover = true, max(1, len(s.Hosts)-1)
		})},
		{Name: "sriov-ha-agent", Text: "sriov-half, HA is on and its agent does not start on the first host after a reboot",
			Apply: but(func(s *world.State) {
				s.Services.HA = true
				s.Hosts[0].HALater = "initializationError"
			})},
		{Name: "sriov-ha-full", Text: "sriov-half, HA reserves memory for one failed host, and the memory of the others is nearly full",
			Apply: but(func(s *world.State) {
				s.Services.HA, s.Services.Failover = true, 1
				if v := bystander(s, "memory-01"); v != nil {
					v.MemoryMB = int64(len(s.Hosts)-2)*s.Hosts[0].MemoryMB + 1024
					v.Reserved = v.MemoryMB
				}
			})},
		{Name: "sriov-vsan", Text: "sriov-half with vSAN over another vendor's NIC: it resynchronizes for a while after each reboot",
			Apply: but(func(s *world.State) {
				s.Services.VSAN, s.Lossless = true, "none"
				for _, h := range s.Hosts {
					carryVSAN(h, addIntel(h))
				}
			})},
		{Name: "sriov-vsan-rdma", Text: "sriov-half, the RDMA NIC of each host carries vSAN over RDMA", Apply: but(func(s *world.State) {
			s.Services.VSAN = true
			for _, h := range s.Hosts {
				carryVSAN(h, h.PNIC("vmnic2"))
			}
		})},
		{Name: "sriov-vsan-pause", Text: "sriov-half, vSAN runs over the management card, whose global pause PFC would disable",
			Apply: but(func(s *world.State) {
				s.Services.VSAN = true
				for _, h := range s.Hosts {
					h.VMKs = append(h.VMKs, vsanVMK(h, "vSwitch0"))
				}
			})},
	}
}

// bystander makes the first VM a VM of another owner and returns it, or returns nil if there are no VMs.
func bystander(s *world.State, name string) *world.VM {
	if len(s.VMs) == 0 {
		return nil
	}
	v := s.VMs[0]
	v.Name, v.Path, v.Guest.Hostname = name, "/"+s.Datacenter+"/vm/"+name, name
	s.Strangers = append(s.Strangers, name)
	return v
}

// clusterServices runs a vSphere Cluster Services VM on each of two hosts. Source: Broadcom KB 370222: before 8.0 U3, ESX Agent
// Manager manages up to three of them; since 8.0 U3, two are embedded and have no config.managedBy.
func clusterServices(s *world.State, manager string) {
	for i, h := range s.Hosts[:min(2, len(s.Hosts))] {
		v := newVM(s, len(s.VMs), len(s.VMs)+1, h.BootTime)
		v.Name = fmt.Sprintf("vCLS-%s", world.UUID("vcls", i))
		v.Path, v.Host, v.MemoryMB, v.CPUs, v.Guest.OS, v.Guest.Hostname = "/"+s.Datacenter+"/vm/"+v.Name, h.Name, 128, 1, "other", v.Name
		v.Manager, v.Service, v.Adapters, v.Guest.Up = manager, true, nil, false
		s.VMs = append(s.VMs, v)
		s.Strangers = append(s.Strangers, v.Name)
	}
}

func vcenterWithin(s *world.State) {
	if v := bystander(s, "vcenter-01"); v != nil {
		v.Product = "VMware vCenter Server"
	}
}

// ownAddresses returns the addresses of the machine on which the lab runs.
func ownAddresses() []string {
	var list []string
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addrs {
		if n, is := a.(*net.IPNet); is && !n.IP.IsLoopback() {
			list = append(list, n.String())
		}
	}
	return list
}

// addIntel adds an adapter that is not affected by nmlx5 parameters.
func addIntel(h *world.Host) *world.PNIC {
	n := len(h.PNICs)
	p := &world.PNIC{
		Device: fmt.Sprintf("vmnic%d", n), MAC: fmt.Sprintf("b4:96:91:%02x:%02x:%02x", h.Index>>8&0xff, h.Index&0xff, n), PCI: "0000:5e:00.0",
		Driver: "icen", DriverVersion: "1.14.2.0-1OEM.800.1.0.20613240", Firmware: "4.40 0x8001c967 1.3534.0",
		Model: "Ethernet Controller E810-XXV for SFP", Vendor: "Intel(R)", SpeedMbps: 25000, MaxSpeedMbps: 25000, LinkUp: true, MTU: 1500,
	}
	h.PNICs = append(h.PNICs, p)
	h.PCI = append(h.PCI, &world.PCIDevice{Address: p.PCI, Parent: "0000:ae:00.0", Class: 0x0200, Vendor: 0x8086, Device: 0x159b,
		SubVendor:  0x8086,
		VendorName: "Intel Corporation", DeviceName: p.Model, PassthruCapable: true})
	return p
}

// carryVSAN makes an adapter the uplink of a switch for vSAN.
func carryVSAN(h *world.Host, p *world.PNIC) {
	h.VSwitch = append(h.VSwitch, &world.VSwitch{Name: "vSwitch1", MTU: 9000, Uplinks: []string{p.Device}, PortGroups: []string{"vSAN"}})
	k := vsanVMK(h, "vSwitch1")
	k.MAC, k.PortGroup, k.MTU = p.MAC, "vSAN", 9000
	h.VMKs = append(h.VMKs, k)
}

func vsanVMK(h *world.Host, on string) *world.VMK {
	return &world.VMK{Device: fmt.Sprintf("vmk%d", len(h.VMKs)), MAC: fmt.Sprintf("00:50:56:61:%02x:%02x", h.Index>>8&0xff, h.Index&0xff),
		IP: fmt.Sprintf("10.12.%d.%d", h.Index/200, 11+h.Index%200), Prefix: 16, MTU: 1500,
		VSwitch: on, PortGroup: "Management Network", NetStack: "defaultTcpipStack", Roles: []string{"vsan"}}
}
