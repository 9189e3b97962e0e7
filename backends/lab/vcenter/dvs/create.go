package dvs

import (
	"cmp"
	"fmt"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type folder struct{ base }

// CreateDVSTask creates a DVS in a network folder, with its uplinks and hosts.
func (m folder) CreateDVSTask(ctx *simulator.Context, req *types.CreateDVS_Task) soap.HasFault {
	parent, known := "", false
	m.f.World.View(func(s *world.State) {
		for n := range 1 + len(s.Others) {
			if req.This == model.NetFolderRef(n) {
				parent, known = world.RootFolder("n", n), true
			}
		}
	})
	if !known {
		return frame.Answer(nil, frame.Refuse(&types.NotSupported{}))
	}
	spec, extra, err := split(req.Spec.ConfigSpec)
	if err == nil {
		err = m.mayTouchHosts(ctx, req.This, spec.Host)
	}
	if err != nil {
		return frame.Answer(nil, err)
	}
	version := ""
	if p := req.Spec.ProductInfo; p != nil && p.Version != "" {
		version = p.Version
	}
	task := m.f.Start(ctx, "CreateDVS_Task", "Folder.createDistributedVirtualSwitch", req.This, frame.TaskOptions{Cancelable: true}, func() (any, error) {
		var ref types.ManagedObjectReference
		err := m.f.World.Update(func(s *world.State) ([]world.Event, error) {
			if err := freeName(s, parent, spec.Name); err != nil {
				return nil, err
			}
			version := cmp.Or(version, newest(s))
			if err := available(s, version); err != nil {
				return nil, err
			}
			d := &world.DVS{Name: spec.Name, Folder: parent, UUID: s.SwitchUUID(), Version: version, MTU: 1500, NIOC: true, Discovery: "cdp listen",
				Uplinks: defaultUplinks(), Setting: model.SwitchExtra{Created: time.Now()}}
			hosts, err := create(s, d, spec, extra)
			if err != nil {
				return nil, err
			}
			ref = model.SwitchRef(d)
			return touched(d.Name, hosts), nil
		})
		return ref, err
	})
	return frame.Answer(types.CreateDVS_TaskResponse{Returnval: task}, nil)
}

func create(s *world.State, d *world.DVS, spec types.DVSConfigSpec, extra types.VMwareDVSConfigSpec) ([]string, error) {
	spec.Name = "" // d already has the name, and freeName has checked it
	hosts, err := reconfigure(s, d, spec, extra)
	if err != nil {
		return nil, err
	}
	s.AddSwitch(d)
	model.Number(s, d)
	return hosts, nil
}

func defaultUplinks() []string {
	var names []string
	for i := range 4 {
		names = append(names, fmt.Sprintf("Uplink %d", i+1))
	}
	return names
}
