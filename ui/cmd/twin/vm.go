package twin

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func (t *Twin) vm(s *world.State, i int, v *backends.VM) error {
	w := &world.VM{
		Name: v.Name, Path: v.Path, Index: i, Host: v.Host, On: v.Power == "poweredOn", Template: v.Template, Hardware: v.Hardware,
		Firmware: v.Firmware,
		CPUs:     v.CPUs, MemoryMB: v.MemoryMB, Reserved: v.Reservation, Locked: v.MemoryLocked, UUID: world.UUID("vm", i),
		GuestID: v.GuestID, GuestName: v.GuestName, Latency: v.Latency, Nested: v.Nested, Manager: v.ManagedBy, Sharing: v.BusSharing,
		Service: strings.HasPrefix(v.Name, "vCLS-"), Extra: map[string]string{},
	}
	if v.CPUReserved != nil {
		w.CPUMHz = *v.CPUReserved
	}
	if v.NodeAffinity != nil && *v.NodeAffinity != "" {
		w.Extra["numa.nodeAffinity"] = *v.NodeAffinity
	}
	if v.VCenterVM {
		w.Product = "VMware vCenter Server"
	}
	if v.Name == v.Path { // other VMs have the same name
		w.Title = world.Unescaped(path.Base(v.Path))
	}
	if v.Snapshots > 0 {
		t.note(v.Name, "the number of snapshots is the same; their names are not")
	}
	for n := range v.Snapshots {
		w.Snap(fmt.Sprintf("snapshot %d", n+1), "")
	}
	for _, d := range v.RawDisks {
		w.RawDisks = append(w.RawDisks, world.RawDisk{LUN: d.LUN, Device: d.Device, Virtual: d.Compatibility == "virtualMode", DiskMode: d.Mode,
			KB: d.CapacityKB})
	}
	w.VApp = v.VApp
	t.folder(s, w)
	t.oddities(v)
	h := s.Host(v.Host)
	for _, other := range t.site.Hosts {
		for _, store := range v.Datastores {
			if other.Name != v.Host && other.Datacenter == t.site.Host(v.Host).Datacenter &&
				slices.Contains(t.site.Host(v.Host).Datastores, store) && !slices.Contains(other.Datastores, store) {
				w.Local = true
			}
		}
	}
	t.guest(s, w, v)
	t.virtualAdapters(w, v)
	t.extra(w, v)
	t.devices(w, h, v)
	s.VMs = append(s.VMs, w)
	return nil
}

// oddities notes facts of a VM that the lab does not support.
func (t *Twin) oddities(v *backends.VM) {
	if v.Power == "suspended" {
		t.note(v.Name, "is suspended; it is off in the twin")
	}
	if v.CPUHotAdd || v.MemHotAdd || v.FaultTolerant {
		t.note(v.Name, "hot-add and Fault Tolerance are off in the twin")
	}
	if v.State != "" && v.State != "connected" {
		t.note(v.Name, "is "+v.State+"; it is connected in the twin, unless its host is disconnected")
	}
}

func (t *Twin) folder(s *world.State, w *world.VM) {
	n := t.center(t.site.Host(w.Host).Datacenter)
	root := "/" + world.Escaped(s.DatacenterName(n)) + "/vm"
	below, ok := under(w.Path, "vm")
	if w.VApp != "" && n == 0 {
		if !ok || path.Dir(below) != "/" {
			t.note(w.Name, "its vApp is in a folder or in another vApp; in the twin it is in the folder vm")
		}
		w.Path = root + "/" + world.Escaped(w.VApp) + "/" + path.Base(w.Path)
		return
	}
	switch {
	case w.VApp != "":
		t.note(w.Name, "its vApp is not in the datacenter of the answers; in the twin the VM is in the folder vm")
		below, w.VApp = "", ""
	case !ok:
		t.note(w.Name, "its folder is not shown by vCenter; in the twin it is in the folder vm")
		w.Path = cmp.Or(w.Path, world.Escaped(backends.BaseName(w.Name)))
	}
	w.Folder, w.Path = folders(s, &s.Folders, "v", n, below), root+below+"/"+path.Base(w.Path)
}

// folders creates the folders of a path below a root folder of a datacenter, and returns the id of the last one. kind is v for the
// root folder vm and n for network.
func folders(s *world.State, list *[]*world.Folder, kind string, datacenter int, path string) string {
	id := world.RootFolder(kind, datacenter)
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
		name = world.Unescaped(name)
		i := slices.IndexFunc(*list, func(f *world.Folder) bool { return f.Name == name && f.Parent == id })
		if i < 0 {
			i = len(*list)
			*list = append(*list, &world.Folder{ID: fmt.Sprintf("group-%s%d", kind, s.NextID()), Name: name, Parent: id})
		}
		id = (*list)[i].ID
	}
	return id
}

