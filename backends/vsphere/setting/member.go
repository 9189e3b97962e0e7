package setting

import (
	"context"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

type memberSetter struct{ *site }

// Read returns a host's membership in a DVS; Absent if the host is not a member or the switch does not exist.
func (s memberSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	host, err := s.places.Find(ctx, t.Target)
	if err != nil {
		return backends.Absent, err
	}
	v, err := s.look(ctx, backends.SwitchRef(t.Name), s.dvs.recent)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Target.Name, "read its membership in "+t.Name)
	}
	return memberOf(v, host), nil
}

func memberOf(v *switchView, host place.Ref) backends.Value {
	if v == nil {
		return backends.Absent
	}
	pnics, ok := v.members[host]
	if !ok {
		return backends.Absent
	}
	return backends.ValueOf(backends.MemberSpec{PNICs: pnics})
}

func (s memberSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	return s.SetMany(ctx, []backends.Assignment{{Setting: t, To: to}}, progress)[0]
}

func (s memberSetter) Parent(t backends.Setting) string { return backends.SwitchRef(t.Name).String() }

// SetMany changes the memberships of one DVS in one reconfigure. A host that vCenter refuses does not affect the others: they are
// changed in the same task or in the next.
func (s memberSetter) SetMany(ctx context.Context, as []backends.Assignment, progress backends.Progress) []error {
	errs := make([]error, len(as))
	hosts := make([]place.Ref, len(as))
	var pending []int
	for i, a := range as {
		if hosts[i], errs[i] = s.places.Find(ctx, a.Target); errs[i] == nil {
			pending = append(pending, i)
		}
	}
	all := func(err error) []error {
		for _, i := range pending {
			errs[i] = wire.Explain(err, as[i].Target.Name, s.what(as[i]))
		}
		return errs
	}
	for try := 1; len(pending) > 0; try++ {
		dvs := as[pending[0]].Name
		v, err := s.look(ctx, backends.SwitchRef(dvs), s.dvs.fresh)
		if err != nil {
			return all(err)
		}
		pending = slices.DeleteFunc(pending, func(i int) bool { return memberOf(v, hosts[i]) == as[i].To })
		switch {
		case len(pending) == 0:
			return errs
		case v == nil:
			return all(backends.Conflictf("", "run it again to plan from the current state",
				"the distributed switch %s does not exist", dvs))
		case try > wire.Tries:
			return all(backends.Conflictf("", "look at the events of "+dvs+" in vCenter",
				"it was accepted, but reads back differently"))
		}
		if err = s.reconfigure(ctx, v, as, hosts, pending, progress); err == nil {
			continue // the next iteration reads it back
		}
		blamed := hostFaults(err)
		pending = slices.DeleteFunc(pending, func(i int) bool {
			if f := blamed[hosts[i]]; f != nil {
				errs[i] = wire.Explain(f, as[i].Target.Name, s.what(as[i]))
				return true
			}
			return false
		})
		if len(blamed) > 0 {
			continue
		}
		why := wire.Explain(err, "", s.what(as[pending[0]]))
		if wire.Retriable(why) && try < wire.Tries && wire.Pause(ctx, try) {
			continue
		}
		if len(pending) == 1 || backends.KindOf(why) != backends.KindPermanent {
			return all(err)
		}
		for _, i := range pending { // one of them is the cause, and vCenter does not say which
			errs[i] = s.SetMany(ctx, as[i:i+1], progress)[0]
		}
		return errs
	}
	return errs
}

func (s memberSetter) what(a backends.Assignment) string {
	if a.To.IsAbsent() {
		return "take it off the distributed switch " + a.Name
	}
	return "put its pNIC on the distributed switch " + a.Name
}

func (s memberSetter) reconfigure(ctx context.Context, v *switchView, as []backends.Assignment, hosts []place.Ref, pending []int,
	progress backends.Progress) error {
	spec := &types.VMwareDVSConfigSpec{DVSConfigSpec: types.DVSConfigSpec{ConfigVersion: v.version}}
	for _, i := range pending {
		member, err := memberSpec(v, hosts[i], as[i])
		if err != nil {
			return err
		}
		spec.Host = append(spec.Host, member)
	}
	defer s.dvs.forget(v.ref)
	return s.site.reconfigure(ctx, v, spec, progress)
}

func memberSpec(v *switchView, host place.Ref, a backends.Assignment) (types.DistributedVirtualSwitchHostMemberConfigSpec, error) {
	spec := types.DistributedVirtualSwitchHostMemberConfigSpec{Host: host, Operation: string(types.ConfigSpecOperationAdd)}
	if a.To.IsAbsent() {
		spec.Operation = string(types.ConfigSpecOperationRemove)
		return spec, nil
	}
	want, err := backends.Decoded[backends.MemberSpec](a.To, a.Target.Name, "join the distributed switch")
	if err != nil {
		return spec, err
	}
	if _, member := v.members[host]; member {
		spec.Operation = string(types.ConfigSpecOperationEdit)
	}
	backing := &types.DistributedVirtualSwitchHostMemberPnicBacking{}
	for _, pnic := range want.PNICs {
		backing.PnicSpec = append(backing.PnicSpec, types.DistributedVirtualSwitchHostMemberPnicSpec{PnicDevice: pnic})
	}
	spec.Backing = backing
	return spec, nil
}

// hostFaults returns the hosts for which a reconfigure failed. The rest of that task was done.
func hostFaults(err error) map[place.Ref]error {
	bulk, ok := wire.FaultOf(err).(*types.DvsOperationBulkFault)
	if !ok {
		return nil
	}
	out := map[place.Ref]error{}
	for _, f := range bulk.HostFault {
		out[f.Host] = &wire.TaskError{Message: f.Fault.LocalizedMessage, Cause: f.Fault.Fault}
	}
	return out
}

// Resolve replaces PCI addresses of pNICs by their names: a port that was set to InfiniBand until the last reboot has a name only
// since then.
func (s memberSetter) Resolve(ctx context.Context, t backends.Setting, to backends.Value) (backends.Value, error) {
	var want backends.MemberSpec
	if to.IsAbsent() || to.Decode(&want) != nil || !slices.ContainsFunc(want.PNICs, isPCI) {
		return to, nil
	}
	host, err := s.places.Find(ctx, t.Target)
	if err != nil {
		return to, err
	}
	for try := 1; ; try++ {
		o, err := s.conn.One(ctx, host, "config.network.pnic")
		if err != nil {
			return to, wire.Explain(err, t.Target.Name, "read its pNICs")
		}
		missing := ""
		for i, name := range want.PNICs {
			at := ""
			for _, p := range wire.Value[types.ArrayOfPhysicalNic](o, "config.network.pnic").PhysicalNic {
				if strings.EqualFold(p.Pci, name) {
					at = p.Device
				}
			}
			switch {
			case at != "":
				want.PNICs[i] = at
			case isPCI(name):
				missing = name
			}
		}
		switch {
		case missing == "":
			return backends.ValueOf(want), nil
		case try >= wire.Tries || !wire.Pause(ctx, try): // a host that just came back may not have reported all of its pNICs
			return to, backends.Permanentf(t.Target.Name,
				"Look at the host's console and at the settings of the card's firmware; then run rdma-setup resume.",
				"the PCI function %s is still no pNIC after the reboot", missing)
		}
	}
}

// isPCI distinguishes PCI addresses from names of pNICs.
func isPCI(pnic string) bool { return strings.Contains(pnic, ":") }
