package dvs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func trunk(ranges []types.NumericRange) string {
	var parts []string
	for _, r := range ranges {
		parts = append(parts, fmt.Sprintf("%d-%d", r.Start, r.End))
	}
	return strings.Join(parts, ",")
}

var teamings = model.Feature().NicTeamingPolicy

// teaming applies an uplink order. Every uplink must exist and may be listed only once.
func teaming(d *world.DVS, g *world.PortGroup, t *types.VmwareUplinkPortTeamingPolicy) error {
	if t == nil {
		return nil
	}
	if t.Policy != nil && t.Policy.Value != "" && !slices.Contains(teamings, t.Policy.Value) {
		return frame.BadArgument("spec.defaultPortConfig.uplinkTeamingPolicy.policy")
	}
	order := t.UplinkPortOrder
	if order == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, name := range append(slices.Clone(order.ActiveUplinkPort), order.StandbyUplinkPort...) {
		if !slices.Contains(d.Uplinks, name) || seen[name] {
			return frame.BadArgument("spec.defaultPortConfig.uplinkTeamingPolicy.uplinkPortOrder")
		}
		seen[name] = true
	}
	g.Active, g.Standby = slices.Clone(order.ActiveUplinkPort), slices.Clone(order.StandbyUplinkPort)
	if g.Active == nil && g.Standby == nil {
		g.Active = []string{}
	}
	return nil
}

// merge applies a new setting on top of the earlier settings. VLAN and uplink order are stored in the port group itself.
func merge(before any, set types.VMwareDVSPortSetting) types.VMwareDVSPortSetting {
	out, _ := before.(types.VMwareDVSPortSetting)
	if set.Blocked != nil {
		out.Blocked = set.Blocked
	}
	if set.InShapingPolicy != nil {
		out.InShapingPolicy = set.InShapingPolicy
	}
	if set.OutShapingPolicy != nil {
		out.OutShapingPolicy = set.OutShapingPolicy
	}
	if set.SecurityPolicy != nil {
		out.SecurityPolicy = set.SecurityPolicy
	}
	if set.IpfixEnabled != nil {
		out.IpfixEnabled = set.IpfixEnabled
	}
	if set.MacManagementPolicy != nil {
		out.MacManagementPolicy = set.MacManagementPolicy
	}
	if t := set.UplinkTeamingPolicy; t != nil {
		team := types.VmwareUplinkPortTeamingPolicy{}
		if out.UplinkTeamingPolicy != nil {
			team = *out.UplinkTeamingPolicy
		}
		if t.Policy != nil {
			team.Policy = t.Policy
		}
		if t.NotifySwitches != nil {
			team.NotifySwitches = t.NotifySwitches
		}
		if t.RollingOrder != nil {
			team.RollingOrder = t.RollingOrder
		}
		if t.ReversePolicy != nil {
			team.ReversePolicy = t.ReversePolicy
		}
		if t.FailureCriteria != nil {
			team.FailureCriteria = t.FailureCriteria
		}
		out.UplinkTeamingPolicy = &team
	}
	return out
}
