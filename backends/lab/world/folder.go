package world

// A Folder contains VMs or switches, and other folders.
type Folder struct {
	ID, Name string
	Parent   string // id of the parent folder, "" for the root folder vm or network
}

// Folder returns the folder with an id, or nil if there is none.
func (s *State) Folder(id string) *Folder {
	return find(s.Folders, func(f *Folder) bool { return f.ID == id })
}
