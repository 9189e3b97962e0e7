package dvs

import (
	"fmt"
	"slices"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

const maxUplinks = 32

// split splits a spec into the generic part and the part specific to the VMware DVS.
func split(given types.BaseDVSConfigSpec) (types.DVSConfigSpec, types.VMwareDVSConfigSpec, error) {
	switch spec := given.(type) {
	case *types.VMwareDVSConfigSpec:
		return spec.DVSConfigSpec, *spec, nil
	case *types.DVSConfigSpec:
		return *spec, types.VMwareDVSConfigSpec{}, nil
	}
	return types.DVSConfigSpec{}, types.VMwareDVSConfigSpec{}, frame.BadArgument("spec")
}

// reconfigure validates the complete spec before it changes anything. It returns the hosts that were changed.
func reconfigure(s *world.State, d *world.DVS, spec types.DVSConfigSpec, extra types.VMwareDVSConfigSpec) ([]string, error) {
	uplinks, err := uplinkNames(spec.UplinkPortPolicy)
	if err != nil {
		return nil, err
	}
	if uplinks == nil {
		uplinks = d.Uplinks
	}
	mtu, discovery, err := settings(extra)
	if err != nil {
		return nil, err
	}
	if spec.Name != "" && spec.Name != d.Shown() {
		if err := freeName(s, d.Folder, spec.Name); err != nil {
			return nil, err
		}
	}
	after, err := memberships(s, d, len(uplinks), spec.Host)
	if err != nil {
		return nil, err
	}

	hosts := []string{}
	for _, h := range spec.Host {
		hosts = append(hosts, model.HostOf(s, h.Host).Name)
	}
	if mtu != 0 && mtu != d.MTU || spec.Name != "" || !slices.Equal(uplinks, d.Uplinks) {
		hosts = append(hosts, members(d)...)
	}
	if mtu != 0 {
		d.MTU = mtu
	}
	if discovery != "" {
		d.Discovery = discovery
	}
	if spec.Description != "" {
		d.Note = spec.Description
	}
	keep, _ := d.Setting.(model.SwitchExtra)
	if spec.Contact != nil {
		keep.Contact = *spec.Contact
	}
	if spec.Policy != nil {
		keep.Policy = spec.Policy
	}
	d.Setting = keep
	renameUplinks(d, uplinks)
	d.Members = after
	if g := d.UplinkGroup(); g != nil {
		g.Ports = len(d.Uplinks) * len(d.Members)
	}
	if spec.Name != "" && spec.Name != d.Shown() {
		s.RenameSwitch(d, spec.Name)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), nil
}

func settings(extra types.VMwareDVSConfigSpec) (mtu int, discovery string, err error) {
	mtu = int(extra.MaxMtu)
	if mtu != 0 && (mtu < model.MinMTU || mtu > model.MaxMTU) {
		return 0, "", frame.BadArgument("spec.maxMtu")
	}
	if l := extra.LinkDiscoveryProtocolConfig; l != nil {
		if !slices.Contains([]string{"cdp", "lldp"}, l.Protocol) ||
			!slices.Contains([]string{"none", "listen", "advertise", "both"}, l.Operation) {
			return 0, "", frame.BadArgument("spec.linkDiscoveryProtocolConfig")
		}
		discovery = l.Protocol + " " + l.Operation
		if l.Operation == "none" {
			discovery = "none"
		}
	}
	return mtu, discovery, nil
}

func uplinkNames(policy types.BaseDVSUplinkPortPolicy) ([]string, error) {
	if policy == nil {
		return nil, nil
	}
	array, ok := policy.(*types.DVSNameArrayUplinkPortPolicy)
	if !ok || len(array.UplinkPortName) == 0 || len(array.UplinkPortName) > maxUplinks {
		return nil, frame.BadArgument("spec.uplinkPortPolicy")
	}
	seen := map[string]bool{}
	for _, name := range array.UplinkPortName {
		if name == "" || seen[name] {
			return nil, frame.BadArgument("spec.uplinkPortPolicy.uplinkPortName")
		}
		seen[name] = true
	}
	return array.UplinkPortName, nil
}

// renameUplinks renames the uplinks, also in the uplink orders of the port groups.
func renameUplinks(d *world.DVS, names []string) {
	to := map[string]string{}
	for i, old := range d.Uplinks {
		if i < len(names) {
			to[old] = names[i]
		}
	}
	for _, g := range d.PortGroups {
		for _, list := range []*[]string{&g.Active, &g.Standby} {
			var renamed []string
			for _, name := range *list {
				if new, ok := to[name]; ok {
					renamed = append(renamed, new)
				}
			}
			*list = renamed
		}
	}
	d.Uplinks = slices.Clone(names)
}

// memberships computes the members after a change and returns an error for changes that a host would refuse.
func memberships(s *world.State, d *world.DVS, uplinks int,
	specs []types.DistributedVirtualSwitchHostMemberConfigSpec) ([]*world.Member, error) {
	var faults bulk
	after := slices.Clone(d.Members)
	seen := map[string]bool{}
	for _, spec := range specs {
		h := model.HostOf(s, spec.Host)
		if h == nil {
			return nil, frame.Gone(spec.Host)
		}
		if seen[h.Name] || s.ClusterDatacenter(h.Cluster) != s.SwitchDatacenter(d) { // which fault vCenter returns for the second has no witness
			return nil, frame.BadArgument("spec.host")
		}
		seen[h.Name] = true
		i := slices.IndexFunc(after, func(m *world.Member) bool { return m.Host == h.Name })
		op := types.ConfigSpecOperation(spec.Operation)
		switch {
		case op == types.ConfigSpecOperationAdd && i >= 0:
			return nil, frame.Refuse(&types.AlreadyExists{Name: h.Name})
		case op != types.ConfigSpecOperationAdd && i < 0:
			return nil, frame.Refuse(&types.NotFound{})
		}
		switch op {
		case types.ConfigSpecOperationAdd, types.ConfigSpecOperationEdit:
			m, err := member(s, d, h, uplinks, spec, op)
			switch {
			case err != nil:
				faults.add(h, err)
			case i < 0:
				after = append(after, m)
			default:
				after[i] = m
			}
		case types.ConfigSpecOperationRemove:
			if port := connectedPort(s, d, h); port != "" {
				return nil, inUse("DistributedVirtualPort", port)
			}
			if !h.Managed() {
				faults.add(h, frame.Refuse(&types.HostNotConnected{}))
				continue
			}
			after = slices.Delete(after, i, i+1)
		default:
			return nil, frame.BadArgument("spec.host.operation")
		}
	}
	for _, m := range after {
		if len(m.PNICs) > uplinks {
			return nil, inUse("DistributedVirtualPort", "uplink")
		}
	}
	return after, faults.err()
}

func member(s *world.State, d *world.DVS, h *world.Host, uplinks int, spec types.DistributedVirtualSwitchHostMemberConfigSpec,
	op types.ConfigSpecOperation) (*world.Member, error) {
	m := &world.Member{Host: h.Name}
	if old := d.Member(h.Name); old != nil {
		m.PNICs = old.PNICs
	}
	switch {
	case !h.Managed():
		return nil, frame.Refuse(&types.HostNotConnected{})
	case op == types.ConfigSpecOperationAdd:
		if err := compatible(h, d.Version); err != nil {
			return nil, err
		}
	}
	backing, ok := spec.Backing.(*types.DistributedVirtualSwitchHostMemberPnicBacking)
	if spec.Backing == nil {
		return m, nil
	}
	if !ok {
		return nil, frame.BadArgument("spec.host.backing")
	}
	if len(backing.PnicSpec) > uplinks {
		return nil, frame.Refuse(&types.LimitExceeded{Property: "spec.host.backing.pnicSpec", Limit: ptr(int32(uplinks))},
			fmt.Sprintf("Host %s has %d physical adapters for %d uplinks.", h.Name, len(backing.PnicSpec), uplinks))
	}
	m.PNICs = nil
	for _, p := range backing.PnicSpec {
		owner := s.SwitchOf(h.Name, p.PnicDevice)
		switch {
		case h.PNIC(p.PnicDevice) == nil:
			return nil, applyFault(p.PnicDevice, frame.Refuse(&types.NotFound{},
				fmt.Sprintf("The physical network adapter '%s' does not exist on host %s.", p.PnicDevice, h.Name)))
		case owner != "" && owner != d.Name:
			return nil, applyFault(p.PnicDevice, frame.Refuse(&types.ResourceInUse{Type: "PhysicalNic", Name: p.PnicDevice}))
		case slices.Contains(m.PNICs, p.PnicDevice):
			return nil, frame.BadArgument("spec.host.backing.pnicSpec")
		case p.UplinkPortgroupKey != "" && (d.UplinkGroup() == nil || d.UplinkGroup().Key != p.UplinkPortgroupKey):
			return nil, frame.Refuse(&types.NotFound{})
		}
		m.PNICs = append(m.PNICs, p.PnicDevice)
	}
	return m, nil
}

func applyFault(object string, e *frame.Error) error {
	return frame.Refuse(&types.DvsApplyOperationFault{ObjectFault: []types.DvsApplyOperationFaultFaultOnObject{{
		ObjectId: object, Type: "PhysicalNic", Fault: types.LocalizedMethodFault{Fault: e.Fault, LocalizedMessage: e.Text}}}}, e.Text)
}

// connectedPort returns a port of the DVS that is in use on a host, or "" if there is none.
func connectedPort(s *world.State, d *world.DVS, h *world.Host) string {
	for _, v := range s.VMs {
		for _, a := range v.Adapters {
			if v.Host == h.Name && a.DVS == d.Name {
				return a.PortKey
			}
		}
	}
	for _, k := range h.VMKs {
		if k.DVS == d.Name {
			return k.Device
		}
	}
	return ""
}

func ptr[T any](v T) *T { return &v }
