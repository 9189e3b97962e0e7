package backends

import (
	"context"
	"fmt"
	"reflect"
	"slices"
)

// Kept is the record of a target's state before a change, item by item: everything that the change may touch. It is journalled
// before the first Set. Rollback restores from it instead of interpreting the current state.
type Kept struct {
	Items []Item `json:"items"`
}

// ItemKind is the kind of an Item.
type ItemKind string

// The kinds of items. A Keeper may define others.
const (
	ItemFile      ItemKind = "file"      // name = path; state: mode, owner, SHA-256
	ItemDirectory ItemKind = "directory" // name = path; state: mode, owner
	ItemLink      ItemKind = "link"      // name = path of a symbolic link; state: its target
	ItemUnit      ItemKind = "unit"      // name = systemd unit; state: enablement, activity
	ItemPackage   ItemKind = "package"   // name = package; state: version
	ItemModule    ItemKind = "module"    // name = kernel module; state: loaded
	// name = kernel version, or a directory: all images in it; state: the files of this program in the image
	ItemInitramfs ItemKind = "initramfs"
	ItemInterface ItemKind = "interface" // name = MAC; state: addresses, MTU, up
	// ItemTrafficClass is the traffic class of RDMA-CM on an interface; name = MAC.
	ItemTrafficClass ItemKind = "traffic-class"
	ItemSysctl       ItemKind = "sysctl" // name = path below /proc/sys; state: its number
	// ItemGPUPersist is the persistence mode of a GPU; name = its PCI address in the guest; state: on.
	ItemGPUPersist ItemKind = "persistence-mode"
)

// An Item is one thing that a Set may touch. Kind and Name identify it within a Kept.
type Item struct {
	Kind ItemKind `json:"kind"`
	Name string   `json:"name"`
	// State is compared: two items are equal if their states are equal. Absent: it does not exist.
	State Value `json:"state,omitzero"`
	// Content is what Restore needs in addition to State (the bytes of a file). It is neither compared nor observed.
	Content []byte `json:"content,omitempty"`
	// Runtime marks a state that ends with the thing it belongs to: the addresses of an interface, a loaded module. If that no
	// longer exists (Absent), there is nothing to restore.
	Runtime bool `json:"runtime,omitempty"`
}

// String returns the item for display: "file /etc/netplan/60-rdma.yaml".
func (i Item) String() string { return string(i.Kind) + " " + i.Name }

// A Keeper is a Setter that needs more than a Value to restore the previous state exactly (files, units, packages).
//
// Keep is called before the first Set and records everything that Set may touch. Observe returns the current state of the same
// items, without their contents; an incomplete item (a temporary file beside its final name, an unpacked package) has a state
// that equals no recorded one. Restore restores the recorded items. It is safe to repeat, changes only what differs from the
// record, and repairs incomplete items; it returns nil only if everything is as recorded.
//
// Observe and Restore work from the record alone, because the VM's adapter may have been removed. If Restore gets a part of the
// record, it leaves all other items as they are.
type Keeper interface {
	Keep(ctx context.Context, s Setting, to Value) (Kept, error)
	Observe(ctx context.Context, s Setting, kept Kept) (Kept, error)
	Restore(ctx context.Context, s Setting, kept Kept, progress Progress) error
}

// Unobtainable is in the error chain of a Restore that restored everything except some items of one kind that can no longer be
// obtained (a package version that no repository offers). Every retry fails in the same way.
type Unobtainable struct {
	Kind  ItemKind
	Names []string
	Said  string // the message about them
}

func (u Unobtainable) Error() string { return u.Said }

// Only reports whether all differences are of unobtainable items.
func (u Unobtainable) Only(ds []Difference) bool {
	return !slices.ContainsFunc(ds, func(d Difference) bool { return d.Kind != u.Kind || !slices.Contains(u.Names, d.Name) })
}

// Item returns an item by its kind and name, nil if the record does not contain it.
func (k Kept) Item(kind ItemKind, name string) *Item {
	return find(k.Items, func(i *Item) bool { return i.Kind == kind && i.Name == name })
}

// With returns k with those items of a later record that k does not contain: what an earlier attempt recorded stays.
func (k Kept) With(later Kept) Kept {
	out := Kept{Items: slices.Clone(k.Items)}
	for _, i := range later.Items {
		if k.Item(i.Kind, i.Name) == nil {
			out.Items = append(out.Items, i)
		}
	}
	return out
}

// Without returns the record without the items of the given differences.
func (k Kept) Without(ds []Difference) Kept {
	return Kept{Items: slices.DeleteFunc(slices.Clone(k.Items), func(i Item) bool {
		return slices.ContainsFunc(ds, func(d Difference) bool { return d.Kind == i.Kind && d.Name == i.Name })
	})}
}

// Bare returns the record without contents, for comparing and for journalling an observation.
func (k Kept) Bare() Kept {
	out := Kept{Items: slices.Clone(k.Items)}
	for i := range out.Items {
		out.Items[i].Content = nil
	}
	return out
}

// Err names the item whose state cannot be represented.
func (k Kept) Err() error {
	for _, i := range k.Items {
		if err := i.State.Err(); err != nil {
			return fmt.Errorf("%s: %w", i, err)
		}
	}
	return nil
}

// A Difference is an item that differs from its record.
type Difference struct {
	Kind ItemKind `json:"kind"`
	Name string   `json:"name"`
	Was  Value    `json:"was"`
	Is   Value    `json:"is"`
}

// String describes the difference: "file /etc/x exists, and did not before".
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

// Differences compares the current state with a record, item by item, in the order of the record. An item that only one of them
// contains counts as absent in the other. A runtime state that no longer exists is not a difference.
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
