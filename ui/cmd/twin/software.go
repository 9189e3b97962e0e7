package twin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

func (t *Twin) software(h *backends.Host, w *world.Host) {
	sys := system(h)
	w.VIBs = scenario.VIBs()
	if sys.VIBs.Known() {
		w.VIBs = packages(w.VIBs, sys)
	} else {
		t.note(h.Name, "VIBs were not read: those of a host with Mellanox's drivers and tools")
	}
	if sys.Acceptance.Known() {
		w.Acceptance = sys.Acceptance.Value
	}
	if sys.SecureBoot != nil {
		w.SecureBoot = *sys.SecureBoot
	} else {
		t.note(h.Name, "Secure Boot of the host was not read: off")
	}
	w.KernelLog = sys.Log
	drivers := map[string]string{}
	for _, p := range w.PNICs {
		drivers[p.Driver] = p.DriverVersion
		if p.RDMA != nil {
			drivers[p.RDMA.Driver] = p.DriverVersion
		}
	}
	for _, m := range scenario.Modules() {
		_, runs := drivers[m.Name]
		if m.Name == world.Nmlx5 || slices.Contains(nic.RDMAModules(), m.Name) {
			m.Loaded, m.Version = runs, drivers[m.Name]
		}
		w.Modules = append(w.Modules, m)
	}
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		if w.Module(name) == nil && name != "" {
			w.Modules = append(w.Modules, &world.Module{Name: name, Loaded: true, Version: drivers[name]})
		}
	}
	t.parameters(h, w)
}

// depot adds the files that the answers name for components to the datastore, with the contents that a host read in them.
func (t *Twin) depot(s *world.State) {
	for _, h := range t.site.Hosts {
		for _, c := range system(&h).Offers {
			if c.Name == "" {
				continue
			}
			v := world.VIB{Name: c.Name, Version: c.Version, Vendor: "VMware", Acceptance: c.Acceptance}
			for _, k := range scenario.VIBs() {
				if k.Name == c.Name {
					v.Vendor = k.Vendor
				}
			}
			pkg := s.Package(c.Path)
			if pkg == nil {
				pkg = &world.Package{Path: c.Path}
				s.Depot = append(s.Depot, pkg)
			}
			if !slices.ContainsFunc(pkg.VIBs, func(have world.VIB) bool { return have.Name == v.Name }) {
				pkg.VIBs = append(pkg.VIBs, v)
			}
		}
	}
}

// packages returns the VIBs of a host, with vendors that the lab supports.
func packages(known []world.VIB, sys *backends.HostSystem) []world.VIB {
	var list []world.VIB
	add := func(name string, v backends.VIB, pending string) {
		p := world.VIB{Name: name, Version: v.Version, Vendor: "VMware", Acceptance: v.Acceptance, Installed: known[0].Installed,
			Pending: pending}
		for _, k := range known {
			if k.Name == name {
				p.Vendor = k.Vendor
			}
		}
		list = append(list, p)
	}
	for _, name := range slices.Sorted(maps.Keys(sys.VIBs.Value)) {
		pending := ""
		if next, stays := sys.NextVIBs.Value[name]; sys.NextVIBs.Known() && (!stays || next.Version != sys.VIBs.Value[name].Version) {
			pending = world.PendingRemove
		}
		add(name, sys.VIBs.Value[name], pending)
	}
	for _, name := range slices.Sorted(maps.Keys(sys.NextVIBs.Value)) {
		if sys.VIBs.Value[name].Version != sys.NextVIBs.Value[name].Version {
			add(name, sys.NextVIBs.Value[name], world.PendingInstall)
		}
	}
	return list
}

// parameters copies the parameters of modules. Set ones are assumed to be active, except for VFs, which can be counted.
func (t *Twin) parameters(h *backends.Host, w *world.Host) {
	sys := system(h)
	if len(sys.Modules) == 0 {
		t.note(h.Name, "parameters of kernel modules were not read: none is set except max_vfs, which is derived from the VFs")
	}
	for _, name := range slices.Sorted(maps.Keys(sys.Modules)) {
		f := sys.Modules[name]
		if f.State == backends.FactAbsent {
			w.Modules = slices.DeleteFunc(w.Modules, func(m *world.Module) bool { return m.Name == name })
			continue
		}
		m := w.Module(name)
		if !f.Known() || m == nil {
			continue
		}
		known := m.Parameters
		m.Parameters = nil
		for _, p := range f.Value.Known {
			row := &world.Parameter{Name: p, Type: "string", Value: f.Value.Params[p], Active: f.Value.Params[p]}
			for _, k := range known {
				if k.Name == p {
					row.Type, row.Description = k.Type, k.Description
				}
			}
			m.Parameters = append(m.Parameters, row)
		}
		if len(f.Value.Params) > 0 {
			t.note(h.Name, "module parameters that are set have been active since the last boot")
		}
	}
	t.functions(h, w)
}

// functions creates the existing number of VFs: by max_vfs if that is set or was not read, else by vCenter's own setting.
func (t *Twin) functions(h *backends.Host, w *world.Host) {
	for _, driver := range []string{world.Nmlx5} {
		var list []string
		some, byVCenter := false, false
		for _, p := range w.Ports(driver) {
			n := h.NIC(p.Device)
			vfs := 0
			if n != nil && n.SRIOV != nil {
				vfs = n.SRIOV.VFs
				some = some || vfs > 0
				byVCenter = byVCenter || n.SRIOV.Requested != n.SRIOV.VFs
			}
			list = append(list, fmt.Sprint(vfs))
		}
		m := w.Module(driver)
		if m == nil || m.Parameter("max_vfs") == nil {
			continue
		}
		set := m.Parameter("max_vfs")
		read := system(h).Modules[driver].Known()
		if byVCenter || some && read && set.Value == "" {
			for _, p := range w.Ports(driver) {
				if n := h.NIC(p.Device); n != nil && n.SRIOV != nil && (n.SRIOV.Enabled || n.SRIOV.VFs > 0) {
					p.SRIOV = &world.SRIOVRequest{Enabled: n.SRIOV.Enabled, VFs: n.SRIOV.VFs, Booted: true}
					if n.SRIOV.Requested != n.SRIOV.VFs {
						t.note(h.Name+"/"+p.Device, "VFs that were requested in vCenter and wait for a reboot are not simulated")
					}
				}
			}
			continue
		}
		if set.Active = ""; some {
			set.Active = strings.Join(list, ",")
		}
		if !read {
			set.Value = set.Active
		}
	}
}
