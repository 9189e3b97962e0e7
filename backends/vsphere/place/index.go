// Package place maps names and inventory paths to managed object references of a vCenter. They are resolved once and cached until
// they prove stale.
package place

import (
	"fmt"
	"sort"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Ref is a managed object reference.
type Ref = types.ManagedObjectReference

// An Index contains the names and parents of managed objects.
type Index struct {
	nodes  map[Ref]node
	byName map[backends.TargetType]map[string][]Ref
}

type node struct {
	name   string // as displayed
	raw    string // as in the inventory path: %2f for a slash
	parent Ref
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{nodes: map[Ref]node{}, byName: map[backends.TargetType]map[string][]Ref{}}
}

// TargetOf returns the target type of a managed object's type, "" if there is none.
func TargetOf(ref Ref) backends.TargetType {
	switch ref.Type {
	case "HostSystem":
		return backends.TypeHost
	case "VirtualMachine":
		return backends.TypeVM
	case "DistributedVirtualSwitch", "VmwareDistributedVirtualSwitch":
		return backends.TypeSwitch
	case "DistributedVirtualPortgroup":
		return backends.TypePortGroup
	case "ClusterComputeResource":
		return backends.TypeCluster
	case "Datacenter":
		return backends.TypeDatacenter
	}
	return ""
}

// Add adds or replaces an object.
func (x *Index) Add(ref Ref, name string, parent Ref) {
	x.Remove(ref)
	n := node{name: backends.DisplayName(name), raw: name, parent: parent}
	x.nodes[ref] = n
	t := TargetOf(ref)
	if t == "" {
		return
	}
	if x.byName[t] == nil {
		x.byName[t] = map[string][]Ref{}
	}
	x.byName[t][n.name] = append(x.byName[t][n.name], ref)
}

// Remove removes an object.
func (x *Index) Remove(ref Ref) {
	n, ok := x.nodes[ref]
	if !ok {
		return
	}
	delete(x.nodes, ref)
	t := TargetOf(ref)
	refs := x.byName[t][n.name]
	left := refs[:0:0]
	for _, r := range refs {
		if r != ref {
			left = append(left, r)
		}
	}
	if len(left) == 0 {
		delete(x.byName[t], n.name)
		return
	}
	x.byName[t][n.name] = left
}

// RemoveType removes all objects of a target type.
func (x *Index) RemoveType(t backends.TargetType) {
	for _, refs := range x.byName[t] {
		for _, ref := range refs {
			delete(x.nodes, ref)
		}
	}
	delete(x.byName, t)
}

// Name returns the shortest unique name: the plain name, or the inventory path if two objects of a type share it.
func (x *Index) Name(ref Ref) string {
	n, ok := x.nodes[ref]
	if !ok {
		return ""
	}
	if len(x.byName[TargetOf(ref)][n.name]) > 1 {
		return x.Path(ref)
	}
	return n.name
}

// Path returns the inventory path: /Datacenter/host/Cluster/esx-01.
func (x *Index) Path(ref Ref) string {
	var parts []string
	for {
		n, ok := x.nodes[ref]
		if !ok || len(parts) > 64 {
			break
		}
		parts = append(parts, n.raw)
		ref = n.parent
	}
	if len(parts) == 0 {
		return ""
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(parts[i])
	}
	return b.String()
}

// Above returns the nearest ancestor of one of the managed object types, and its shortest unique name: the names of clusters and
// datacenters need be unique only in their folder (vSphere Web Services API, ManagedEntity.name).
func (x *Index) Above(ref Ref, kinds ...string) (Ref, string) {
	for range 64 {
		n, ok := x.nodes[ref]
		if !ok {
			break
		}
		ref = n.parent
		for _, k := range kinds {
			if ref.Type == k {
				return ref, x.Name(ref)
			}
		}
	}
	return Ref{}, ""
}

// Datacenter returns the name of the datacenter above an object.
func (x *Index) Datacenter(ref Ref) string {
	_, name := x.Above(ref, "Datacenter")
	return name
}

// Cluster returns the name of the cluster above a host, "" for a standalone host.
func (x *Index) Cluster(ref Ref) string {
	_, name := x.Above(ref, "ClusterComputeResource")
	return name
}

// Datacenters returns the datacenters with a name or path; all for "".
func (x *Index) Datacenters(name string) []Ref {
	var out []Ref
	for ref, n := range x.nodes {
		if ref.Type == "Datacenter" && (name == "" || n.name == name || x.Path(ref) == name) {
			out = append(out, ref)
		}
	}
	return out
}

// All returns the objects of a target type, ordered by path.
func (x *Index) All(t backends.TargetType) []Ref {
	var out []Ref
	paths := map[Ref]string{}
	for _, refs := range x.byName[t] {
		for _, ref := range refs {
			out = append(out, ref)
			paths[ref] = x.Path(ref)
		}
	}
	sort.Slice(out, func(i, j int) bool { return paths[out[i]] < paths[out[j]] })
	return out
}

// Find resolves a target by plain name or inventory path. Ok is false if there is none; an ambiguous name is an error that lists
// the paths.
func (x *Index) Find(t backends.Ref) (ref Ref, ok bool, err error) {
	refs := x.byName[t.Type][t.Name]
	if len(refs) == 1 {
		return refs[0], true, nil
	}
	if len(refs) > 1 {
		var paths []string
		for _, r := range refs {
			paths = append(paths, x.Path(r))
		}
		sort.Strings(paths)
		return Ref{}, false, backends.Refusedf(t.Name, "use the inventory path instead of the name",
			"the name is ambiguous: %s", strings.Join(paths, ", "))
	}
	if strings.HasPrefix(t.Name, "/") {
		base := backends.DisplayName(t.Name[strings.LastIndexByte(t.Name, '/')+1:])
		for _, r := range x.byName[t.Type][base] {
			if x.Path(r) == t.Name {
				return r, true, nil
			}
		}
	}
	return Ref{}, false, nil
}

func noSuch(t backends.Ref) error {
	return backends.Refusedf(t.Name, "list the names with: rdma-setup discover", "%s",
		fmt.Sprintf("there is no %s of that name in vCenter", word(t.Type)))
}

func word(t backends.TargetType) string {
	switch t {
	case backends.TypeSwitch:
		return "distributed switch"
	case backends.TypePortGroup:
		return "distributed port group"
	case backends.TypeVM, backends.TypeGuest:
		return "VM"
	}
	return string(t)
}

// escaper escapes / \ and % in names as vCenter requires.
var escaper = strings.NewReplacer("%", "%25", "/", "%2f", `\`, "%5c")

// Raw returns the last element of a plain name or inventory path in vCenter's escaping.
func Raw(name string) string {
	if strings.HasPrefix(name, "/") {
		return name[strings.LastIndexByte(name, '/')+1:]
	}
	return escaper.Replace(name)
}
