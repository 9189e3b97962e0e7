package vcenter

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Event types of links, as ESXi reports them to vCenter.
const (
	linkDown = "esx.problem.net.vmnic.linkstate.down"
	linkUp   = "esx.clear.net.vmnic.linkstate.up"
)

// events tells what has happened, as far as the lab has events of vCenter's for it: links that went down and up, VMs that
// went off again right after power-on. The rest of EventManager is the simulator's.
type events struct{ f *frame.Frame }

// QueryEvents gives the events of a filter, the oldest first.
func (m events) QueryEvents(_ *simulator.Context, req *types.QueryEvents) soap.HasFault {
	var out []types.BaseEvent
	hosts := map[string]types.ManagedObjectReference{}
	m.f.World.View(func(s *world.State) {
		for _, h := range s.Hosts {
			hosts[h.Name] = model.HostRef(h)
		}
	})
	for n, e := range m.f.World.Log.Events() {
		if x := m.dropped(e, hosts[e.Host]); x != nil && wanted(req.Filter, e, "VmMessageErrorEvent") {
			x.Key, x.ChainId, x.CreatedTime = int32(n+1), int32(n+1), e.Time
			out = append(out, x)
		}
		if x := m.shutdown(e); x != nil && wanted(req.Filter, e, "VmGuestShutdownEvent") && concerns(req.Filter, x.Vm.Vm) {
			x.Key, x.ChainId, x.CreatedTime = int32(n+1), int32(n+1), e.Time
			out = append(out, x)
		}
		pnic, up, link := strings.Cut(e.Detail, " link ")
		ref, known := hosts[e.Host]
		if e.What != world.HostNetwork || !link || !known {
			continue
		}
		kind := linkDown
		if up == "true" {
			kind = linkUp
		}
		if !wanted(req.Filter, e, kind) {
			continue
		}
		x := &types.EventEx{EventTypeId: kind, Severity: "info", Arguments: []types.KeyAnyValue{{Key: "1", Value: pnic}}}
		x.Key, x.ChainId, x.CreatedTime = int32(n+1), int32(n+1), e.Time
		x.Host = &types.HostEventArgument{EntityEventArgument: types.EntityEventArgument{Name: e.Host}, Host: ref}
		x.FullFormattedMessage = "Physical NIC " + pnic + " linkstate is " + map[bool]string{true: "up", false: "down"}[up == "true"] + "."
		out = append(out, x)
	}
	return frame.Answer(types.QueryEventsResponse{Returnval: out}, nil)
}

// wanted tells whether a filter lets an event of a type through.
func wanted(filter types.EventFilterSpec, e world.Event, kind string) bool {
	if t := filter.Time; t != nil && (t.BeginTime != nil && e.Time.Before(*t.BeginTime) || t.EndTime != nil && e.Time.After(*t.EndTime)) {
		return false
	}
	return len(filter.EventTypeId) == 0 || slices.Contains(filter.EventTypeId, kind)
}

// concerns tells whether a filter lets the events of an entity through.
func concerns(filter types.EventFilterSpec, entity types.ManagedObjectReference) bool {
	return filter.Entity == nil || filter.Entity.Entity == entity
}

// shutdown is what vCenter keeps of a guest that somebody has asked to shut down; nil of other events.
func (m events) shutdown(e world.Event) *types.VmGuestShutdownEvent {
	if e.What != world.VMShutdown {
		return nil
	}
	var x *types.VmGuestShutdownEvent
	m.f.World.View(func(s *world.State) {
		if v := s.VM(e.VM); v != nil {
			x = &types.VmGuestShutdownEvent{}
			x.UserName = e.Detail
			x.Vm = &types.VmEventArgument{EntityEventArgument: types.EntityEventArgument{Name: e.VM}, Vm: model.VMRef(v)}
			x.FullFormattedMessage = "Guest OS shut down for " + e.VM + " in DC"
		}
	})
	return x
}

// dropped is what vCenter shows of a VM that the host switched off, with the host's reason; nil of other events.
func (m events) dropped(e world.Event, host types.ManagedObjectReference) *types.VmMessageErrorEvent {
	why, off := strings.CutPrefix(e.Detail, "off: ")
	if e.What != world.VMPower || !off {
		return nil
	}
	x := &types.VmMessageErrorEvent{Message: why}
	x.FullFormattedMessage = "Error message on " + e.VM + " on " + e.Host + " in DC: " + why
	x.Host = &types.HostEventArgument{EntityEventArgument: types.EntityEventArgument{Name: e.Host}, Host: host}
	m.f.World.View(func(s *world.State) {
		if v := s.VM(e.VM); v != nil {
			x.Vm = &types.VmEventArgument{EntityEventArgument: types.EntityEventArgument{Name: e.VM}, Vm: model.VMRef(v)}
		}
	})
	return x
}
