package history

import (
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Types of link events, as ESXi reports them to vCenter.
const (
	linkDown = "esx.problem.net.vmnic.linkstate.down"
	linkUp   = "esx.clear.net.vmnic.linkstate.up"
)

// learn records a VM and its host, so that events can also name a removed VM.
func (h *History) learn(v *world.VM) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names[v.Name], h.hostOf[v.Name] = model.VMRef(v), v.Host
}

// follow posts the vCenter events for an event of the world. Only an event of a VM tells where that VM is now: one change can move
// many VMs, and the events of hosts among its events must not hide the moves that follow.
func (h *History) follow(e world.Event) {
	if e.VM == "" {
		if e.Host != "" {
			h.followHost(e)
		}
		return
	}
	h.mu.Lock()
	before := h.hostOf[e.VM]
	h.mu.Unlock()
	h.f.World.View(func(s *world.State) {
		for _, v := range s.VMs {
			if v.Name == e.VM {
				h.learn(v)
			}
		}
	})
	h.followVM(e, before)
}

func (h *History) followVM(e world.Event, before string) {
	h.mu.Lock()
	ref, known := h.names[e.VM]
	now := h.hostOf[e.VM]
	if e.What == world.VMRemoved {
		delete(h.names, e.VM)
		delete(h.hostOf, e.VM)
	}
	task, busy := h.active[ref]
	h.mu.Unlock()
	if !known {
		return
	}
	about := types.VmEvent{Event: h.about(ref, task.Reason)}
	if about.Vm.Name == ref.Value || e.What == world.VMRemoved {
		about.Vm.Name = e.VM
	}
	if about.Host == nil && now != "" {
		about.Host = h.host(now)
	}
	chain := int32(0)
	if busy {
		chain = task.EventChainId
	}
	if before != "" && now != before && e.What != world.VMRemoved {
		moved := types.VmMigratedEvent{VmEvent: about}
		if from := h.host(before); from != nil {
			moved.SourceHost = *from
		}
		if busy {
			h.post(&moved, chain)
		} else { // moved by DRS; the lab has no task for it, vCenter has one (Drm.ExecuteVMotionLRO)
			h.post(&types.DrsVmMigratedEvent{VmMigratedEvent: moved}, chain)
		}
	}
	why, dropped := strings.CutPrefix(e.Detail, "off: ")
	switch {
	case e.What == world.VMPower && e.Detail == "on":
		h.post(&types.VmPoweredOnEvent{VmEvent: about}, chain)
	case e.What == world.VMPower && dropped:
		x := &types.VmMessageErrorEvent{VmEvent: about, Message: why}
		x.FullFormattedMessage = "Error message on " + about.Vm.Name + " on " + now + " in " + about.Datacenter.Name + ": " + why
		h.post(x, chain)
		h.post(&types.VmPoweredOffEvent{VmEvent: about}, chain)
	case e.What == world.VMPower && e.Detail == "off":
		h.post(&types.VmPoweredOffEvent{VmEvent: about}, chain)
	case e.What == world.VMShutdown:
		x := &types.VmGuestShutdownEvent{VmEvent: about}
		x.UserName = e.Detail
		h.post(x, chain)
	case e.What == world.VMAdded:
		h.post(&types.VmCreatedEvent{VmEvent: about}, chain)
	case e.What == world.VMRemoved:
		h.post(&types.VmRemovedEvent{VmEvent: about}, chain)
	}
}

func (h *History) followHost(e world.Event) {
	arg := h.host(e.Host)
	if arg == nil {
		return
	}
	h.mu.Lock()
	task := h.active[arg.Host]
	h.mu.Unlock()
	about := types.HostEvent{Event: h.about(arg.Host, task.Reason)}
	chain := task.EventChainId
	pnic, state, link := strings.Cut(e.Detail, " link ")
	switch {
	case e.What == world.HostMaintenance && e.Detail == "true":
		h.post(&types.EnteredMaintenanceModeEvent{HostEvent: about}, chain)
	case e.What == world.HostMaintenance:
		h.post(&types.ExitMaintenanceModeEvent{HostEvent: about}, chain)
	case e.What == world.HostDown && e.Detail == "reboot":
		h.post(&types.HostShutdownEvent{HostEvent: about, Reason: e.Detail}, chain)
		h.post(&types.HostConnectionLostEvent{HostEvent: about}, chain)
	case e.What == world.HostDown:
		h.post(&types.HostConnectionLostEvent{HostEvent: about}, chain)
	case e.What == world.HostUp:
		h.post(&types.HostConnectedEvent{HostEvent: about}, chain)
	case e.What == world.HostNetwork && link:
		x := &types.EventEx{Event: about.Event, EventTypeId: linkUp, Severity: "info", Arguments: []types.KeyAnyValue{{Key: "1", Value: pnic}}}
		if state != "true" {
			x.EventTypeId, x.Severity = linkDown, "error"
		}
		x.FullFormattedMessage = "Physical NIC " + pnic + " linkstate is " + map[bool]string{true: "up", false: "down"}[state == "true"] + "."
		h.post(x, chain)
	}
}

