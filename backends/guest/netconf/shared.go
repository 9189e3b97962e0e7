package netconf

import (
	"maps"
	"slices"

	yaml "go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Shared returns a netplan file of this program that has a stanza of another file, with that file and the id of the stanza; "" if there
// is none. Earlier releases wrote such files: netplan merges stanzas of one id over all files, so a match for the RDMA adapter took the
// stanza away from every other interface.
func Shared(files []File) (own, other, id string) {
	ids := map[string]string{} // the file of the others, by stanza
	var mine []File
	for _, f := range files {
		_, ours := backends.NetFileOf(f.Path)
		switch {
		case !isNetplan(f.Path):
		case ours:
			mine = append(mine, f)
		default:
			for _, id := range stanzas(f) {
				ids[id] = f.Path
			}
		}
	}
	for _, f := range mine {
		for _, id := range stanzas(f) {
			if other := ids[id]; other != "" {
				return f.Path, other, id
			}
		}
	}
	return "", "", ""
}

// stanzas returns the ids under ethernets.
func stanzas(f File) []string {
	top, _ := readYAML(f, new(yaml.Node))
	network, _ := top["network"].(map[string]any)
	ethernets, _ := network["ethernets"].(map[string]any)
	return slices.Sorted(maps.Keys(ethernets))
}
