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
