package checks

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// A selection is what the answers pick from the inventory. Rows ask for it again and again, and fabrics have thousands
// of VMs.
type selection struct {
	hosts, connected []*backends.Host
	vms              []*backends.VM
	byName           map[string]*backends.VM // all of the inventory, by name and by path
	missing          []string                // VMs of the answers that are not there
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
		case len(want.Names) == 0 && want.Cluster != "" && want.Cluster != h.Cluster:
		case want.Datacenter != "" && want.Datacenter != h.Datacenter:
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

// Hosts are the hosts that the answers select; without names every host in their cluster and datacenter.
func (f *Facts) Hosts() []*backends.Host { return f.selected().hosts }

// Connected leaves out hosts that do not answer: they have their own row (HOST-CONN-001), and what vCenter remembers
// of them is no fact.
func (f *Facts) Connected() []*backends.Host { return f.selected().connected }

// VMs are the VMs that the answers select, as far as they exist; absent ones are named by missing.
func (f *Facts) VMs() (found []*backends.VM, missing []string) {
	return f.selected().vms, f.selected().missing
}

// Guest is the guest of a VM; nil if nobody asked it.
func (f *Facts) Guest(vm string) *backends.Guest { return f.selected().guests[vm] }

// Managed reports whether the answers let the guest of a VM be set up: nothing is asked about the others.
func (f *Facts) Managed(vm string) bool { return f.selected().wanted[vm].Guest.Managed() }

// Hardware is the virtual hardware version that the answers give a VM.
func (f *Facts) Hardware(v *backends.VM) int {
	a := f.Answers
	need := sizing.HardwareFor(a.AdapterType(), a.PVRDMA.Protocol, a.GPUs() && a.GPUDirect.Backing == backends.DynamicBacking)
	return f.selected().wanted[v.Name].Hardware.From(v.Hardware, need)
}

// GuestOf is what the answers let be done in the guest of a VM.
func (f *Facts) GuestOf(vm string) answers.Guest { return f.Answers.GuestOf(f.selected().wanted[vm]) }

// Networks are the RDMA adapters that the answers give a VM.
func (f *Facts) Networks(vm string) []answers.Adapter {
	return f.Answers.Networks(f.selected().wanted[vm])
}

// NIC is the pNIC of a host that the answers describe: the uplink of their switch, else the best of those that fit; nil if there
// is none.
func (f *Facts) NIC(h *backends.Host) *backends.NIC { return f.selected().nics[h.Name] }

// HostOf is the host of a VM or its guest, and of a pair both with Between; "" for other targets and unknown VMs.
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
