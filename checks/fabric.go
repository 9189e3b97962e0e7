package checks

import (
	"slices"
	"strings"

	goversion "github.com/hashicorp/go-version"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// dvsModes are the modes that use a distributed switch.
var dvsModes = []answers.Mode{answers.PVRDMA, answers.SRIOV}

// switchChecks look at the distributed switch and its port group.
func switchChecks() []Check {
	return []Check{
		{
			ID: "DVS-EXIST-001", Scope: Switch, Modes: dvsModes, Quick: true, Fix: Automatic, Source: "seed 000",
			Criteria: "found / - / not", Remedy: "Create the distributed switch.",
			Run: func(f *Facts) []Answer {
				name := f.Answers.Switch.Name
				return []Answer{passIf(f.Inventory.Switch(name) != nil, backends.SwitchRef(name), "distributed switch %s %s", name, map[bool]string{true: "found", false: "not found"}[f.Inventory.Switch(name) != nil])}
			},
		},
		{
			ID: "DVS-VERSION-002", Scope: Switch, Modes: dvsModes, Quick: true, Fix: Manual, Source: "Broadcom KB 434420",
			Criteria: "not above the oldest host / older than it could be / above a host", Remedy: "Upgrade the hosts; a DVS upgrade cannot be taken back.",
			Run: theSwitch(func(f *Facts, sw *backends.Switch) Answer {
				t := backends.SwitchRef(sw.Name)
				have, err := goversion.NewVersion(sw.Version)
				if err != nil {
					return unknown(t, "the DVS calls its version %q", sw.Version)
				}
				for _, h := range f.hosts() {
					if v, err := goversion.NewVersion(h.Version); err == nil && v.LessThan(have) {
						return fail(t, "version %s is above %s of %s", sw.Version, h.Version, h.Name)
					}
				}
				return pass(t, "version %s, carried by every host", sw.Version)
			}),
		},
		{
			ID: "DVS-MEMBER-003", Scope: Switch, Modes: dvsModes, Quick: true, Fix: Automatic, Source: "seed 000, section 3",
			Criteria: "every host is a member and in sync / out of sync / no member", Remedy: "Add the host to the DVS, or rectify it.",
			Run: func(f *Facts) []Answer {
				sw := f.Inventory.Switch(f.Answers.Switch.Name)
				if sw == nil {
					return nil
				}
				return eachHost(func(_ *Facts, h *backends.Host) Answer {
					m, member := sw.Members[h.Name]
					if !member {
						return fail(backends.HostRef(h.Name), "no member of %s", sw.Name)
					}
					return warnIf(m.Status != "" && m.Status != "up", backends.HostRef(h.Name), "member of %s with %s, status %s", sw.Name, orNone(strings.Join(m.PNICs, ", ")), orNone(m.Status))
				})(f)
			},
		},
		{
			ID: "DVS-UPLINKS-004", Scope: Switch, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Source: "VMware: PVRDMA support",
			Criteria: "one active uplink, no standby, no LAG / unused names / several active", Remedy: "Reduce to one active uplink: PVRDMA does not team.",
			Run: func(f *Facts) []Answer {
				pg := f.Inventory.PortGroup(f.Answers.Switch.PortGroup)
				if pg == nil {
					return nil
				}
				t := backends.PortGroupRef(pg.Name)
				sw := f.Inventory.Switch(pg.Switch)
				return []Answer{passIf(len(pg.Active) == 1 && len(pg.Standby) == 0 && (sw == nil || sw.LAGs == 0), t,
					"active uplinks %s, standby %s", orNone(strings.Join(pg.Active, ", ")), orNone(strings.Join(pg.Standby, ", ")))}
			},
		},
		{
			ID: "DVS-NIOC-005", Scope: Switch, Modes: dvsModes, Quick: true, Fix: Automatic, Source: "seed 000; vSphere Networking 6.5, p. 182",
			Criteria: "NIOC off / on / on with SR-IOV", Remedy: "Disable Network I/O Control on this switch.",
			Run: theSwitch(func(f *Facts, sw *backends.Switch) Answer {
				t := backends.SwitchRef(sw.Name)
				if sw.NIOC && f.Answers.Mode == answers.SRIOV {
					return fail(t, "NIOC is on")
				}
				return warnIf(sw.NIOC, t, "NIOC is %s", onOff(sw.NIOC))
			}),
		},
		{
			ID: "DVS-MTU-006", Scope: Switch, Quick: true, Fix: Automatic, Source: "seed 000, section 5; seed 002",
			Criteria: ">= 9000 (or what the answers ask) / 4200 to 8999 / less", Remedy: "Raise the MTU of the DVS; its uplinks flap (KB 419088).",
			Run: theSwitch(func(f *Facts, sw *backends.Switch) Answer {
				t, want := backends.SwitchRef(sw.Name), min(9000, orInt(f.Answers.Switch.MTU, 9000))
				switch {
				case sw.MTU >= want:
					return pass(t, "MTU %d", sw.MTU)
				case sw.MTU >= 4200:
					return warn(t, "MTU %d, wanted %d", sw.MTU, want)
				}
				return fail(t, "MTU %d, wanted %d", sw.MTU, want)
			}),
		},
		{
			ID: "DVS-PG-007", Scope: Switch, Modes: dvsModes, Quick: true, Fix: Automatic, Source: "vhpc-toolkit",
			Criteria: "early binding with free ports / few ports / none or missing", Remedy: "Make the port group with early binding.",
			Run: func(f *Facts) []Answer {
				t := backends.PortGroupRef(f.Answers.Switch.PortGroup)
				pg := f.Inventory.PortGroup(f.Answers.Switch.PortGroup)
				switch {
				case pg == nil:
					return []Answer{fail(t, "the port group is not there")}
				case pg.Switch != f.Answers.Switch.Name:
					return []Answer{fail(t, "the port group is on %s", pg.Switch)}
				}
				return []Answer{warnIf(pg.Binding != "earlyBinding", t, "binding %s, %d ports", pg.Binding, pg.Ports)}
			},
		},
		{
			ID: "DVS-PG-VLAN-008", Scope: Switch, Modes: dvsModes, Quick: true, Fix: Automatic, Source: "vSphere Networking 6.7, p. 162",
			Criteria: "VLAN as planned / - / another", Remedy: "Set the VLAN of the port group.",
			Run: func(f *Facts) []Answer {
				pg := f.Inventory.PortGroup(f.Answers.Switch.PortGroup)
				if pg == nil {
					return nil
				}
				want := itoa(f.Answers.Switch.VLAN)
				return []Answer{passIf(pg.VLAN == want, backends.PortGroupRef(pg.Name), "VLAN %s, wanted %s", pg.VLAN, want)}
			},
		},
	}
}

func theSwitch(ask func(f *Facts, sw *backends.Switch) Answer) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		if sw := f.Inventory.Switch(f.Answers.Switch.Name); sw != nil {
			return []Answer{ask(f, sw)}
		}
		return nil
	}
}

