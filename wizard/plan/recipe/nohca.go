package recipe

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// usingRDMA is VMware's text on how PVRDMA adapters talk to each other.
const usingRDMA = "vSphere Networking 7.0, Using RDMA in vSphere"

// plainMember plans the membership of a host without an RDMA card: with an ordinary pNIC, or with none.
func (r *rail) plainMember(sw *backends.Switch, h *draft.Host, uplinks []*backends.NIC) {
	ref := backends.HostRef(h.Name)
	if len(uplinks) > 1 {
		r.Refuse(ref, "HOST-PNIC-RDMA-001", "name one by nic.macs", "has no RDMA card, and several ordinary pNICs could be its uplink: %s",
			strings.Join(devices(uplinks), ", "))
		return
	}
	if mac := sizing.PNICWish(r.view, h.Name).MAC; mac != "" && len(uplinks) == 0 {
		r.Refuse(ref, "HOST-PNIC-STATE-003", "correct nic.macs, check cable and switch port, or leave the host out of nic.macs",
			"has no RDMA card, and no free pNIC with link has the MAC address %s of nic.macs", mac)
		return
	}
	c := plan.Change{
		Setting: draft.MemberSetting(h.Name, r.want.Switch.Name),
		From:    backends.Absent,
		To:      backends.ValueOf(backends.MemberSpec{PNICs: []string{}}),
		After:   []string{draft.SwitchID(r.want.Switch.Name)},
		Why:     "this host has no RDMA card and no free pNIC with link; its VMs connect to each other only",
	}
	if len(uplinks) == 0 {
		if r.Answers.PVRDMA.VMKNic.Creates(h.Name) {
			r.Refuse(ref, "HOST-VMKNIC-EXIST-002", fmt.Sprintf("name one that it has: pvrdma.vmknic.names: {%s: vmk0}", h.Name),
				"has no RDMA card and no free pNIC with link: a vmknic that is created there reaches no other host")
		}
		r.NoteEach(h.Name, "[has|have] no RDMA card and no free pNIC with link: [its|their] PVRDMA adapters reach only VMs on the same host, by copying memory (%s)", usingRDMA)
		r.joins(sw, h, nil, c)
		return
	}
	n := uplinks[0]
	c.To = backends.ValueOf(backends.MemberSpec{PNICs: []string{n.Device}})
	c.Why = fmt.Sprintf("this host has no RDMA card; %s (%s, %s) connects its VMs to the others by TCP", n.Device, backends.Speed(n.SpeedMbps), n.Driver)
	r.NoteEach(h.Name, "[has|have] no RDMA card: [its|their] PVRDMA adapters reach VMs on the same host by copying memory, and VMs on other hosts by TCP, "+
		"which is slower than RDMA (%s); both are measured and not judged", usingRDMA)
	r.joins(sw, h, n, c)
}
