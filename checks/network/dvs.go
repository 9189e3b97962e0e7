// Package network contains the rows about switches: the DVS with its port groups, and the physical switch as seen from hosts and
// pairs.
package network

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	goversion "github.com/hashicorp/go-version"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Checks returns the rows of switches.
func Checks() []checks.Check {
	return append(slices.Concat(switchChecks(), physicalChecks()), railCheck())
}

// switchChecks examine the distributed switch and its port group.
func switchChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "DVS-EXIST-001", Scope: checks.Switch, Link: checks.InSwitch, Modes: row.OnDVS, Quick: true,
			Fixes:    []backends.Kind{backends.KindSwitch},
			Source:   row.BitfusionGuide,
			Criteria: "found / - / not", Remedy: "Create the distributed switch.",
			Run: func(f *checks.Facts) []checks.Answer {
				name := f.Answers.Switch.Name
				sw := f.Inventory.Switch(name)
				if sw == nil {
					return []checks.Answer{row.Fail(backends.SwitchRef(name), "vCenter has no distributed switch of this name")}
				}
				return []checks.Answer{row.Pass(backends.SwitchRef(name), "version %s in %s", sw.Version, sw.Datacenter)}
			},
		},
		{
			ID: "DVS-VERSION-002", Scope: checks.Switch, Link: checks.InSwitch, Modes: row.OnDVS, Quick: true, Fix: checks.Manual,
			Source:   "Broadcom KB 434420",
			Criteria: "the newest that all hosts support, or the one in the answers / older / newer than a host supports",
			Remedy:   "Upgrade the hosts that do not support it; a DVS upgrade cannot be undone.",
			Run:      theSwitch(switchVersion),
		},
		{
			ID: "DVS-MEMBER-003", Scope: checks.Switch, Link: checks.InSwitch, Modes: row.OnDVS, Quick: true,
			Fixes:    []backends.Kind{backends.KindMember},
			Source:   row.BitfusionGuide + ", section 3",
			Criteria: "every host is a member and in sync / out of sync / not a member",
			Remedy:   "Add the host to the DVS, or use Rectify in vCenter if it is out of sync.",
			Run: func(f *checks.Facts) []checks.Answer {
				sw := f.Inventory.Switch(f.Answers.Switch.Name)
				if sw == nil {
					return nil
				}
				return row.EachHost(func(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
					m, member := sw.Members[h.Name]
					if !member {
						return row.Fail(t, "no member of %s", sw.Name)
					}
					return row.WarnIf(m.Status != "" && m.Status != "up", t, "member of %s with %s, status %s", sw.Name,
						cmp.Or(strings.Join(m.PNICs, ", "), "none"), cmp.Or(m.Status, "none"))
				})(f)
			},
		},
		{
			ID: "DVS-UPLINKS-004", Scope: checks.Switch, Link: checks.InSwitch, Modes: row.PVRDMA, Quick: true, Fix: checks.Manual,
			Fixes:    []backends.Kind{backends.KindPortGroup},
			Source:   "vSphere Networking, PVRDMA Support",
			Criteria: "one active uplink, no standby, no LAG / unused uplink names / several active",
			Remedy:   "Reduce to one active uplink: PVRDMA does not support NIC teaming.",
			Run: eachGroup(func(f *checks.Facts, t backends.Ref, pg *backends.PortGroup) checks.Answer {
				sw, lags, names := f.Inventory.Switch(pg.Switch), 0, 0
				if sw != nil {
					lags, names = sw.LAGs, len(sw.Uplinks)
				}
				if len(pg.Active) != 1 || len(pg.Standby) > 0 || lags > 0 {
					return row.Fail(t, "active uplinks %s, standby %s, %d LAGs", cmp.Or(strings.Join(pg.Active, ", "), "none"),
						cmp.Or(strings.Join(pg.Standby, ", "), "none"), lags)
				}
				return row.WarnIf(names > max(1, f.Answers.Switch.Uplinks), t, "active uplink %s, one of %d names", pg.Active[0], names)
			}),
		},
		{
			ID: "DVS-NIOC-005", Scope: checks.Switch, Link: checks.InSwitch, Modes: row.OnDVS, Quick: true,
			Fixes:    []backends.Kind{backends.KindSwitch},
			Source:   row.BitfusionGuide + "; vSphere Networking 6.5, p. 182",
			Criteria: "NIOC off / on / on with SR-IOV", Remedy: "Disable Network I/O Control on this switch.",
			Run: theSwitch(func(f *checks.Facts, sw *backends.Switch) checks.Answer {
				t := backends.SwitchRef(sw.Name)
				if sw.NIOC && f.Answers.Mode == answers.SRIOV && sw.Ours() {
					return row.Fail(t, "NIOC is on")
				}
				return row.WarnIf(sw.NIOC, t, "NIOC is %s", row.OnOff(sw.NIOC))
			}),
		},
		{
			ID: "DVS-MTU-006", Scope: checks.Switch, Link: checks.InSwitch, Quick: true, Fixes: []backends.Kind{backends.KindSwitch},
			Source:   row.BitfusionGuide + ", section 5; " + row.SRIOVStudy,
			Criteria: ">= 9000 (or what the answers ask) / 4200 to 8999 / less", Remedy: "Raise the MTU of the DVS; its uplinks flap (KB 419088).",
			Run: theSwitch(func(f *checks.Facts, sw *backends.Switch) checks.Answer {
				t, want := backends.SwitchRef(sw.Name), min(9000, cmp.Or(f.Answers.Switch.MTU, 9000))
				switch {
				case sw.MTU >= want:
					return row.Pass(t, "MTU %d", sw.MTU)
				case sw.MTU >= 4200:
					return row.Warn(t, "MTU %d, wanted %d", sw.MTU, want)
				}
				return row.Fail(t, "MTU %d, wanted %d", sw.MTU, want)
			}),
		},
		{
			ID: "DVS-PG-007", Scope: checks.Switch, Link: checks.InSwitch, Modes: row.OnDVS, Quick: true,
			Fixes:    []backends.Kind{backends.KindPortGroup},
			Source:   "vhpc-toolkit",
			Criteria: "early binding with free ports / other binding, few ports / missing, on another switch, or full",
			Remedy:   "Create the port group with static (early) binding and enough ports.",
			Run: func(f *checks.Facts) []checks.Answer {
				return backends.Each(f.Answers.PortGroups(), func(name string) checks.Answer {
					return portGroup(f, backends.PortGroupRef(name), f.Inventory.PortGroup(name))
				})
			},
		},
		{
			ID: "DVS-PG-VLAN-008", Scope: checks.Switch, Link: checks.InSwitch, Modes: row.OnDVS, Quick: true,
			Fixes:    []backends.Kind{backends.KindPortGroup},
			Source:   "vSphere Networking 6.7, p. 162",
			Criteria: "VLAN as planned / - / another", Remedy: "Set the VLAN of the port group.",
			Run: eachGroup(func(f *checks.Facts, t backends.Ref, pg *backends.PortGroup) checks.Answer {
				return row.PassIf(pg.VLAN == strconv.Itoa(f.Answers.Switch.VLAN), t, "VLAN %s, wanted %d", pg.VLAN, f.Answers.Switch.VLAN)
			}),
		},
		{
			ID: "DVS-PG-SEC-009", Scope: checks.Switch, Link: checks.InSwitch, Modes: row.SRIOV, Quick: true, Fix: checks.Manual,
			Source:   "vSphere Networking 6.7, p. 154",
			Criteria: "guests keep their MAC, or are allowed to change it / - / a guest changed its MAC without being allowed to",
			Remedy:   "Set MAC address changes to Accept on the port group.",
			Run:      eachGroup(portSecurity),
		},
		{
			ID: "DVS-HEALTH-010", Scope: checks.Switch, Link: checks.InSwitch, Modes: row.OnDVS, Quick: true, Fix: checks.Manual,
			Source:   "vSphere API, DVS health check",
			Criteria: "VLAN and MTU agree with the physical switch / - / they do not; health check off: unknown",
			Remedy:   "Fix VLAN and MTU on the physical switch.",
			Run: theSwitch(func(_ *checks.Facts, sw *backends.Switch) checks.Answer {
				t := backends.SwitchRef(sw.Name)
				switch {
				case sw.Health == nil:
					return row.Waiting(t, "the health check was not read")
				case !sw.Health.Enabled:
					return row.Waiting(t, "the health check is off, so nothing was tested")
				}
				return row.PassIf(len(sw.Health.Mismatch) == 0, t, "the health check is on; mismatches: %s",
					cmp.Or(strings.Join(sw.Health.Mismatch, "; "), "none"))
			}),
		},
	}
}

