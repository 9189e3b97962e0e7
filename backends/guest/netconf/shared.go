package netconf

import (
	"maps"
	"path"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// Shared returns a netplan file of this program that has a stanza of another file, with that file and the id of the stanza; "" if there
// is none. Earlier releases wrote such files: netplan merges stanzas of one id over all files, so a match for the RDMA adapter took the
// stanza away from every other interface.
func Shared(files []File) (own, other, id string) {
	ids := map[string]string{} // the file of the others, by stanza
	var mine []File
	for _, f := range files {
		switch {
		case !isNetplan(f.Path):
		case strings.Contains(path.Base(f.Path), "-rdma-setup-"):
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
	var doc struct {
		Network struct {
			Ethernets map[string]any `yaml:"ethernets"`
		} `yaml:"network"`
	}
	if yaml.Unmarshal([]byte(f.Content), &doc) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(doc.Network.Ethernets))
}
