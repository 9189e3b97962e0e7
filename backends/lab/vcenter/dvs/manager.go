package dvs

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// versions returns the DVS versions that a vCenter offers, oldest first. None is newer than the vCenter, and none is older than
// the oldest ESXi release that it manages (vSphere Networking, "Upgrade a vSphere Distributed Switch to a Later Version"; KB
// 434420). There is no public source for the versions of 9.0.
func versions(vcenter string) []string {
	oldest := "6.0.0"
	switch {
	case !world.VersionLess(vcenter, "9.0.0"):
		oldest = "7.0.3"
	case !world.VersionLess(vcenter, "8.0.0"):
		oldest = "6.6.0"
	case !world.VersionLess(vcenter, "7.0.0"):
		oldest = "6.5.0"
	}
	all := []string{"6.0.0", "6.5.0", "6.6.0", "7.0.0", "7.0.2", "7.0.3", "8.0.0", "8.0.3", "9.0.0"}
	return slices.DeleteFunc(all, func(v string) bool {
		return world.VersionLess(v, oldest) || world.VersionLess(vcenter, releaseOf(v))
	})
}

// releaseOf returns the ESXi release that introduced a DVS version. 6.6.0 was introduced in 6.7; every other version has the
// number of its release.
func releaseOf(dvs string) string {
	if dvs == "6.6.0" {
		return "6.7.0"
	}
	return dvs
}

func newest(s *world.State) string {
	all := versions(s.VCenterVersion())
	return all[len(all)-1]
}

func available(s *world.State, version string) error {
	if !slices.Contains(versions(s.VCenterVersion()), version) {
		return frame.BadArgument("spec.productInfo.version")
	}
	return nil
}

// compatible returns an error if a host does not support a DVS version: the host must not be older than the version.
func compatible(h *world.Host, version string) error {
	if world.VersionLess(h.Version, releaseOf(version)) {
		return frame.Refuse(&types.NotSupported{}, "Host "+h.Name+" is not compatible with the VDS version "+version+".")
	}
	return nil
}

type manager struct{ base }

// QueryAvailableDvsSpec lists the available DVS versions; with recommended set, only the newest one.
func (m manager) QueryAvailableDvsSpec(_ *simulator.Context, req *types.QueryAvailableDvsSpec) soap.HasFault {
	var list []types.DistributedVirtualSwitchProductSpec
	m.f.World.View(func(s *world.State) {
		for _, v := range versions(s.VCenterVersion()) {
			if req.Recommended == nil || *req.Recommended == (v == newest(s)) {
				list = append(list, model.Product(v))
			}
		}
	})
	return frame.Answer(types.QueryAvailableDvsSpecResponse{Returnval: list}, nil)
}

// QueryDvsFeatureCapability returns the capabilities of a DVS.
func (m manager) QueryDvsFeatureCapability(_ *simulator.Context, _ *types.QueryDvsFeatureCapability) soap.HasFault {
	return frame.Answer(types.QueryDvsFeatureCapabilityResponse{Returnval: model.Feature()}, nil)
}

// QueryDvsByUuid finds a DVS.
func (m manager) QueryDvsByUuid(_ *simulator.Context, req *types.QueryDvsByUuid) soap.HasFault {
	var found *types.ManagedObjectReference
	m.f.World.View(func(s *world.State) {
		if d := model.SwitchByUUID(s, req.Uuid); d != nil {
			found = ptr(model.SwitchRef(d))
		}
	})
	if found == nil {
		return frame.Answer(nil, frame.Refuse(&types.NotFound{}))
	}
	return frame.Answer(types.QueryDvsByUuidResponse{Returnval: found}, nil)
}

// QueryDvsCheckCompatibility checks each host of a container and returns why it cannot join a new or existing DVS.
func (m manager) QueryDvsCheckCompatibility(_ *simulator.Context, req *types.QueryDvsCheckCompatibility) soap.HasFault {
	hosts, err := m.hosts(req.HostContainer.Container)
	if err != nil {
		return frame.Answer(nil, err)
	}
	var results []types.DistributedVirtualSwitchManagerCompatibilityResult
	m.f.World.View(func(s *world.State) {
		version := newest(s)
		if p := req.DvsProductSpec; p != nil {
			switch {
			case p.DistributedVirtualSwitch != nil && model.SwitchOf(s, *p.DistributedVirtualSwitch) != nil:
				version = model.SwitchOf(s, *p.DistributedVirtualSwitch).Version
			case p.DistributedVirtualSwitch != nil:
				err = frame.Gone(*p.DistributedVirtualSwitch)
			case p.NewSwitchProductSpec != nil && p.NewSwitchProductSpec.Version != "":
				version = p.NewSwitchProductSpec.Version
				err = available(s, version)
			}
		}
		for _, ref := range hosts {
			h := model.HostOf(s, ref)
			if !wanted(s, req.HostFilterSpec, ref) {
				continue
			}
			r := types.DistributedVirtualSwitchManagerCompatibilityResult{Host: ref}
			var faults bulk
			switch {
			case !h.Managed():
				faults.add(h, frame.Refuse(&types.HostNotConnected{}))
			case compatible(h, version) != nil:
				faults.add(h, compatible(h, version))
			}
			for _, f := range faults {
				r.Error = append(r.Error, f.Fault)
			}
			results = append(results, r)
		}
	})
	return frame.Answer(types.QueryDvsCheckCompatibilityResponse{Returnval: results}, err)
}

