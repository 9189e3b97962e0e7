package hosts

import (
	"errors"
	"sort"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// options implements the advanced options of hosts. For vCenter's own settings, it calls the simulator.
type options struct{ base }

const vcenterSettings = "VpxSettings"

// QueryOptions returns one option, or all options below a name that ends with a dot. Unknown names are refused.
func (m options) QueryOptions(_ *simulator.Context, req *types.QueryOptions) soap.HasFault {
	if req.This.Value == vcenterSettings {
		return m.f.Reg.OptionManager().QueryOptions(req)
	}
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	var found []types.BaseOptionValue
	m.f.World.View(func(s *world.State) {
		for key, value := range s.Host(host).Options {
			if key == req.Name || req.Name == "" || strings.HasSuffix(req.Name, ".") && strings.HasPrefix(key, req.Name) {
				found = append(found, &types.OptionValue{Key: key, Value: value})
			}
		}
	})
	if len(found) == 0 {
		return frame.Answer(nil, frame.Refuse(&types.InvalidName{Name: req.Name}))
	}
	sort.Slice(found, func(i, j int) bool { return found[i].GetOptionValue().Key < found[j].GetOptionValue().Key })
	return frame.Answer(types.QueryOptionsResponse{Returnval: found}, nil)
}

// UpdateOptions sets options: either all of them or none. An unknown name fails with InvalidName, a value of the wrong type with
// InvalidArgument.
func (m options) UpdateOptions(_ *simulator.Context, req *types.UpdateOptions) soap.HasFault {
	if req.This.Value == vcenterSettings {
		return frame.Answer(nil, frame.Refuse(&types.NotSupported{}))
	}
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	m.f.Commit.Lock()
	defer m.f.Commit.Unlock()
	m.f.World.View(func(s *world.State) { err = valid(s.Host(host), req.ChangedValue) })
	if err != nil {
		return frame.Answer(nil, err)
	}
	for _, o := range req.ChangedValue {
		v := o.GetOptionValue()
		if err := m.f.World.SetOption(host, v.Key, v.Value); err != nil {
			return frame.Answer(nil, refusal(err, v.Key))
		}
	}
	return frame.Answer(types.UpdateOptionsResponse{}, nil)
}

func valid(h *world.Host, changes []types.BaseOptionValue) error {
	for _, o := range changes {
		v := o.GetOptionValue()
		old, known := h.Options[v.Key]
		if !known {
			return frame.Refuse(&types.InvalidName{Name: v.Key})
		}
		ok := false
		switch old.(type) {
		case string:
			_, ok = v.Value.(string)
		case int64:
			_, ok = v.Value.(int64)
		case bool:
			_, ok = v.Value.(bool)
		}
		if !ok {
			return frame.BadArgument(v.Key)
		}
	}
	return nil
}

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