// The first keys of vSphere's devices: ethernet cards, and passed-through devices.
const (
	firstEthernet = 4000
	firstPassthru = 13000
)

// slotName is the number of a PCI slot in an interface name of systemd: ens192, ens256f0.
var slotName = regexp.MustCompile(`^(?:ens|rocep)(\d+)`)

func (t *Twin) virtualAdapters(w *world.VM, v *backends.VM) {
	kinds := map[string]world.AdapterType{"vmxnet3": world.Vmxnet3, "pvrdma": world.PVRDMA, "sriov": world.SRIOV}
	functions := passthroughs(v)
	for n, a := range v.Adapters {
		kind, known := kinds[a.Type]
		if !known {
			kind = world.Other
			if a.Type != "e1000e" {
				t.note(v.Name, "adapters of type "+a.Type+": e1000e in the twin")
			}
		}
		w.Adapters = append(w.Adapters, &world.Adapter{Key: int32(firstEthernet + n), Type: kind, Label: a.Label, MAC: a.MAC, DVS: a.Switch,
			PortGroup: t.group(a.PortGroup),
			Protocol:  a.Protocol, Connected: a.Connected, Start: a.Start, GuestMTU: a.GuestMTU, PF: a.PF})
		at := w.Adapters[n]
		if kind == world.SRIOV {
			at.Key = int32(firstPassthru + functions(a.MAC))
		}
		if g := t.site.Guest(v.Name); g != nil && g.Interface(a.MAC) != nil {
			if m := slotName.FindStringSubmatch(g.Interface(a.MAC).Name); m != nil {
				at.Slot, _ = strconv.Atoi(m[1])
			}
		}
		if at.Slot == 0 {
			at.Slot = w.NextSlot()
		}
	}
}

// passthroughs returns a function that returns the number N of the pciPassthruN settings of an SR-IOV adapter: that of the site, where
// vCenter has stored its MAC, otherwise the next one in vCenter's order, from 31 down.
func passthroughs(v *backends.VM) func(mac string) int {
	next, known := 31, map[string]int{}
	for key, value := range v.Extra {
		if m := own.FindStringSubmatch(key); m != nil && strings.EqualFold(m[2], "generatedMACAddress") {
			known[strings.ToLower(value)], _ = strconv.Atoi(m[1])
		}
	}
	return func(mac string) int {
		if n, is := known[strings.ToLower(mac)]; is {
			return n
		}
		next--
		return next + 1
	}
}

// own matches the keys that vCenter sets for a device itself.
var own = regexp.MustCompile(`(?i)^pciPassthru(\d+)\.(id|pciSlotNumber|generatedMACAddress|pfId)$`)

func (t *Twin) extra(w *world.VM, v *backends.VM) {
	for key, value := range v.Extra {
		if !own.MatchString(key) {
			w.Extra[key] = value
		}
	}
	if v.Extra == nil && v.Passthrough != nil {
		t.note(v.Name, "pciPassthru settings were not read: none")
	}
}

func (t *Twin) devices(w *world.VM, h *world.Host, v *backends.VM) {
	for n, d := range v.Devices {
		p := &world.Passthrough{Key: int32(firstPassthru + n), Vendor: id(d.Vendor), Device: id(d.Device), Profile: d.Profile}
		if d.Group != "" { // two groups of one name become one in the twin
			p.Group = world.Place{Name: d.Group,
				Key: int32(slices.IndexFunc(v.Devices, func(o backends.AssignedDevice) bool { return o.Group == d.Group }))}
			for _, o := range v.Devices[:n+1] {
				if o.Group == d.Group {
					p.Group.Sequence++
				}
			}
		}
		switch d.Backing {
		case backends.FixedBacking:
			p.PCI = d.PCI
		case backends.DynamicBacking:
			p.Assigned = d.PCI
		}
		for key, value := range v.Extra {
			if strings.EqualFold(key, fmt.Sprintf("pciPassthru%d.pciSlotNumber", n)) {
				p.Slot, _ = strconv.Atoi(value)
			}
		}
		if p.Slot == 0 {
			p.Slot = w.NextSlot()
		}
		w.Devices = append(w.Devices, p)
		if w.On && d.Backing != backends.VGPUBacking && h.PCIDevice(d.PCI) == nil {
			t.note(v.Name, "runs with the device "+d.PCI+", which its host does not list; it is off in the twin")
			w.On, w.Guest.Up = false, false
		}
	}
}
