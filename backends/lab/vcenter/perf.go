package vcenter

import (
	"strconv"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/vpx"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
)

// perf lists the counters of an entity. The counters and their samples are those of the simulator.
type perf struct{ f *frame.Frame }

// realtime is the interval in seconds of the samples that hosts keep, and kept is how long they keep them (vSphere Monitoring
// and Performance, "Data Collection Intervals": real-time data is collected every 20 seconds and held for one hour).
const (
	realtime = 20
	kept     = time.Hour
)

// QueryAvailablePerfMetric lists the counters of an entity. Processor counters are listed once for each processor.
func (m perf) QueryAvailablePerfMetric(_ *simulator.Context, req *types.QueryAvailablePerfMetric) soap.HasFault {
	var list []types.PerfMetricId
	cpus := 0
	there := m.f.Read(req.Entity, func(obj mo.Reference) {
		switch o := obj.(type) {
		case *mo.VirtualMachine:
			list, cpus = vpx.VmMetrics, int(o.Summary.Config.NumCpu)
		case *mo.HostSystem:
			list, cpus = vpx.HostMetrics, int(o.Summary.Hardware.NumCpuThreads)
		case *mo.ResourcePool:
			list = vpx.ResourcePoolMetrics
		case *mo.ClusterComputeResource:
			list = vpx.ClusterMetrics
		case *mo.Datastore:
			list = vpx.DatastoreMetrics
		case *mo.Datacenter:
			list = vpx.DatacenterMetrics
		}
	})
	if !there {
		return frame.Answer(nil, frame.Gone(req.Entity))
	}
	var out []types.PerfMetricId
	for _, id := range list {
		switch id.Instance {
		case "$cpu":
			for n := range cpus {
				out = append(out, types.PerfMetricId{CounterId: id.CounterId, Instance: strconv.Itoa(n)})
			}
		case "$physDisk", "$file":
		default:
			out = append(out, id)
		}
	}
	return frame.Answer(types.QueryAvailablePerfMetricResponse{Returnval: out}, nil)
}

// QueryPerf returns samples. It returns no real-time samples that the host no longer keeps.
func (m perf) QueryPerf(ctx *simulator.Context, req *types.QueryPerf) soap.HasFault {
	manager, ok := m.f.Reg.Get(req.This).(*simulator.PerformanceManager)
	if !ok {
		return frame.Answer(nil, frame.Gone(req.This))
	}
	for i := range req.QuerySpec {
		spec := &req.QuerySpec[i]
		if m.f.Reg.Get(spec.Entity) == nil {
			return frame.Answer(nil, frame.Gone(spec.Entity))
		}
		if spec.IntervalId <= realtime {
			if oldest := time.Now().Add(-kept); spec.StartTime == nil || spec.StartTime.Before(oldest) {
				spec.StartTime = &oldest
			}
		}
	}
	return manager.QueryPerf(ctx, req)
}
