package updates

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
)

// WaitForUpdates calls WaitForUpdatesEx without options.
func (m methods) WaitForUpdates(ctx *simulator.Context, req *types.WaitForUpdates) soap.HasFault {
	set, answer := m.set(ctx, &types.WaitForUpdatesEx{This: req.This, Version: req.Version})
	if set == nil {
		return answer
	}
	return frame.Answer(types.WaitForUpdatesResponse{Returnval: *set}, nil)
}

func (m methods) set(ctx *simulator.Context, req *types.WaitForUpdatesEx) (*types.UpdateSet, soap.HasFault) {
	answer := m.WaitForUpdatesEx(ctx, req)
	res, _ := frame.Response(answer).(types.WaitForUpdatesExResponse)
	return res.Returnval, answer
}
