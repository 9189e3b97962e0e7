package twin

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func (t *Twin) host(i int, h *backends.Host) *world.Host {
	w := scenario.PlainHost(i, t.made)
	w.Name, w.Version, w.Build = h.Name, h.Version, h.Build
	w.Make = world.Server{Vendor: h.Vendor, Model: h.Model, CPU: h.CPUModel, MHz: h.CPUMHz}
	w.Maintenance, w.RebootRequired, w.NoThreads = h.InMaintenance, h.RebootRequired, !h.Hyperthreads
	w.Sockets, w.Cores, w.MemoryMB = max(1, h.Sockets), cmp.Or(h.Cores, w.Cores), cmp.Or(h.MemoryMB, w.MemoryMB)
	w.VGPUs = h.Profiles
	if a := t.answers; a != nil && a.GPUDirect.Manager != "" && len(h.Profiles) == 0 {
		for _, vm := range slices.Sorted(maps.Keys(a.GPUDirect.GPUs)) {
			if g := a.GPUDirect.GPUs[vm]; g.Profile != "" && !slices.Contains(w.Shares, g.Profile) {
				w.Shares = append(w.Shares, g.Profile)
			}
		}
		t.note(h.Name, "which vGPUs it offers with the vGPU Manager is not known: those of the answers")
	}
	for _, name := range h.DeviceGroups {
		w.Groups = append(w.Groups, world.DeviceGroup{Name: name, VGPUs: h.GroupVGPUs[name]})
	}
	if h.GraphicsType != "shared" { // the default of a fresh host
		w.Shared = h.GraphicsType
	}
	if !h.BootTime.IsZero() {
		w.BootTime = h.BootTime
	}
	switch h.State {
	case "disconnected":
		w.Disconnected = true
	case "notResponding":
		w.State = world.Down
	}
	if h.Lockdown != "" {
		w.Lockdown = "lockdown" + strings.ToUpper(h.Lockdown[:1]) + h.Lockdown[1:]
	}
	w.Exceptions = system(h).Exceptions.Value
	t.settings(h, w)
	t.adapters(h, w)
	t.networks(h, w)
	t.software(h, w)
	return w
}

// settings copies the details of the inventory, which are missing for hosts that the answers do not name.
func (t *Twin) settings(h *backends.Host, w *world.Host) {
	if h.Firewall == nil {
		t.note(h.Name, "settings (PVRDMA vmknic, firewall, services, time servers, power policy) were not read: those of a new host are used")
		return
	}
	if v, has := h.Options[backends.VMKNICOption]; has {
		w.Options[backends.VMKNICOption] = v
	} else {
		delete(w.Options, backends.VMKNICOption)
	}
	w.Firewall = nil
	for _, key := range slices.Sorted(maps.Keys(h.Firewall)) {
		r := h.Firewall[key]
		w.Firewall = append(w.Firewall, &world.Ruleset{Key: key, Enabled: r.Enabled, AllIP: r.AllIP, Networks: r.Networks})
	}
	fresh := w.Services
	if len(h.Services) > 0 {
		w.Services = nil
	}
	for _, key := range slices.Sorted(maps.Keys(h.Services)) {
		s := &world.Service{Key: key, Label: key, Running: h.Services[key].Running, Policy: h.Services[key].Policy}
		for _, f := range fresh {
			if f.Key == key {
				s.Label = f.Label
			}
		}
		w.Services = append(w.Services, s)
	}
	w.NTP, w.PowerPolicy = h.NTP, h.PowerPolicy
	w.OwnPower = len(h.PowerPolicies) == 0
}

