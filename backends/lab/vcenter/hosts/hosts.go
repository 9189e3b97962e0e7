// Package hosts implements the methods of hosts and their sub-objects in the lab's vCenter.
package hosts

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Register adds the methods to a frame.
func Register(f *frame.Frame) {
	b := base{f}
	f.Handle(system{b}, "HostSystem")
	f.Handle(firewall{b}, "HostFirewallSystem")
	f.Handle(services{b}, "HostServiceSystem")
	f.Handle(network{b}, "HostNetworkSystem")
	f.Handle(clock{b}, "HostDateTimeSystem")
	f.Handle(passthru{b}, "HostPciPassthruSystem")
	f.Handle(power{b}, "HostPowerSystem")
	f.Handle(graphics{b}, "HostGraphicsManager")
	f.Handle(assignable{b}, "HostAssignableHardwareManager")
	f.Handle(image{b}, "HostImageConfigManager")
	f.Handle(access{b}, "HostAccessManager")
	f.Handle(files{b}, "HostDatastoreBrowser")
	f.Handle(executer{b}, "ManagedMethodExecuter")
	f.Extend(options{b}, "OptionManager")
}

type base struct{ f *frame.Frame }

// name returns the name of the host that a call refers to. It fails if vCenter cannot connect to the host.
func (b base) name(ref types.ManagedObjectReference) (string, error) {
	var name string
	err := error(frame.Gone(ref))
	b.f.World.View(func(s *world.State) {
		switch h := model.HostOf(s, b.f.Owner(ref)); {
		case h == nil:
		case !h.Managed():
			err = frame.Refuse(&types.HostNotConnected{})
		default:
			name, err = h.Name, nil
		}
	})
	return name, err
}

// refusal converts an error of the world to vSphere's fault and text.
func refusal(err error, key string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, world.ErrUnknown):
		return frame.Refuse(&types.NotFound{})
	case errors.Is(err, world.ErrInvalid):
		return frame.BadArgument(key)
	}
	return err
}

type network struct{ base }

// QueryNetworkHint returns the LLDP data of the physical switch, for NICs with link up.
func (m network) QueryNetworkHint(_ *simulator.Context, req *types.QueryNetworkHint) soap.HasFault {
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	var hints []types.PhysicalNicHintInfo
	m.f.World.View(func(s *world.State) {
		h := s.Host(host)
		for _, device := range req.Device {
			if h.PNIC(device) == nil {
				err = frame.Refuse(&types.NotFound{})
			}
		}
		for n, p := range h.PNICs {
			if len(req.Device) > 0 && !slices.Contains(req.Device, p.Device) {
				continue
			}
			hint := types.PhysicalNicHintInfo{Device: p.Device}
			if p.LinkUp && !p.Deaf {
				hint.LldpInfo = &types.LinkLayerDiscoveryProtocolInfo{
					ChassisId: "04:3f:72:d1:00:00", PortId: fmt.Sprintf("Eth1/%d", 4*h.Index+n+1), TimeToLive: 120,
					Parameter: []types.KeyAnyValue{{Key: "System Name", Value: p.Cable.Switch()}, {Key: "MTU", Value: strconv.Itoa(p.Cable.Largest())},
						{Key: "Vlan ID", Value: "0"}},
				}
			}
			hints = append(hints, hint)
		}
	})
	return frame.Answer(types.QueryNetworkHintResponse{Returnval: hints}, err)
}

type files struct{ base }

// SearchDatastoreTask lists the files in a folder ("[shared-01] rdma") that match one of the patterns. If the folder does not
// exist, it fails with FileNotFound.
func (m files) SearchDatastoreTask(ctx *simulator.Context, req *types.SearchDatastore_Task) soap.HasFault {
	task := m.f.Start(ctx, "SearchDatastore_Task", "HostDatastoreBrowser.search", m.f.Owner(req.This), frame.TaskOptions{Cancelable: true},
		func() (any, error) {
			return m.search(m.f.Owner(req.This), req.DatastorePath, req.SearchSpec)
		})
	return frame.Answer(types.SearchDatastore_TaskResponse{Returnval: task}, nil)
}

// datastoreRoot is the mount point of the datastore on a host.
const datastoreRoot = "/vmfs/volumes/shared-01"

