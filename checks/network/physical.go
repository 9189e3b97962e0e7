package network

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// physicalChecks examine the physical switch as seen from hosts and pairs; nothing logs in to it.
func physicalChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "SW-LLDP-011", Scope: checks.Switch, Link: checks.InSwitch, Quick: true, HostCall: true, Fix: checks.Manual, Source: row.SRIOVStudy,
			Criteria: "the pNIC receives LLDP or CDP from a switch port / nothing received / -",
			Remedy:   "Enable LLDP on the physical switch.",
			Run: row.NICCall(func(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, sys *backends.HostSystem) checks.Answer {
				switch {
				case n.SpeedMbps == 0:
					return checks.Answer{} // HOST-PNIC-STATE-003 reports it
				case !sys.Neighbours.Known():
					return row.Unread(t, "the neighbour of "+n.Device, sys.Neighbours)
				}
				at, heard := sys.Neighbours.Value[n.Device]
				if !heard {
					return row.Warn(t, "%s receives no LLDP or CDP", n.Device)
				}
				return row.Pass(t, "%s is on %s port %s", n.Device, at.Switch, cmp.Or(at.Port, "none"))
			}),
		},
		{
			ID: "SW-PFC-012", Scope: checks.Switch, Link: checks.InSwitch, Fix: checks.Manual,
			Source:   row.GPUDirectGuide + ", Network Switch Configuration",
			Criteria: "confirmed, or no PFC is asked for / - / -; else unknown",
			Remedy:   "Apply the switch snippet (rdma-setup generate switch), then confirm it in the answers (confirmed.switch_pfc).",
			Run: func(f *checks.Facts) []checks.Answer {
				t := backends.SwitchRef("physical")
				switch {
				case f.Answers.QoS.Lossless != answers.LosslessPFC:
					return []checks.Answer{row.Pass(t, "qos.lossless is %s: the switch needs no PFC", cmp.Or(string(f.Answers.QoS.Lossless), "none"))}
				case f.Answers.Confirmed.SwitchPFC:
					return []checks.Answer{row.Pass(t, "PFC on priority %d is confirmed by the operator", f.Answers.QoS.Priority)}
				}
				return []checks.Answer{row.Waiting(t, "the switch cannot be read; confirmed.switch_pfc is false")}
			},
		},
		{
			ID: "SW-MTU-013", Scope: checks.Switch, Link: checks.InSwitch, Fix: checks.Manual, Source: row.SRIOVStudy + ", section 2.4",
			Criteria: "a ping of full MTU size crosses the switch / it does not, although DVS and guests allow it / -",
			Remedy:   "Set the MTU of the physical switch to 9216 or more.",
			Run:      switchMTU,
		},
		{
			ID: "SW-BUFFER-014", Scope: checks.Switch, Link: checks.InSwitch, Fix: checks.Manual, Source: row.GPUDirectGuide,
			Criteria: "no drops or pauses between two reads of the hosts' counters / some / more than 1000 a second",
			Remedy:   "Enlarge the lossless pool of the switch.",
			Run: row.NICCall(func(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, sys *backends.HostSystem) checks.Answer {
				s, unread := row.Traffic(t, n, sys)
				if unread != nil {
					return *unread
				}
				return row.Grade(float64(s.Dropped+s.Pause)/max(1, s.Over.Seconds()), 0, 1000, t, "%s: %s", n.Device,
					s.Grown("drops", s.Dropped, "pauses", s.Pause))
			}),
		},
	}
}

// switchMTU blames the physical switch only if the pings of all pairs between hosts fail: a single host would be that host's
// fault.
func switchMTU(f *checks.Facts) []checks.Answer {
	t, want := backends.SwitchRef("physical"), sizing.PingPayload(f.Answers.Switch.MTU, false)
	tried, through := 0, 0
	for _, p := range f.Pairs {
		a, b := f.Inventory.VM(p.From), f.Inventory.VM(p.To)
		if p.Payload == 0 || a == nil || b == nil || a.Host == b.Host {
			continue
		}
		if tried++; p.Payload >= want {
			through++
		}
	}
	if tried == 0 {
		return []checks.Answer{row.Waiting(t, "no pair on different hosts was pinged (check --pairs pings them)")}
	}
	sw := f.Inventory.Switch(f.Answers.Switch.Name)
	inside := sw != nil && sw.MTU < f.Answers.Switch.MTU || slices.ContainsFunc(f.Inventory.Guests, func(g backends.Guest) bool {
		i := g.Interface(f.RDMAMAC(g.VM))
		return i != nil && i.MTU < f.Answers.Switch.MTU
	})
	evidence := fmt.Sprintf("between hosts, %d of %d pairs pass %d bytes", through, tried, want)
	if through > 0 || inside {
		return []checks.Answer{row.Pass(t, "%s", evidence)}
	}
	return []checks.Answer{row.Warn(t, "%s, though DVS and guests allow them", evidence)}
}
