package hosts

import (
	"errors"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type image struct{ base }

var acceptance = map[string]string{
	string(types.HostImageAcceptanceLevelVmware_certified): "VMwareCertified",
	string(types.HostImageAcceptanceLevelVmware_accepted):  "VMwareAccepted",
	string(types.HostImageAcceptanceLevelPartner):          "PartnerSupported",
	string(types.HostImageAcceptanceLevelCommunity):        "CommunitySupported",
}

// HostImageConfigGetAcceptance returns the host acceptance level, the lowest level of VIBs that can be installed.
func (m image) HostImageConfigGetAcceptance(_ *simulator.Context, req *types.HostImageConfigGetAcceptance) soap.HasFault {
	host, err := m.name(req.This)
	level := ""
	if err == nil {
		m.f.World.View(func(s *world.State) { level = apiLevel(s.Host(host).Acceptance) })
	}
	return frame.Answer(types.HostImageConfigGetAcceptanceResponse{Returnval: level}, err)
}

func apiLevel(name string) string {
	for api, own := range acceptance {
		if own == name {
			return api
		}
	}
	return ""
}

// UpdateHostImageAcceptanceLevel sets the host acceptance level.
func (m image) UpdateHostImageAcceptanceLevel(_ *simulator.Context, req *types.UpdateHostImageAcceptanceLevel) soap.HasFault {
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	level, known := acceptance[req.NewAcceptanceLevel]
	if !known {
		return frame.Answer(nil, frame.BadArgument("newAcceptanceLevel"))
	}
	err = m.f.World.SetAcceptance(host, level)
	if errors.Is(err, world.ErrInvalid) || errors.Is(err, world.ErrBusy) {
		err = configFault(err)
	}
	return frame.Answer(types.UpdateHostImageAcceptanceLevelResponse{}, err)
}

// fetchSoftwarePackagesResponse has the name of the XML element in the response, which begins with a lower-case letter.
type fetchSoftwarePackagesResponse struct {
	Returnval []types.SoftwarePackage `xml:"urn:vim25 returnval,omitempty"`
}

// FetchSoftwarePackages lists the VIBs that are installed on the host.
func (m image) FetchSoftwarePackages(_ *simulator.Context, req *types.FetchSoftwarePackages) soap.HasFault {
	host, err := m.name(req.This)
	var list []types.SoftwarePackage
	if err == nil {
		m.f.World.View(func(s *world.State) {
			for _, v := range s.Host(host).VIBs {
				if v.Pending != world.PendingInstall {
					list = append(list, types.SoftwarePackage{Name: v.Name, Version: v.Version, Type: "bootbank", Vendor: v.Vendor,
						AcceptanceLevel: apiLevel(v.Acceptance), CreationDate: &v.Installed})
				}
			}
		})
	}
	return frame.Answer(fetchSoftwarePackagesResponse{list}, err)
}