// host returns the reference to a host for an event, or nil if the host does not exist.
func (h *History) host(name string) *types.HostEventArgument {
	var out *types.HostEventArgument
	h.f.World.View(func(s *world.State) {
		if host := s.Host(name); host != nil {
			out = &types.HostEventArgument{EntityEventArgument: types.EntityEventArgument{Name: name}, Host: model.HostRef(host)}
		}
	})
	return out
}

// begun returns the event for the start of a task, if vCenter has one.
func (h *History) begun(info types.TaskInfo) types.BaseEvent {
	about := h.about(*info.Entity, info.Reason)
	switch info.Name {
	case "EnterMaintenanceMode_Task":
		return &types.EnteringMaintenanceModeEvent{HostEvent: types.HostEvent{Event: about}}
	case "PowerOnVM_Task":
		return &types.VmStartingEvent{VmEvent: types.VmEvent{Event: about}}
	case "PowerOffVM_Task":
		return &types.VmStoppingEvent{VmEvent: types.VmEvent{Event: about}}
	case "RelocateVM_Task":
		return &types.VmBeingMigratedEvent{VmEvent: types.VmEvent{Event: about}}
	}
	return nil
}

// ended returns the event for the end of a task, if vCenter posts one in addition to the events of the world.
func (h *History) ended(info types.TaskInfo) types.BaseEvent {
	about := h.about(*info.Entity, info.Reason)
	vm, dvs := types.VmEvent{Event: about}, types.DvsEvent{Event: about}
	group := types.DVPortgroupEvent{Event: about}
	switch info.DescriptionId {
	case "VirtualMachine.reconfigure":
		return &types.VmReconfiguredEvent{VmEvent: vm}
	case "VirtualMachine.rename":
		return &types.VmRenamedEvent{VmEvent: vm, OldName: info.EntityName, NewName: about.Vm.Name}
	case "ComputeResource.reconfigureEx":
		return &types.ClusterReconfiguredEvent{ClusterEvent: types.ClusterEvent{Event: about}}
	case "HostSystem.disconnect":
		return &types.HostDisconnectedEvent{HostEvent: types.HostEvent{Event: about}}
	case "HostSystem.reconnect":
		return &types.HostConnectedEvent{HostEvent: types.HostEvent{Event: about}}
	case "Folder.createDistributedVirtualSwitch":
		made, ok := info.Result.(types.ManagedObjectReference)
		if !ok {
			return nil
		}
		dvs.Event = h.about(made, info.Reason)
		x := &types.DvsCreatedEvent{DvsEvent: dvs, Parent: types.FolderEventArgument{Folder: *info.Entity}}
		x.Parent.Name = info.EntityName
		return x
	case "dvs.DistributedVirtualSwitch.reconfigure":
		return &types.DvsReconfiguredEvent{DvsEvent: dvs, ConfigSpec: &types.VMwareDVSConfigSpec{}}
	case "dvs.DistributedVirtualSwitch.destroy":
		dvs.Dvs.Name = info.EntityName
		return &types.DvsDestroyedEvent{DvsEvent: dvs}
	case "dvs.DistributedVirtualSwitch.addPortgroup":
		if made, ok := info.Result.(types.ManagedObjectReference); ok {
			group.Event = h.about(made, info.Reason)
		}
		return &types.DVPortgroupCreatedEvent{DVPortgroupEvent: group}
	case "dvs.DistributedVirtualPortgroup.reconfigure":
		return &types.DVPortgroupReconfiguredEvent{DVPortgroupEvent: group}
	case "dvs.DistributedVirtualPortgroup.destroy":
		group.Net.Name = info.EntityName
		return &types.DVPortgroupDestroyedEvent{DVPortgroupEvent: group}
	}
	return nil
}
