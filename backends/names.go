package backends

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
)

// vCenter writes / \ and % in names as %2f, %5c and %25 (vSphere Web Services API, ManagedEntity.name).
var unescaper = strings.NewReplacer("%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`, "%25", "%")

// DisplayName returns a name from vCenter, or one part of an inventory path, as vCenter displays it.
func DisplayName(name string) string { return unescaper.Replace(name) }

// BaseName returns the last part of an inventory path as vCenter displays it. A name that is not a path is returned unchanged.
func BaseName(name string) string {
	if !strings.HasPrefix(name, "/") {
		return name
	}
	return DisplayName(name[strings.LastIndexByte(name, '/')+1:])
}

// In reports whether a host is in a datacenter and in a cluster, each given by its name, also one that several have, or by its
// inventory path; "": any.
func (h *Host) In(datacenter, cluster string) bool {
	return Within(datacenter, h.Datacenter, h.Path) && (cluster == "" || h.Cluster != "" && Within(cluster, h.Cluster, h.Path))
}

// Within reports whether want names the datacenter or cluster that an inventory shows as name, above an object with the given
// inventory path. Want is a name or an inventory path; "": any.
func Within(want, name, path string) bool {
	return want == "" || want == name || want == BaseName(name) || strings.HasPrefix(want, "/") && strings.HasPrefix(path, want+"/")
}

// Slug returns a file name for a port group's name; if that loses characters, a part of its hash keeps names distinct.
func Slug(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			b.WriteRune(r)
		} else if !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	s := strings.Trim(b.String(), "-")
	if s == name && s != "" && len(s) <= 40 {
		return s
	}
	sum := sha256.Sum256([]byte(name))
	return strings.Trim(s[:min(len(s), 32)]+"-"+hex.EncodeToString(sum[:4]), "-")
}

// OwnName is in the names of all network files and stanzas of this program, before the slug of a port group.
const OwnName = "rdma-setup-"

// NetFileOf returns the slug of the port group that a network file of this program is for; false for a file of others.
func NetFileOf(file string) (slug string, ours bool) {
	_, slug, ours = strings.Cut(path.Base(file), OwnName)
	return strings.TrimSuffix(slug, path.Ext(slug)), ours
}

// Renamed says why a network file of this program stands in the way of one for a port group: it is for the interface by another name.
func Renamed(nic string) string {
	return "this program wrote it for " + nic + " when the port groups had other names"
}

// RenamedHint is the remedy of Renamed.
const RenamedHint = "Run rdma-setup rollback for the run that wrote it, or give the port groups their former names."
