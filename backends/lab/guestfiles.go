package lab

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// allVMs is the directory of guest files that every VM gets.
const allVMs = "all"

// layFiles adds the files below dir to the guests: dir/all/PATH to all of them, then dir/VM/PATH to one. Symbolic links stay links.
func layFiles(w *world.World, dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := map[string][]world.File{}
	for _, e := range list {
		if found[e.Name()], err = filesBelow(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return w.Update(func(s *world.State) ([]world.Event, error) {
		for name := range found {
			if name != allVMs && s.VM(name) == nil {
				return nil, fmt.Errorf("%s: the lab has no VM %q", filepath.Join(dir, name), name)
			}
		}
		for _, v := range s.VMs {
			v.Guest.Files = append(append(v.Guest.Files, found[allVMs]...), found[v.Name]...)
		}
		return nil, nil
	})
}

func filesBelow(dir string) ([]world.File, error) {
	var files []world.File
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f := world.File{Path: strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(dir)), Mode: 0o644}
		switch {
		case f.Path == "":
			return fmt.Errorf("%s: expected a directory with the name of a VM", name)
		case e.Type()&fs.ModeSymlink != 0:
			f.Link, err = os.Readlink(name)
		case e.Type().IsRegular():
			var text []byte
			text, err = os.ReadFile(name)
			f.Text = string(text)
		default:
			return fmt.Errorf("%s: neither a file nor a symbolic link", name)
		}
		// netplan warns about files that others can read; NetworkManager ignores them (nm-settings-keyfile(5)).
		if parent := filepath.Base(filepath.Dir(name)); parent == "netplan" || parent == "system-connections" {
			f.Mode = 0o600
		}
		files = append(files, f)
		return err
	})
	return files, err
}
