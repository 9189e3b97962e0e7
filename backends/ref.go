package backends

import (
	"fmt"
	"strings"
)

// TargetType is the type of target that a Ref names.
type TargetType string

// The target types. A guest is the operating system inside the VM of the same name.
const (
	TypeVCenter    TargetType = "vcenter"
	TypeDatacenter TargetType = "datacenter"
	TypeCluster    TargetType = "cluster"
	TypeSwitch     TargetType = "dvs"
	TypePortGroup  TargetType = "portgroup"
	TypeHost       TargetType = "host"
	TypeVM         TargetType = "vm"
	TypeGuest      TargetType = "guest"
	TypePair       TargetType = "pair"
)

// A Ref names one target. Name is the shortest inventory name that is unique among targets of its type: the plain name, or the
// inventory path if two share a name. It never contains a managed object id, so it stays valid if the object is removed and
// created again.
type Ref struct {
	Type TargetType
	Name string
}

// ClusterRef returns the Ref of a cluster.
func ClusterRef(name string) Ref   { return Ref{TypeCluster, name} }
func HostRef(name string) Ref      { return Ref{TypeHost, name} }
func VMRef(name string) Ref        { return Ref{TypeVM, name} }
func GuestRef(name string) Ref     { return Ref{TypeGuest, name} }
func SwitchRef(name string) Ref    { return Ref{TypeSwitch, name} }
func PortGroupRef(name string) Ref { return Ref{TypePortGroup, name} }

// String returns "type/name".
func (r Ref) String() string { return string(r.Type) + "/" + r.Name }

// MarshalText makes a Ref a plain string in JSON.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what String printed; the name may hold slashes.
func (r *Ref) UnmarshalText(b []byte) error {
	typ, name, ok := strings.Cut(string(b), "/")
	if !ok || typ == "" {
		return fmt.Errorf("target %q: expected type/name", b)
	}
	r.Type, r.Name = TargetType(typ), name
	return nil
}
