package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// pass, warn, fail and unknown answer for a target with what was seen.
func pass(t backends.Ref, format string, args ...any) Answer { return answer(t, Pass, format, args) }
func warn(t backends.Ref, format string, args ...any) Answer { return answer(t, Warn, format, args) }
func fail(t backends.Ref, format string, args ...any) Answer { return answer(t, Fail, format, args) }
func unknown(t backends.Ref, format string, args ...any) Answer {
	return answer(t, Unknown, format, args)
}

func answer(t backends.Ref, s Status, format string, args []any) Answer {
	return Answer{Target: t, Status: s, Evidence: fmt.Sprintf(format, args...)}
}

// passIf passes when ok holds, else fails, with one text for both.
func passIf(ok bool, t backends.Ref, format string, args ...any) Answer {
	if ok {
		return pass(t, format, args...)
	}
	return fail(t, format, args...)
}

// warnIf warns when bad holds, else passes.
func warnIf(bad bool, t backends.Ref, format string, args ...any) Answer {
	if bad {
		return warn(t, format, args...)
	}
	return pass(t, format, args...)
}

func (f *Facts) vcenter() backends.Ref {
	return backends.Ref{Type: backends.TypeVCenter, Name: f.Inventory.VCenter.URL}
}

// hosts are the hosts that the answers select; without names every host in their cluster and datacenter.
func (f *Facts) hosts() []*backends.Host {
	var out []*backends.Host
	want := f.Answers.Hosts
	for i := range f.Inventory.Hosts {
		h := &f.Inventory.Hosts[i]
		switch {
		case len(want.Names) > 0 && !slices.Contains(want.Names, h.Name):
		case len(want.Names) == 0 && want.Cluster != "" && want.Cluster != h.Cluster:
		case want.Datacenter != "" && want.Datacenter != h.Datacenter:
		default:
			out = append(out, h)
		}
	}
	return out
}

// eachHost asks about every selected host that is connected; the others have their own row (HOST-CONN-001).
func eachHost(ask func(f *Facts, h *backends.Host) Answer) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		var out []Answer
		for _, h := range f.hosts() {
			if h.State == "connected" {
				out = append(out, ask(f, h))
			}
		}
		return out
	}
}

// eachNIC asks about the RDMA pNIC of every selected host.
func eachNIC(ask func(f *Facts, h *backends.Host, n *backends.NIC) Answer) func(*Facts) []Answer {
	return eachHost(func(f *Facts, h *backends.Host) Answer {
		n := f.nic(h)
		if n == nil {
			return fail(backends.HostRef(h.Name), "no pNIC is what the answers describe (%s)", describe(f.Answers.NIC))
		}
		return ask(f, h, n)
	})
}

func describe(n answers.NIC) string {
	var parts []string
	if s := n.Speed.String(); s != "" {
		parts = append(parts, s)
	}
	for _, s := range []string{n.Driver, n.Device} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if len(n.MACs) > 0 {
		parts = append(parts, "MAC")
	}
	if len(parts) == 0 {
		return "any RDMA pNIC"
	}
	return strings.Join(parts, ", ")
}

// nic is the pNIC of a host that the answers describe: the uplink of their switch, else the best of those that fit.
func (f *Facts) nic(h *backends.Host) *backends.NIC {
	want := f.Answers.NIC
	var best *backends.NIC
	for i := range h.NICs {
		n := &h.NICs[i]
		if mac, given := want.MACs[h.Name]; given && !strings.EqualFold(string(mac), n.MAC) {
			continue
		}
		if want.Device != "" && want.Device != n.Device && !strings.EqualFold(want.Device, n.PCI) {
			continue
		}
		if want.Driver != "" && want.Driver != n.Driver {
			continue
		}
		if speed := want.Speed.Mbps(); speed != 0 && n.SpeedMbps != speed && (n.SpeedMbps != 0 || n.MaxSpeedMbps != speed) {
			continue
		}
		if best == nil || rank(f, n) > rank(f, best) {
			best = n
		}
	}
	return best
}

func rank(f *Facts, n *backends.NIC) int {
	r := 0
	if n.Switch != "" && n.Switch == f.Answers.Switch.Name {
		r += 8
	}
	if n.Eligible {
		r += 4
	}
	if n.RDMADevice != "" {
		r += 2
	}
	if n.SpeedMbps > 0 {
		r++
	}
	return r
}

// vms are the VMs that the answers select, as far as they exist; absent ones are named by missing.
func (f *Facts) vms() (found []*backends.VM, missing []string) {
	for _, v := range f.Answers.VMs {
		if vm := f.Inventory.VM(v.Name); vm != nil {
			found = append(found, vm)
		} else {
			missing = append(missing, v.Name)
		}
	}
	return found, missing
}

func eachVM(ask func(f *Facts, v *backends.VM) Answer) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		found, missing := f.vms()
		var out []Answer
		for _, v := range found {
			out = append(out, ask(f, v))
		}
		for _, name := range missing {
			out = append(out, unknown(backends.VMRef(name), "there is no VM of this name"))
		}
		return out
	}
}

// eachGuest asks about every guest that could be asked; the others are unknown with the reason. Guests of VMs that are
// off before a run are asked once they are on.
func eachGuest(ask func(f *Facts, g *backends.Guest) Answer) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		found, _ := f.vms()
		var out []Answer
		for _, v := range found {
			t := backends.GuestRef(v.Name)
			switch g := f.Inventory.Guest(v.Name); {
			case g == nil && v.Power != "poweredOn":
				a := unknown(t, "the VM is %s", v.Power)
				a.Quiet = f.Before
				out = append(out, a)
			case g == nil:
				out = append(out, unknown(t, "the guest was not asked"))
			case g.Error != "":
				out = append(out, unknown(t, "the guest could not be asked: %s", g.Error))
			default:
				out = append(out, ask(f, g))
			}
		}
		return out
	}
}

// adapter is the RDMA adapter of a VM on the answers' port groups; nil when there is none.
func (f *Facts) adapter(v *backends.VM, types ...string) *backends.Adapter {
	for i := range v.Adapters {
		if slices.Contains(types, v.Adapters[i].Type) {
			return &v.Adapters[i]
		}
	}
	return nil
}

// same compares a value over hosts and names who differs from the most.
func same(f *Facts, what string, of func(*backends.Host) string) []Answer {
	hosts := f.hosts()
	count := map[string]int{}
	for _, h := range hosts {
		count[of(h)]++
	}
	if len(hosts) == 0 {
		return nil
	}
	most := ""
	for v, n := range count {
		if n > count[most] || n == count[most] && v < most {
			most = v
		}
	}
	var out []Answer
	for _, h := range hosts {
		v := of(h)
		out = append(out, warnIf(v != most, backends.HostRef(h.Name), "%s %s, most have %s", what, v, most))
	}
	return out
}
