package backends

import (
	"context"
	"fmt"
	"reflect"
	"slices"
)

// Kept is the record of what a target held before a change, item by item: everything that the change may touch. It is
// journalled before the first Set, and rollback restores from it instead of interpreting what the target reads as today.
type Kept struct {
	Items []Item `json:"items"`
}

// ItemKind says what an Item is.
type ItemKind string

// The kinds of items. A Keeper may use others of its own.
const (
	ItemFile      ItemKind = "file"      // name = path; state: mode, owner, SHA-256
	ItemDirectory ItemKind = "directory" // name = path; state: mode, owner
	ItemLink      ItemKind = "link"      // name = path of a symbolic link; state: where it points
	ItemUnit      ItemKind = "unit"      // name = systemd unit; state: enablement, activity
	ItemPackage   ItemKind = "package"   // name = package; state: version
	ItemModule    ItemKind = "module"    // name = kernel module; state: loaded
	ItemInitramfs ItemKind = "initramfs" // name = kernel version, or a directory: all that lie there; state: what of ours the image holds
	ItemInterface ItemKind = "interface" // name = MAC; state: addresses, MTU, up
	// ItemTrafficClass is that of RDMA-CM on an interface. Name = MAC.
	ItemTrafficClass ItemKind = "traffic-class"
	ItemSysctl       ItemKind = "sysctl" // name = path below /proc/sys; state: its number
)

// An Item is one thing that a Set may touch. Kind and Name together tell the items of one Kept apart.
type Item struct {
	Kind ItemKind `json:"kind"`
	Name string   `json:"name"`
	// State is compared: two items are the same when their states are equal. Absent: it does not exist.
	State Value `json:"state,omitzero"`
	// Content is what Restore needs besides State (the bytes of a file). It is never compared and not observed.
	Content []byte `json:"content,omitempty"`
	// Runtime marks a state that does not outlive what it is a state of: the addresses of an interface, a loaded module.
	// Where that is gone now (Absent), nothing is left to restore.
	Runtime bool `json:"runtime,omitempty"`
}

// String names an item for display: "file /etc/netplan/60-rdma.yaml".
func (i Item) String() string { return string(i.Kind) + " " + i.Name }

// A Keeper is a Setter whose Value alone is not enough to go back exactly (files, units, packages).
//
// Keep is called before the first Set and records everything that Set may touch. Observe gives the same items as they are
// now, without their contents; an item that is half made (a file beside its final name, an unpacked package) has a state
// of its own that equals no recorded one. Restore puts the recorded items back. It is safe to repeat, changes only what
// differs from the record and repairs what is half done; nil only when all of it is as recorded.
//
// Observe and Restore work from the record alone: the VM's adapter may be gone again. Restore may be given a part of the
// record: it leaves all other items as they are.
type Keeper interface {
	Keep(ctx context.Context, s Setting, to Value) (Kept, error)
	Observe(ctx context.Context, s Setting, kept Kept) (Kept, error)
	Restore(ctx context.Context, s Setting, kept Kept, progress Progress) error
}

// Unobtainable is in the chain of the error of a Restore that put back all but some items of one kind, which are nowhere to be
// had (the version of a package that no repository offers): it fails again however often it is repeated.
type Unobtainable struct {
	Kind  ItemKind
	Names []string
	Said  string // what was said of them
}

func (u Unobtainable) Error() string { return u.Said }

// Only reports whether differences are of unobtainable items alone.
func (u Unobtainable) Only(ds []Difference) bool {
	return !slices.ContainsFunc(ds, func(d Difference) bool { return d.Kind != u.Kind || !slices.Contains(u.Names, d.Name) })
}

// Item finds an item by its kind and name, nil if the record does not hold it.
func (k Kept) Item(kind ItemKind, name string) *Item {
	return find(k.Items, func(i *Item) bool { return i.Kind == kind && i.Name == name })
}

// With adds the items of a later record that k does not hold: what an earlier attempt recorded stays.
func (k Kept) With(later Kept) Kept {
	out := Kept{Items: slices.Clone(k.Items)}
	for _, i := range later.Items {
		if k.Item(i.Kind, i.Name) == nil {
			out.Items = append(out.Items, i)
		}
	}
	return out
}

// Without returns the record without the items of some differences.
func (k Kept) Without(ds []Difference) Kept {
	return Kept{Items: slices.DeleteFunc(slices.Clone(k.Items), func(i Item) bool {
		return slices.ContainsFunc(ds, func(d Difference) bool { return d.Kind == i.Kind && d.Name == i.Name })
	})}
}

// Bare is the record without contents, for comparing and for journalling an observation.
func (k Kept) Bare() Kept {
	out := Kept{Items: slices.Clone(k.Items)}
	for i := range out.Items {
		out.Items[i].Content = nil
	}
	return out
}

// Err says which item has a state that cannot be represented.
func (k Kept) Err() error {
	for _, i := range k.Items {
		if err := i.State.Err(); err != nil {
			return fmt.Errorf("%s: %w", i, err)
		}
	}
	return nil
}

// A Difference is an item that is not as it was recorded.
type Difference struct {
	Kind ItemKind `json:"kind"`
	Name string   `json:"name"`
	Was  Value    `json:"was"`
	Is   Value    `json:"is"`
}

// String says it for display: "file /etc/x exists, and did not before".
func (d Difference) String() string {
	name := string(d.Kind) + " " + d.Name
	switch {
	case d.Was.IsAbsent():
		return name + " exists, but did not exist before"
	case d.Is.IsAbsent():
		return name + " does not exist, but existed before"
	}
	var was, is map[string]any
	if d.Was.Decode(&was) != nil || d.Is.Decode(&is) != nil {
		return name + " is " + d.Is.String() + ", but was " + d.Was.String()
	}
	for key, v := range is {
		if reflect.DeepEqual(v, was[key]) {
			delete(is, key)
			delete(was, key)
		}
	}
	return name + " has " + ValueOf(is).String() + ", but had " + ValueOf(was).String()
}

// Differences compares what is there with a record, item by item, in the order of the record. An item that only one of
// both holds counts as absent in the other; a runtime state that is gone is no difference.
func Differences(was, is Kept) []Difference {
	var out []Difference
	for _, i := range was.With(is).Items {
		d := Difference{Kind: i.Kind, Name: i.Name, Was: was.state(i), Is: is.state(i)}
		if d.Was != d.Is && !(i.Runtime && d.Is.IsAbsent()) {
			out = append(out, d)
		}
	}
	return out
}

func (k Kept) state(like Item) Value {
	if i := k.Item(like.Kind, like.Name); i != nil {
		return i.State
	}
	return Absent
}
