package history

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// matches reports whether an event matches a filter.
func (h *History) matches(event types.BaseEvent, filter *types.EventFilterSpec) bool {
	e := event.GetEvent()
	if t := filter.Time; t != nil && !between(&e.CreatedTime, t.BeginTime, t.EndTime) {
		return false
	}
	if u := filter.UserName; u != nil && !byUser(e.UserName, u.SystemUser, u.UserList) {
		return false
	}
	if filter.EventChainId != 0 && filter.EventChainId != e.ChainId {
		return false
	}
	if kinds := append(slices.Clone(filter.EventTypeId), filter.Type...); len(kinds) > 0 && !isOf(event, kinds) {
		return false
	}
	if len(filter.Category) > 0 && !slices.Contains(filter.Category, category(event)) {
		return false
	}
	if filter.Entity == nil {
		return true
	}
	pertains := pertaining(e)
	if x, ok := event.(*types.EventEx); ok && x.ObjectId != "" {
		pertains = append(pertains, types.ManagedObjectReference{Type: x.ObjectType, Value: x.ObjectId})
	}
	return h.within(pertains, filter.Entity.Entity, string(filter.Entity.Recursion))
}

// wanted returns the current info of a task and whether it matches a filter.
func (h *History) wanted(ref types.ManagedObjectReference, filter *types.TaskFilterSpec) (types.TaskInfo, bool) {
	info, ok := h.task(ref)
	if !ok {
		return info, false
	}
	if len(filter.State) > 0 && !slices.Contains(filter.State, info.State) {
		return info, false
	}
	if t := filter.Time; t != nil {
		at := &info.QueueTime
		switch t.TimeType {
		case types.TaskFilterSpecTimeOptionStartedTime:
			at = info.StartTime
		case types.TaskFilterSpecTimeOptionCompletedTime:
			at = info.CompleteTime
		}
		if !between(at, t.BeginTime, t.EndTime) {
			return info, false
		}
	}
	if u := filter.UserName; u != nil {
		name := ""
		if by, is := info.Reason.(*types.TaskReasonUser); is {
			name = by.UserName
		}
		if !byUser(name, u.SystemUser, u.UserList) {
			return info, false
		}
	}
	if n := filter.EventChainId; len(n) > 0 && !slices.Contains(n, info.EventChainId) {
		return info, false
	}
	if n := filter.ParentTaskKey; len(n) > 0 && !slices.Contains(n, info.ParentTaskKey) {
		return info, false
	}
	if n := filter.RootTaskKey; len(n) > 0 && !slices.Contains(n, info.RootTaskKey) {
		return info, false
	}
	e := filter.Entity
	return info, e == nil || h.within([]types.ManagedObjectReference{*info.Entity}, e.Entity, string(e.Recursion))
}

func between(at, begin, end *time.Time) bool {
	return at != nil && (begin == nil || !at.Before(*begin)) && (end == nil || !at.After(*end))
}

// byUser reports whether an item matches a user filter. An event without a user belongs to the system.
func byUser(name string, system bool, users []string) bool {
	return name == "" && system || slices.ContainsFunc(users, func(u string) bool { return strings.EqualFold(u, name) })
}

// isOf reports whether an event has one of these types, or a type derived from one of them.
func isOf(event types.BaseEvent, kinds []string) bool {
	for _, kind := range kinds {
		kind = strings.TrimPrefix(kind, "vim.event.")
		if x, ok := event.(*types.EventEx); ok && x.EventTypeId == kind {
			return true
		}
		for t := reflect.TypeOf(event).Elem(); ; t = t.Field(0).Type {
			if t.Name() == kind {
				return true
			}
			if t.NumField() == 0 || !t.Field(0).Anonymous {
				break
			}
		}
	}
	return false
}

// pertaining returns the entities that an event refers to.
func pertaining(e *types.Event) []types.ManagedObjectReference {
	var out []types.ManagedObjectReference
	if e.Vm != nil {
		out = append(out, e.Vm.Vm)
	}
	if e.Host != nil {
		out = append(out, e.Host.Host)
	}
	if e.ComputeResource != nil {
		out = append(out, e.ComputeResource.ComputeResource)
	}
	if e.Dvs != nil {
		out = append(out, e.Dvs.Dvs)
	}
	if e.Net != nil {
		out = append(out, e.Net.Network)
	}
	if e.Datacenter != nil {
		out = append(out, e.Datacenter.Datacenter)
	}
	return out
}

