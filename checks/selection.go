package checks

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// A selection is what the answers select from the inventory. It is cached, because rows use it often and fabrics have thousands
// of VMs.
type selection struct {
	hosts, connected []*backends.Host
	vms              []*backends.VM
	byName           map[string]*backends.VM // the complete inventory, by name and by path
	missing          []string                // VMs of the answers that do not exist
	wanted           map[string]answers.VM
	guests           map[string]*backends.Guest
	nics             map[string]*backends.NIC // by host
}

func (f *Facts) selected() *selection {
	if f.found != nil {
		return f.found
	}
	s := &selection{wanted: map[string]answers.VM{}, guests: map[string]*backends.Guest{}, nics: map[string]*backends.NIC{}}
	want := f.Answers.Hosts
	named, without := map[string]bool{}, map[string]bool{}
	for _, name := range want.Names {
		named[name] = true
	}
	for i := range f.Inventory.Hosts {
		h := &f.Inventory.Hosts[i]
		switch {
		case len(want.Names) > 0 && !named[h.Name]:
		case len(want.Names) == 0 && !h.In(want.Datacenter, want.Cluster), !h.In(want.Datacenter, ""):
		case f.leavesOut(h):
			without[h.Name] = true
		default:
			s.hosts = append(s.hosts, h)
			if !f.PassedOn(h) {
				s.nics[h.Name] = f.choose(h)
			}
		}
	}
	s.connected = slices.DeleteFunc(slices.Clone(s.hosts), func(h *backends.Host) bool { return h.State != "connected" })
	s.byName = map[string]*backends.VM{}
	for i := range f.Inventory.VMs {
		v := &f.Inventory.VMs[i]
		s.byName[v.Name], s.byName[v.Path] = v, v
	}
	for _, a := range f.Answers.VMs {
		if v := s.byName[a.Name]; v != nil && without[v.Host] {
			continue
		} else if v != nil {
			s.vms = append(s.vms, v)
			s.wanted[v.Name] = a
		} else {
			s.missing = append(s.missing, a.Name)
		}
	}
	for i := range f.Inventory.Guests {
		s.guests[f.Inventory.Guests[i].VM] = &f.Inventory.Guests[i]
	}
	f.found = s
	return s
}

// Hosts returns the hosts that the answers select; without names every host in their cluster and datacenter.
func (f *Facts) Hosts() []*backends.Host { return f.selected().hosts }

// Connected returns the hosts that are connected: the others have their own row (HOST-CONN-001), and vCenter's cached data about
// them is not reliable.
func (f *Facts) Connected() []*backends.Host { return f.selected().connected }

// VMs returns the existing VMs that the answers select; absent ones are in missing.
func (f *Facts) VMs() (found []*backends.VM, missing []string) {
	return f.selected().vms, f.selected().missing
}

// Guest returns the guest of a VM; nil if it was not read.
func (f *Facts) Guest(vm string) *backends.Guest { return f.selected().guests[vm] }

// Managed reports whether the answers allow setting up the guest of a VM: the others are not checked.
func (f *Facts) Managed(vm string) bool { return f.selected().wanted[vm].Guest.Managed() }

// Hardware returns the virtual hardware version of a VM in the answers.
func (f *Facts) Hardware(v *backends.VM) int {
	a := f.Answers
	need := sizing.HardwareFor(a.AdapterType(), a.PVRDMA.Protocol, a.GPUs() && a.GPUDirect.Backing == backends.DynamicBacking)
	return f.selected().wanted[v.Name].Hardware.From(v.Hardware, need)
}

// GuestOf returns what the answers allow in the guest of a VM.
func (f *Facts) GuestOf(vm string) answers.Guest { return f.Answers.GuestOf(f.selected().wanted[vm]) }

// Networks returns the RDMA adapters of a VM in the answers.
func (f *Facts) Networks(vm string) []answers.Adapter {
	return f.Answers.Networks(f.selected().wanted[vm])
}

// NIC returns the pNIC of a host that the answers describe: the uplink of their switch, else the best match; nil if there is
// none.
func (f *Facts) NIC(h *backends.Host) *backends.NIC { return f.selected().nics[h.Name] }

// HostOf returns the host of a VM or its guest, and of a pair both with Between; "" for other targets and unknown VMs.
func (f *Facts) HostOf(t backends.Ref) string {
	host := func(vm string) string {
		if v := f.selected().byName[vm]; v != nil {
			return v.Host
		}
		return ""
	}
	switch t.Type {
	case backends.TypeVM, backends.TypeGuest:
		return host(t.Name)
	case backends.TypePair:
		from, to, _ := strings.Cut(t.Name, Between)
		if a, b := host(from), host(to); a != "" && b != "" {
			return a + Between + b
		}
	}
	return ""
}
