package driver

import (
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// RDMA plans to enable RDMA in the driver of the chosen pNIC if it is disabled; its RDMA device appears after a reboot.
func RDMA(b *draft.Draft, h *draft.Host) {
	off := map[string][]*backends.NIC{}
	for _, n := range h.Ports {
		if n != nil && nic.RDMAOff(h.Host, n) {
			off[n.Driver] = append(off[n.Driver], n)
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(off)) {
		switchOn(b, h, off[driver])
	}
}

func switchOn(b *draft.Draft, h *draft.Host, ports []*backends.NIC) {
	devices := strings.Join(backends.Each(ports, func(n *backends.NIC) string { return n.Device }), " and ")
	d := &driverPart{Draft: b, h: h, ref: backends.HostRef(h.Name), sys: h.System, fam: nic.Of(ports[0].Driver)}
	id := d.reboot(1, "the RDMA device of "+devices+" appears at the next boot")
	set := d.set(backends.KindModuleParams, d.fam.Driver())
	d.Add(plan.Change{Setting: set, From: d.Now(set), To: current.Params(nic.WithRDMA(h.Host, ports...)),
		Within: []string{id}, Disrupts: []plan.Disruption{plan.HostReboot},
		Why: "switches RDMA on for " + devices + " (" + d.fam.RoCE().Source +
			"); the whole string is written, and values that others have set in it are kept"})
	h.Ready = append(h.Ready, id)
}

func last(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[len(ids)-1]
}