func (t *Twin) networks(h *backends.Host, w *world.Host) {
	for _, v := range h.VSwitches {
		w.VSwitch = append(w.VSwitch, &world.VSwitch{Name: v.Name, MTU: v.MTU, Uplinks: v.PNICs, PortGroups: v.PortGroups})
	}
	for _, n := range h.NICs {
		if n.Use.Opaque && !slices.ContainsFunc(w.Opaque, func(o *world.OpaqueSwitch) bool { return o.Name == n.Switch }) {
			w.Opaque = append(w.Opaque, &world.OpaqueSwitch{ID: n.Switch, Name: n.Switch})
		}
		for _, o := range w.Opaque {
			if n.Use.Opaque && o.Name == n.Switch {
				o.Uplinks = append(o.Uplinks, n.Device)
			}
		}
	}
	for _, k := range h.VMKs {
		v := &world.VMK{Device: k.Device, MAC: k.MAC, IP: k.IP, Prefix: k.PrefixLen, MTU: k.MTU, DHCP: k.DHCP, PortGroup: t.group(k.PortGroup),
			NetStack: k.NetStack,
			Roles:    slices.DeleteFunc(slices.Clone(k.Roles), func(r string) bool { return r == "nfs" })}
		if t.site.Switch(k.Switch) != nil && !slices.ContainsFunc(w.VSwitch, func(s *world.VSwitch) bool { return s.Name == k.Switch }) {
			v.DVS = k.Switch
		} else {
			v.VSwitch = k.Switch
		}
		if slices.Contains(k.Roles, "management") {
			w.Address = k.IP
		}
		if slices.Contains(k.Roles, "nfs") {
			t.note(h.Name+"/"+k.Device, "mounts NFS, which the twin does not simulate")
		}
		w.VMKs = append(w.VMKs, v)
	}
}

func (t *Twin) switches(s *world.State) {
	for _, sw := range t.site.Switches {
		d := &world.DVS{Name: sw.Name, UUID: sw.UUID, Version: sw.Version, MTU: sw.MTU, NIOC: sw.NIOC, Uplinks: sw.Uplinks,
			Discovery: sw.Discovery, Note: sw.Note}
		for _, h := range s.Hosts {
			if m, is := sw.Members[h.Name]; is {
				d.Members = append(d.Members, &world.Member{Host: h.Name, PNICs: m.PNICs, ENS: m.ENS, Interrupt: m.Interrupt != nil && *m.Interrupt})
			}
		}
		for _, g := range t.site.PortGroups {
			if g.Switch == sw.Name && !slices.ContainsFunc(d.PortGroups, func(p *world.PortGroup) bool { return p.Name == t.group(g.Name) }) {
				d.PortGroups = append(d.PortGroups, t.portGroup(sw.Name, g))
			}
		}
		if sw.Name == sw.Path { // another switch has the name, too
			d.Title = world.Unescaped(path.Base(sw.Path))
		}
		below, _ := under(sw.Path, "network")
		d.Folder = folders(s, &s.NetFolders, "n", t.center(sw.Datacenter), below)
		if sw.LAGs > 0 || sw.NSX || sw.OffloadID != "" {
			t.note(sw.Name, "LAGs, NSX and DPU offload of the switch are not simulated")
		}
		s.Switches = append(s.Switches, d)
	}
}

// group is the name of a port group in its own folder; other folders may have the name, too.
func (t *Twin) group(name string) string {
	if g := t.site.PortGroup(name); g != nil && g.Path == name {
		return world.Unescaped(path.Base(name))
	}
	return name
}

func (t *Twin) portGroup(sw string, g backends.PortGroup) *world.PortGroup {
	t.note("", "port groups have a fixed number of ports, and choose an uplink by the originating port")
	p := &world.PortGroup{Name: t.group(g.Name), Uplink: g.Uplink, Ports: g.Ports, Binding: g.Binding, Active: g.Active, Standby: g.Standby}
	if n, err := strconv.Atoi(g.VLAN); err == nil {
		p.VLAN = n
	} else if p.Trunk = g.VLAN; strings.HasPrefix(g.VLAN, "pvlan") || strings.Contains(g.VLAN, ",") {
		p.Trunk = "0-4094"
		t.note(sw+"/"+g.Name, "private VLANs and lists of VLANs: a trunk of all VLANs is used")
	}
	if m := g.Security; m != nil && (m.MACChanges || m.Forged) {
		p.Setting = model.Security(m.MACChanges, m.Forged)
	}
	return p
}
