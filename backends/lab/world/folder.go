package world

import "fmt"

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
