package backends

import "strings"

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
