package world

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// MAC returns the generated MAC address of adapter n of the VM with that index.
func MAC(vm, n int) string {
	return fmt.Sprintf("00:50:56:%02x:%02x:%02x", 0x80+n%0x40, vm>>8&0xff, vm&0xff)
}

// escaper escapes names as vCenter does: / \ and % are stored escaped (API reference, ManagedEntity.name).
var escaper = strings.NewReplacer("%", "%25", "/", "%2f", `\`, "%5c")

// Escaped returns a name as vCenter stores it.
func Escaped(name string) string { return escaper.Replace(name) }

// Unescaped returns a name as the user typed it.
func Unescaped(name string) string {
	return strings.NewReplacer("%25", "%", "%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`).Replace(name)
}

// UUID returns the UUID of object i of a kind. It is deterministic: version 4, variant 1 (RFC 9562, section 5.4).
func UUID(kind string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", kind, i))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// SwitchUUID returns the UUID of a DVS, in vCenter's format.
func SwitchUUID(name string) string {
	u := UUID("dvs/"+name, 0)
	var pairs []string
	for hex := range slices.Chunk([]byte(strings.ReplaceAll(u, "-", "")), 2) {
		pairs = append(pairs, string(hex))
	}
	return strings.Join(pairs[:8], " ") + "-" + strings.Join(pairs[8:16], " ")
}

// A Folder contains VMs or switches, and other folders.
type Folder struct {
	ID, Name string
	Parent   string // id of the parent folder, or of the root folder of a datacenter
}

// RootFolder returns the id of a root folder of a datacenter: kind is v for vm and n for network. It is "" for the first
// datacenter. Root folders are not among Folders and NetFolders.
func RootFolder(kind string, datacenter int) string {
	if datacenter == 0 {
		return ""
	}
	return fmt.Sprintf("group-%s%d", kind, 6000+datacenter)
}

// Folder returns the folder with an id, or nil if there is none.
func (s *State) Folder(id string) *Folder {
	return find(s.Folders, func(f *Folder) bool { return f.ID == id })
}

// SwitchDatacenter returns the number of the datacenter of a switch, which is that of its folder.
func (s *State) SwitchDatacenter(d *DVS) int { return s.folderDatacenter(s.NetFolders, "n", d.Folder) }

// FolderDatacenter returns the number of the datacenter of a VM folder, by its id.
func (s *State) FolderDatacenter(id string) int { return s.folderDatacenter(s.Folders, "v", id) }

func (s *State) folderDatacenter(list []*Folder, kind, id string) int {
	above := func(id string) *Folder { return find(list, func(f *Folder) bool { return f.ID == id }) }
	for f := above(id); f != nil; f = above(id) {
		id = f.Parent
	}
	for n := range s.Others {
		if id == RootFolder(kind, n+1) {
			return n + 1
		}
	}
	return 0
}

// Shown returns the name of a switch in vCenter.
func (d *DVS) Shown() string { return cmp.Or(d.Title, d.Name) }

// SwitchUUID returns the UUID of a new DVS, in the format of DVS UUIDs.
func (s *State) SwitchUUID() string { return SwitchUUID(fmt.Sprint(s.NextID())) }

// AddSwitch adds a DVS. If another folder has a switch of its name, its unique name becomes another one.
func (s *State) AddSwitch(d *DVS) {
	if s.Switch(d.Name) != nil {
		d.Title, d.Name = d.Name, fmt.Sprintf("%s (%s)", d.Name, d.UUID)
	}
	s.Switches = append(s.Switches, d)
}

// RemoveSwitch removes a DVS and releases its uplinks.
func (s *State) RemoveSwitch(name string) {
	s.Switches = slices.DeleteFunc(s.Switches, func(d *DVS) bool { return d.Name == name })
}

// RenameSwitch renames a DVS and updates all connections to it. Connections to a switch with a title use its unique name.
func (s *State) RenameSwitch(d *DVS, name string) {
	if d.Title != "" || s.Switch(name) != nil {
		d.Title = name
		return
	}
	s.reconnect(d.Name, "", name, "")
	d.Name = name
}

// RenamePortGroup renames a port group and updates all connections to it.
func (s *State) RenamePortGroup(d *DVS, g *PortGroup, name string) {
	s.reconnect(d.Name, g.Name, d.Name, name)
	g.Name = name
}

func (s *State) reconnect(dvs, group, toDVS, toGroup string) {
	for _, v := range s.VMs {
		for _, a := range v.Adapters {
			if a.DVS == dvs && (group == "" || a.PortGroup == group) {
				a.DVS = toDVS
				if toGroup != "" {
					a.PortGroup = toGroup
				}
			}
		}
	}
	for _, h := range s.Hosts {
		for _, k := range h.VMKs {
			if k.DVS == dvs && (group == "" || k.PortGroup == group) {
				k.DVS = toDVS
				if toGroup != "" {
					k.PortGroup = toGroup
				}
			}
		}
	}
}
