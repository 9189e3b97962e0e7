package world

// A Folder holds VMs or switches, and folders.
type Folder struct {
	ID, Name string
	Parent   string // id of the folder above, "" for vm or network
}

// Folder finds a folder by its id; nil when there is none.
func (s *State) Folder(id string) *Folder {
	return find(s.Folders, func(f *Folder) bool { return f.ID == id })
}