// switchVersion compares the DVS with the newest available version that the oldest host supports.
func switchVersion(f *checks.Facts, sw *backends.Switch) checks.Answer {
	t := backends.SwitchRef(sw.Name)
	have, err := goversion.NewVersion(sw.Version)
	if err != nil {
		return row.Unknown(t, "the DVS reports the version %q", sw.Version)
	}
	var low *goversion.Version
	for _, h := range f.Connected() {
		v, err := goversion.NewVersion(h.Version)
		if err != nil {
			continue
		}
		if v.LessThan(have) {
			return row.Fail(t, "version %s is above %s of %s", sw.Version, h.Version, h.Name)
		}
		if low == nil || v.LessThan(low) {
			low = v
		}
	}
	newest := sw.Version
	for _, offer := range f.Inventory.VCenter.DVSVersions {
		if v, err := goversion.NewVersion(offer); err == nil && low != nil && !low.LessThan(v) {
			newest = offer
		}
	}
	older := newest != sw.Version && have.LessThan(goversion.Must(goversion.NewVersion(newest)))
	return row.WarnIf(older && f.Answers.Switch.Version != sw.Version, t, "version %s, all hosts support %s", sw.Version, newest)
}

func theSwitch(ask func(f *checks.Facts, sw *backends.Switch) checks.Answer) func(*checks.Facts) []checks.Answer {
	return func(f *checks.Facts) []checks.Answer {
		if sw := f.Inventory.Switch(f.Answers.Switch.Name); sw != nil {
			return []checks.Answer{ask(f, sw)}
		}
		return nil
	}
}