func orInt(n, other int) int {
	if n == 0 {
		return other
	}
	return n
}

// vmChecks look at the VMs in vCenter.
func vmChecks() []Check {
	return []Check{
		{
			ID: "VM-HWVER-002", Scope: VM, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Source: "Broadcom KB 328676; VMware: PVRDMA support",
			Criteria: "vmx >= 17 / 13 to 16 / below 13", Remedy: "Upgrade the hardware version; it cannot be lowered again.",
			Run: eachVM(func(_ *Facts, v *backends.VM) Answer {
				t := backends.VMRef(v.Name)
				if v.Hardware < 13 {
					return fail(t, "vmx-%d", v.Hardware)
				}
				return warnIf(v.Hardware < 17, t, "vmx-%d", v.Hardware)
			}),
		},
		{
			ID: "VM-MEMRES-007", Scope: VM, Quick: true, Fix: Automatic, Source: "vSphere Networking 6.5, p. 167",
			Criteria: "all memory reserved / PVRDMA without / SR-IOV or GPUDirect without", Remedy: "Reserve all guest memory.",
			Run: eachVM(func(f *Facts, v *backends.VM) Answer {
				t := backends.VMRef(v.Name)
				if v.MemoryLocked && v.Reservation >= v.MemoryMB {
					return pass(t, "%d MB, all reserved", v.MemoryMB)
				}
				if f.Answers.Mode == answers.PVRDMA {
					return warn(t, "%d of %d MB reserved, locked to the maximum %t", v.Reservation, v.MemoryMB, v.MemoryLocked)
				}
				return fail(t, "%d of %d MB reserved, locked to the maximum %t", v.Reservation, v.MemoryMB, v.MemoryLocked)
			}),
		},
		{
			ID: "VM-NIC-FIRST-014", Scope: VM, Modes: pvrdmaOnly, Quick: true, Preflight: true, Fix: Automatic, Source: "seed 000, Creating a Bitfusion Server",
			Criteria: "the first adapter is not PVRDMA / - / it is, or there is none", Remedy: "Add a vmxnet3 adapter as the first one.",
			Run: eachVM(func(_ *Facts, v *backends.VM) Answer {
				t := backends.VMRef(v.Name)
				if len(v.Adapters) == 0 {
					return fail(t, "the VM has no network adapter")
				}
				return passIf(v.Adapters[0].Type != "pvrdma", t, "the first adapter is a %s", v.Adapters[0].Type)
			}),
		},
		{
			ID: "VM-NIC-PROTO-017", Scope: VM, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Source: "vSphere API",
			Criteria: "all adapters speak the planned protocol / - / mixed", Remedy: "Set the same device protocol on every VM.",
			Run: eachVM(func(f *Facts, v *backends.VM) Answer {
				t := backends.VMRef(v.Name)
				a := f.adapter(v, "pvrdma")
				if a == nil {
					return fail(t, "the VM has no PVRDMA adapter")
				}
				return passIf(a.Protocol == f.Answers.PVRDMA.Protocol, t, "protocol %s, wanted %s", orNone(a.Protocol), f.Answers.PVRDMA.Protocol)
			}),
		},
		{
			ID: "VM-NIC-CONNECT-018", Scope: VM, Quick: true, Fix: Automatic, Source: "seed 000, step 6",
			Criteria: "connected and connected at power-on / at power-on only / no", Remedy: "Connect the adapter, also at power-on.",
			Run: eachVM(func(f *Facts, v *backends.VM) Answer {
				t := backends.VMRef(v.Name)
				a := f.adapter(v, "pvrdma", "sriov")
				switch {
				case a == nil:
					return fail(t, "the VM has no RDMA adapter")
				case !a.Start:
					return fail(t, "%s is not connected at power-on", a.Label)
				}
				return warnIf(!a.Connected && v.Power == "poweredOn", t, "%s connected %t, at power-on %t", a.Label, a.Connected, a.Start)
			}),
		},
		{
			ID: "VM-NIC-DVS-019", Scope: VM, Modes: pvrdmaOnly, Quick: true, Fix: Automatic, Source: "seed 003",
			Criteria: "the PVRDMA adapter hangs on the planned DVS / - / elsewhere", Remedy: "Reconnect the adapter to the right port group.",
			Run: eachVM(func(f *Facts, v *backends.VM) Answer {
				t := backends.VMRef(v.Name)
				a := f.adapter(v, "pvrdma")
				if a == nil {
					return fail(t, "the VM has no PVRDMA adapter")
				}
				return passIf(a.Switch == f.Answers.Switch.Name, t, "port group %s on %s", a.PortGroup, orNone(a.Switch))
			}),
		},
		{
			ID: "VM-PLACEMENT-030", Scope: VM, Quick: true, Fix: Automatic, Source: "seed 003",
			Criteria: "on a selected host / on another / -", Remedy: "Move the VM to a host that was set up.",
			Run: eachVM(func(f *Facts, v *backends.VM) Answer {
				ok := slices.ContainsFunc(f.hosts(), func(h *backends.Host) bool { return h.Name == v.Host })
				return warnIf(!ok, backends.VMRef(v.Name), "the VM is on %s", v.Host)
			}),
		},
		{
			ID: "VM-TOOLS-031", Scope: VM, Quick: true, Fix: Automatic, Source: "seed 000",
			Criteria: "VMware Tools run / not running / -", Remedy: "Install open-vm-tools.",
			Run: eachVM(func(_ *Facts, v *backends.VM) Answer {
				return warnIf(v.Power == "poweredOn" && v.Tools != "guestToolsRunning", backends.VMRef(v.Name), "Tools: %s", orNone(v.Tools))
			}),
		},
	}
}
