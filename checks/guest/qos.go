package guest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// portQoSCheck examines PFC, trust and ECN of a port that the guest owns: parameters of the host do not affect it.
func portQoSCheck() checks.Check {
	return checks.Check{
		ID: "GST-QOS-035", Scope: checks.Guest, Link: checks.InGuest, Modes: row.GPUDirect, Fix: checks.Automatic,
		Source:   "NVIDIA, Quality of Service (QoS); dcb-pfc(8), dcb-app(8), dcb-buffer(8)",
		Criteria: "PFC only for the priority of qos, to which the DSCP is mapped, with ECN / lost at the next boot, or in a shared buffer / otherwise; a VF passes",
		Remedy:   "Set PFC and DSCP trust on the card's port in the guest, or apply again.",
		Run: eachVerbs("GST-QOS-035", func(f *checks.Facts, t backends.Ref, d *backends.VerbsDevice) checks.Answer {
			q := f.Answers.QoS
			want := backends.QoSSpec{Priority: q.Priority, DSCP: q.DSCP, ECN: q.ECN}
			switch v := f.Inventory.VM(t.Name); {
			case q.Lossless != answers.LosslessPFC:
				return row.Pass(t, "qos.lossless is %s", cmp.Or(string(q.Lossless), "none"))
			case v == nil || len(v.Passthrough) == 0 || slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.MAC == d.MAC }):
				return row.Pass(t, "%s: the port belongs to the host", d.Name)
			case d.QoS == nil || d.QoS.Trust == "":
				return row.Waiting(t, "neither %s shows PFC of %s", nic.PortTools, d.Name)
			case !d.QoS.Meets(want):
				return row.Fail(t, "%s: PFC in priorities %v, trust %s, DSCP %d in priority %s%s; wanted all of it in priority %d alone",
					d.Name, d.QoS.PFC, d.QoS.Trust, q.DSCP, priorityOf(d.QoS, q.DSCP), ecnOf(d.QoS), q.Priority)
			case d.QoS.Kept == nil || d.QoS.Partly:
				return row.Warn(t, "%s: PFC and trust are set, but not persistent", d.Name)
			}
			return row.WarnIf(d.QoS.Shares(q.Priority), t, "%s: PFC in priority %d, to which DSCP %d is mapped%s", d.Name, q.Priority, q.DSCP,
				map[bool]string{true: "; its receive buffer is shared with priorities that may be dropped: " + nic.BufferCommands(q.Priority)}[d.QoS.Shares(q.Priority)])
		}),
	}
}

// priorityOf returns the priority that a DSCP maps to, - if it is not listed.
func priorityOf(q *backends.PortQoS, dscp int) string {
	if p, ok := q.DSCP[dscp]; ok {
		return strconv.Itoa(p)
	}
	return "-"
}

// ecnOf returns the priorities with ECN, if they are known.
func ecnOf(q *backends.PortQoS) string {
	if q.ECN == nil {
		return ""
	}
	return fmt.Sprintf(", ECN in priorities %v", q.ECN)
}