// within reports whether one of these entities is the filter's entity, a descendant of it, or either, depending on the recursion
// option.
func (h *History) within(pertains []types.ManagedObjectReference, entity types.ManagedObjectReference, recursion string) bool {
	self := slices.Contains(pertains, entity)
	if recursion == "self" || recursion == "all" && self {
		return self
	}
	if entity == model.Root {
		return true
	}
	return slices.ContainsFunc(pertains, func(at types.ManagedObjectReference) bool {
		for {
			parent := h.parent(at)
			if parent == nil {
				return false
			}
			if at = *parent; at == entity {
				return true
			}
		}
	})
}

func (h *History) parent(ref types.ManagedObjectReference) (parent *types.ManagedObjectReference) {
	h.f.Read(ref, func(obj mo.Reference) {
		if e, ok := obj.(mo.Entity); ok {
			parent = e.Entity().Parent
		}
		if v, ok := obj.(*mo.VirtualMachine); ok && parent == nil {
			parent = v.ParentVApp
		}
	})
	return parent
}

// descriptions contains the entries of EventManager.description by event type.
var descriptions = func() map[string]types.EventDescriptionEventDetail {
	out := map[string]types.EventDescriptionEventDetail{}
	for _, d := range esx.EventInfo {
		out[d.Key] = d
	}
	return out
}()

func kindOf(event types.BaseEvent) string { return reflect.TypeOf(event).Elem().Name() }

func category(event types.BaseEvent) string {
	switch x := event.(type) {
	case *types.EventEx:
		if x.Severity != "" {
			return x.Severity
		}
	case *types.HostConnectionLostEvent, *types.VmMessageErrorEvent:
		return "error"
	}
	if c := descriptions[kindOf(event)].Category; c != "" {
		return c
	}
	return "info"
}

// message returns the text of an event from its description. Without a description it returns the event type.
func message(event types.BaseEvent) string {
	if x, ok := event.(*types.TaskEvent); ok {
		return "Task: " + x.Info.DescriptionId
	}
	if t, err := template.New("").Parse(descriptions[kindOf(event)].FullFormat); err == nil {
		var text bytes.Buffer
		if err := t.Execute(&text, event); err == nil && text.Len() > 0 {
			return text.String()
		}
	}
	return kindOf(event)
}

// about returns an event for an entity, with the related objects that vCenter includes in it.
func (h *History) about(entity types.ManagedObjectReference, reason types.BaseTaskReason) types.Event {
	e := types.Event{}
	if by, ok := reason.(*types.TaskReasonUser); ok {
		e.UserName = by.UserName
	}
	entity = h.f.Owner(entity)
	arg := types.EntityEventArgument{Name: h.f.Name(entity)}
	switch entity.Type {
	case "VirtualMachine":
		e.Vm = &types.VmEventArgument{EntityEventArgument: arg, Vm: entity}
		if name := h.f.Target(entity).Host; name != "" {
			e.Host = h.host(name)
		}
		h.inCluster(&e, h.f.Target(entity).Host)
	case "HostSystem":
		e.Host = &types.HostEventArgument{EntityEventArgument: arg, Host: entity}
		h.inCluster(&e, arg.Name)
	case "ClusterComputeResource":
		e.ComputeResource = &types.ComputeResourceEventArgument{EntityEventArgument: arg, ComputeResource: entity}
	case "VmwareDistributedVirtualSwitch":
		e.Dvs = &types.DvsEventArgument{EntityEventArgument: arg, Dvs: entity}
	case "DistributedVirtualPortgroup", "Network":
		e.Net = &types.NetworkEventArgument{EntityEventArgument: arg, Network: entity}
	}
	if entity != model.Root {
		dc := h.datacenter(entity)
		e.Datacenter = &types.DatacenterEventArgument{Datacenter: dc}
		e.Datacenter.Name = h.f.Name(dc)
	}
	return e
}

// datacenter returns the datacenter of an entity: itself, or one of its ancestors; the first one if it was removed.
func (h *History) datacenter(entity types.ManagedObjectReference) types.ManagedObjectReference {
	for at := &entity; at != nil; at = h.parent(*at) {
		if at.Type == model.Datacenter.Type {
			return *at
		}
	}
	return model.Datacenter
}

// inCluster sets the cluster of a host.
func (h *History) inCluster(e *types.Event, host string) {
	cluster := model.Cluster
	h.f.World.View(func(s *world.State) {
		if at := s.Host(host); at != nil {
			cluster = model.ClusterRef(at.Cluster)
		}
	})
	e.ComputeResource = &types.ComputeResourceEventArgument{ComputeResource: cluster}
	e.ComputeResource.Name = h.f.Name(cluster)
}

var _ frame.Watcher = (*History)(nil)