// QueryCompatibleHostForNewDvs lists the hosts of a container that can join a new DVS.
func (m manager) QueryCompatibleHostForNewDvs(_ *simulator.Context, req *types.QueryCompatibleHostForNewDvs) soap.HasFault {
	version := ""
	m.f.World.View(func(s *world.State) { version = newest(s) })
	if req.SwitchProductSpec != nil && req.SwitchProductSpec.Version != "" {
		version = req.SwitchProductSpec.Version
	}
	hosts, err := m.fit(req.Container, version)
	return frame.Answer(types.QueryCompatibleHostForNewDvsResponse{Returnval: hosts}, err)
}

// QueryCompatibleHostForExistingDvs lists the hosts of a container that can join an existing DVS.
func (m manager) QueryCompatibleHostForExistingDvs(_ *simulator.Context, req *types.QueryCompatibleHostForExistingDvs) soap.HasFault {
	version := ""
	m.f.World.View(func(s *world.State) {
		if d := model.SwitchOf(s, req.Dvs); d != nil {
			version = d.Version
		}
	})
	if version == "" {
		return frame.Answer(nil, frame.Gone(req.Dvs))
	}
	hosts, err := m.fit(req.Container, version)
	return frame.Answer(types.QueryCompatibleHostForExistingDvsResponse{Returnval: hosts}, err)
}

func (m manager) fit(container types.ManagedObjectReference, version string) ([]types.ManagedObjectReference, error) {
	hosts, err := m.hosts(container)
	m.f.World.View(func(s *world.State) {
		if refused := available(s, version); refused != nil {
			err = refused
		}
	})
	if err != nil {
		return nil, err
	}
	m.f.World.View(func(s *world.State) {
		hosts = slices.DeleteFunc(hosts, func(r types.ManagedObjectReference) bool {
			h := model.HostOf(s, r)
			return !h.Managed() || compatible(h, version) != nil
		})
	})
	return hosts, nil
}

// hosts lists the hosts in a container.
func (m manager) hosts(container types.ManagedObjectReference) ([]types.ManagedObjectReference, error) {
	if container.Type == "HostSystem" && m.f.Reg.Get(container) != nil {
		return []types.ManagedObjectReference{container}, nil
	}
	if m.f.Reg.Get(container) == nil {
		return nil, frame.Gone(container)
	}
	var hosts []types.ManagedObjectReference
	known := container == model.Root || container.Type == model.Cluster.Type
	m.f.World.View(func(s *world.State) {
		for n := range 1 + len(s.Others) {
			known = known || container == model.DatacenterRef(n) || container == model.HostFolderRef(n)
		}
		for _, h := range s.Hosts {
			n := s.ClusterDatacenter(h.Cluster)
			if slices.Contains([]types.ManagedObjectReference{model.Root, model.DatacenterRef(n), model.HostFolderRef(n), model.ClusterRef(h.Cluster)}, container) {
				hosts = append(hosts, model.HostRef(h))
			}
		}
	})
	if !known {
		return nil, frame.BadArgument("hostContainer.container")
	}
	return hosts, nil
}

func wanted(s *world.State, filters []types.BaseDistributedVirtualSwitchManagerHostDvsFilterSpec, host types.ManagedObjectReference) bool {
	for _, filter := range filters {
		in := true
		switch f := filter.(type) {
		case *types.DistributedVirtualSwitchManagerHostArrayFilter:
			in = slices.Contains(f.Host, host)
		case *types.DistributedVirtualSwitchManagerHostDvsMembershipFilter:
			d := model.SwitchOf(s, f.DistributedVirtualSwitch)
			in = d != nil && d.Member(model.HostOf(s, host).Name) != nil
		}
		if in != filter.GetDistributedVirtualSwitchManagerHostDvsFilterSpec().Inclusive {
			return false
		}
	}
	return true
}
