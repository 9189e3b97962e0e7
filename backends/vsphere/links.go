package vsphere

import (
	"context"
	"fmt"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// Event types for pNICs whose link goes down, and for those that ESXi disables because of a flapping link (vSphere: ESXi
// observation events, esx.problem.net.*).
const (
	linkDown     = "esx.problem.net.vmnic.linkstate.down"
	linkFlapping = "esx.problem.net.vmnic.linkstate.flapping"
)

// LinksLost counts how often the link of each pNIC went down since a time of vCenter's clock, by host and device name. It costs
// one call and is limited by vCenter's event retention.
func (c *Client) LinksLost(ctx context.Context, since time.Time) (map[string]map[string]int, error) {
	vim := c.conn.VIM()
	out := map[string]map[string]int{}
	if vim.ServiceContent.EventManager == nil {
		return out, nil
	}
	res, err := methods.QueryEvents(ctx, vim, &types.QueryEvents{This: *vim.ServiceContent.EventManager, Filter: types.EventFilterSpec{
		EventTypeId: []string{linkDown, linkFlapping}, Time: &types.EventFilterSpecByTime{BeginTime: &since},
	}})
	if err != nil {
		return nil, wire.Explain(err, "vCenter", "ask for events of links")
	}
	for _, e := range res.Returnval {
		x, ok := e.(*types.EventEx)
		if !ok || x.Host == nil || len(x.Arguments) == 0 {
			continue
		}
		if x.EventTypeId != linkDown && x.EventTypeId != linkFlapping {
			continue // the server does not support the filter
		}
		device := fmt.Sprint(x.Arguments[0].Value)
		if out[x.Host.Name] == nil {
			out[x.Host.Name] = map[string]int{}
		}
		out[x.Host.Name][device]++
	}
	return out, nil
}