// eachGroup evaluates the port groups of the answers that exist; missing ones have their own row (DVS-PG-007).
func eachGroup(ask func(f *checks.Facts, t backends.Ref, pg *backends.PortGroup) checks.Answer) func(*checks.Facts) []checks.Answer {
	return func(f *checks.Facts) []checks.Answer {
		var out []checks.Answer
		for _, name := range f.Answers.PortGroups() {
			if pg := f.Inventory.PortGroup(name); pg != nil {
				out = row.Said(out, ask(f, backends.PortGroupRef(name), pg))
			}
		}
		return out
	}
}

func portGroup(f *checks.Facts, t backends.Ref, pg *backends.PortGroup) checks.Answer {
	switch {
	case pg == nil:
		return row.Fail(t, "the port group does not exist")
	case pg.Switch != f.Answers.Switch.Name:
		return row.Fail(t, "the port group is on %s", pg.Switch)
	}
	need := lacking(f, pg.Name)
	if pg.Free == 0 && need > 0 {
		return row.Fail(t, "binding %s, none of its %d ports is free, but %d more VMs need one", pg.Binding, pg.Ports, need)
	}
	few := pg.Free >= 0 && pg.Free < need
	return row.WarnIf(pg.Binding != "earlyBinding" || few, t, "binding %s, %d ports, %d free, %d more VMs need one", pg.Binding, pg.Ports,
		pg.Free, need)
}

// lacking counts selected VMs without an adapter on a port group: each will use a port.
func lacking(f *checks.Facts, group string) int {
	found, _ := f.VMs()
	n := 0
	for _, v := range found {
		if !slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.PortGroup == group }) {
			n++
		}
	}
	return n
}

// portSecurity compares the MAC from vCenter with the one that the guest uses: a guest that has no interface with the former
// changed it.
func portSecurity(f *checks.Facts, t backends.Ref, pg *backends.PortGroup) checks.Answer {
	var changed []string
	adapters, compared := 0, 0
	found, _ := f.VMs()
	for _, v := range found {
		g, a := f.Guest(v.Name), f.Adapter(v, "sriov")
		if a == nil || a.PortGroup != pg.Name {
			continue
		}
		adapters++
		if g == nil || g.Error != "" || len(g.Interfaces) < len(v.Adapters) {
			continue
		}
		compared++
		if g.Interface(strings.ToLower(a.MAC)) == nil {
			changed = append(changed, v.Name)
		}
	}
	switch {
	case adapters == 0:
		return checks.Answer{}
	case compared == 0:
		return row.Waiting(t, "none of the %d guests with an adapter on the port group was read", adapters)
	case len(changed) == 0:
		return row.Pass(t, "the MAC of the adapter is in use in all guests that were read: %d", compared)
	case pg.Security == nil:
		return row.Waiting(t, "%s changed the MAC; the policy was not read", strings.Join(changed, ", "))
	}
	return row.PassIf(pg.Security.MACChanges && pg.Security.Forged, t, "%s changed the MAC; changes accepted %t, forged transmits %t",
		strings.Join(changed, ", "), pg.Security.MACChanges, pg.Security.Forged)
}
