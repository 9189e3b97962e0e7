package vms

import (
	"fmt"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type browser struct{ base }

// highest returns the newest virtual hardware version of one host, or of all hosts that are up if host is nil.
func (m browser) highest(host *types.ManagedObjectReference) (int, error) {
	best := 0
	m.f.World.View(func(s *world.State) {
		for _, h := range s.Hosts {
			if host == nil && h.Managed() || host != nil && model.HostRef(h) == *host {
				best = max(best, maxHardware(h))
			}
		}
	})
	if best == 0 {
		if host != nil {
			return 0, frame.Gone(*host)
		}
		return 0, frame.Refuse(&types.HostNotConnected{})
	}
	return best, nil
}

// QueryConfigOptionEx describes one virtual hardware version, by default the newest. If guest ids are specified, only those are
// listed, or all if none of them is known (EnvironmentBrowser.QueryConfigOptionEx, parameter spec).
func (m browser) QueryConfigOptionEx(_ *simulator.Context, req *types.QueryConfigOptionEx) soap.HasFault {
	spec := req.Spec
	if spec == nil {
		spec = &types.EnvironmentBrowserConfigOptionQuerySpec{}
	}
	option, err := m.option(spec.Key, spec.Host)
	if option != nil {
		named := slices.DeleteFunc(slices.Clone(option.GuestOSDescriptor),
			func(d types.GuestOsDescriptor) bool { return !slices.Contains(spec.GuestId, d.Id) })
		if len(named) > 0 {
			option.GuestOSDescriptor = named
		}
	}
	return frame.Answer(types.QueryConfigOptionExResponse{Returnval: option}, err)
}

// option returns the options of a virtual hardware version, or nil if no host supports the version.
func (m browser) option(key string, host *types.ManagedObjectReference) (*types.VirtualMachineConfigOption, error) {
	best, err := m.highest(host)
	if err != nil {
		return nil, err
	}
	version := best
	if key != "" {
		if n, err := fmt.Sscanf(key, "vmx-%d", &version); err != nil || n != 1 || version > best || version < 4 {
			return nil, nil
		}
	}
	var guests []types.GuestOsDescriptor
	for _, id := range []string{"ubuntu64Guest", "rhel8_64Guest", "rhel9_64Guest", "centos8_64Guest", "centos9_64Guest", "otherLinux64Guest"} {
		guests = append(guests, types.GuestOsDescriptor{Id: id, Family: "linuxGuest", FullName: id, SupportedMaxCPUs: 768,
			RecommendedFirmware:   "efi",
			SupportedEthernetCard: cardsOf(id, version)})
	}
	return &types.VirtualMachineConfigOption{Version: hardware(version), Description: fmt.Sprintf("ESXi virtual machine version %d", version),
		GuestOSDescriptor: guests, HardwareOptions: types.VirtualHardwareOption{HwVersion: int32(version)}}, nil
}

// cardsOf lists the network adapter types that a guest system supports. Specific distributions support SR-IOV and, from hardware
// version 13 on, PVRDMA; "Other Linux" supports neither.
func cardsOf(id string, version int) []string {
	if id == "otherLinux64Guest" {
		return []string{"VirtualE1000", "VirtualE1000e", "VirtualPCNet32", "VirtualVmxnet3"}
	}
	cards := []string{"VirtualE1000e", "VirtualSriovEthernetCard", "VirtualVmxnet3"}
	if version >= 13 {
		cards = append(cards, "VirtualVmxnet3Vrdma")
	}
	return cards
}

func hardware(n int) string { return fmt.Sprintf("vmx-%02d", n) }

// QueryConfigTarget lists the networks and devices that a VM on a host can use. Only active passthrough devices and VFs are
// included.
func (m browser) QueryConfigTarget(_ *simulator.Context, req *types.QueryConfigTarget) soap.HasFault {
	target := &types.ConfigTarget{MaxCpusPerHost: 96}
	m.f.World.View(func(s *world.State) {
		network := model.VMNetwork
		for _, h := range s.Hosts {
			if req.Host != nil && model.HostRef(h) == *req.Host {
				network = model.NetworkRef(s.ClusterDatacenter(h.Cluster))
			}
		}
		target.Network = []types.VirtualMachineNetworkInfo{{VirtualMachineTargetInfo: types.VirtualMachineTargetInfo{Name: "VM Network"},
			Network: &types.NetworkSummary{Network: &network, Name: "VM Network", Accessible: true}}}
		for _, h := range s.Hosts {
			if req.Host == nil || model.HostRef(h) == *req.Host {
				target.NumCpus += int32(h.Sockets)
				target.NumCpuCores += int32(h.Cores)
				target.NumNumaNodes += int32(h.Sockets)
			}
			if req.Host != nil && model.HostRef(h) == *req.Host && h.Managed() {
				target.Sriov, target.PciPassthrough = model.SRIOVTargets(h), model.PassthruTargets(h)
				target.DynamicPassthrough, target.SharedGpuPassthroughTypes = model.DynamicTargets(h), model.ShareTargets(h)
			}
		}
		for _, d := range s.Switches {
			member := req.Host == nil
			for _, mem := range d.Members {
				member = member || req.Host != nil && model.HostRef(s.Host(mem.Host)) == *req.Host
			}
			if !member {
				continue
			}
			target.DistributedVirtualSwitch = append(target.DistributedVirtualSwitch, types.DistributedVirtualSwitchInfo{SwitchName: d.Shown(),
				SwitchUuid: d.UUID, DistributedVirtualSwitch: model.SwitchRef(d)})
			for _, g := range d.PortGroups {
				target.DistributedVirtualPortgroup = append(target.DistributedVirtualPortgroup,
					types.DistributedVirtualPortgroupInfo{SwitchName: d.Shown(),
						SwitchUuid: d.UUID, PortgroupName: g.Name, PortgroupKey: g.Key, PortgroupType: g.Binding, UplinkPortgroup: g.Uplink,
						Portgroup: model.PortGroupRef(g)})
			}
		}
	})
	if req.Host != nil && m.f.Reg.Get(*req.Host) == nil {
		return frame.Answer(nil, frame.Gone(*req.Host))
	}
	return frame.Answer(types.QueryConfigTargetResponse{Returnval: target}, nil)
}