func (m files) search(store types.ManagedObjectReference, folder string, spec *types.HostDatastoreBrowserSearchSpec) (any, error) {
	name, ok := strings.CutPrefix(folder, "[shared-01]")
	if !ok {
		return nil, frame.Refuse(&types.InvalidDatastorePath{DatastorePath: folder}, "Invalid datastore path '"+folder+"'.")
	}
	dir := path.Join(datastoreRoot, strings.TrimSpace(name))
	result := types.HostDatastoreBrowserSearchResults{Datastore: &store, FolderPath: folder}
	found := dir == datastoreRoot
	m.f.World.View(func(s *world.State) {
		for _, p := range s.Depot {
			found = found || strings.HasPrefix(p.Path, dir+"/")
			if path.Dir(p.Path) == dir && matches(path.Base(p.Path), spec) {
				result.File = append(result.File, &types.FileInfo{Path: path.Base(p.Path), FileSize: 1 << 20})
			}
		}
		for _, v := range s.VMs {
			if path.Join(datastoreRoot, v.Stem()) != dir || model.DatastoreRef(s.VMDatacenter(v)) != store {
				continue
			}
			found = true
			for _, name := range model.VMFiles(v) {
				if matches(name, spec) {
					result.File = append(result.File, &types.FileInfo{Path: name, FileSize: int64(len(model.VMFile(v, name)))})
				}
			}
		}
	})
	if !found {
		return nil, frame.Refuse(&types.FileNotFound{FileFault: types.FileFault{File: folder}}, "File "+folder+" was not found")
	}
	return result, nil
}

func matches(name string, spec *types.HostDatastoreBrowserSearchSpec) bool {
	if spec == nil || len(spec.MatchPattern) == 0 {
		return true
	}
	return slices.ContainsFunc(spec.MatchPattern, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

type firewall struct{ base }

// EnableRuleset opens a ruleset on one host. Opening an open ruleset is not an error.
func (m firewall) EnableRuleset(_ *simulator.Context, req *types.EnableRuleset) soap.HasFault {
	return frame.Answer(types.EnableRulesetResponse{}, m.set(req.This, req.Id, true))
}

// DisableRuleset closes a ruleset on one host.
func (m firewall) DisableRuleset(_ *simulator.Context, req *types.DisableRuleset) soap.HasFault {
	return frame.Answer(types.DisableRulesetResponse{}, m.set(req.This, req.Id, false))
}

func (m firewall) set(ref types.ManagedObjectReference, id string, on bool) error {
	host, err := m.name(ref)
	if err != nil {
		return err
	}
	return refusal(m.f.World.SetRuleset(host, id, on), "id")
}

// RefreshFirewall refreshes the firewall data of the host.
func (m firewall) RefreshFirewall(_ *simulator.Context, req *types.RefreshFirewall) soap.HasFault {
	host, err := m.name(req.This)
	if err == nil {
		err = m.f.World.RefreshFirewall(host)
	}
	return frame.Answer(types.RefreshFirewallResponse{}, err)
}

type services struct{ base }

// StartService starts a stopped service.
func (m services) StartService(_ *simulator.Context, req *types.StartService) soap.HasFault {
	return frame.Answer(types.StartServiceResponse{}, m.run(req.This, req.Id, true, false))
}

// StopService stops a running service.
func (m services) StopService(_ *simulator.Context, req *types.StopService) soap.HasFault {
	return frame.Answer(types.StopServiceResponse{}, m.run(req.This, req.Id, false, false))
}

func (m services) run(ref types.ManagedObjectReference, id string, running, again bool) error {
	host, err := m.name(ref)
	if err != nil {
		return err
	}
	same := false
	m.f.World.View(func(s *world.State) {
		if svc := s.Host(host).Service(id); svc != nil {
			same = svc.Running == running
		}
	})
	if same && !again {
		return frame.Refuse(&types.InvalidState{})
	}
	return refusal(m.f.World.SetService(host, id, running), "id")
}

// RefreshServices refreshes the service data of the host.
func (m services) RefreshServices(_ *simulator.Context, req *types.RefreshServices) soap.HasFault {
	host, err := m.name(req.This)
	if err == nil {
		err = m.f.World.RefreshServices(host)
	}
	return frame.Answer(types.RefreshServicesResponse{}, err)
}
