package frame

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Become changes an object until it equals want, a new object of the same type. It changes only the properties that differ, down
// to the deepest path, so that a client that waits for runtime.powerState is notified.
func (f *Frame) Become(want mo.Reference) {
	obj := f.Reg.Get(want.Reference())
	if obj == nil {
		return
	}
	ctx := &simulator.Context{Map: f.Reg}
	f.Reg.WithLock(ctx, obj, func() {
		// govmomi panics on a property that it does not have; the lock must still be released.
		defer func() {
			if r := recover(); r != nil {
				f.World.Log.Note(world.Event{What: world.FaultApplied, Detail: fmt.Sprintf("%v: %v", obj.Reference(), r)})
			}
		}()
		var changes []types.PropertyChange
		diff("", reflect.ValueOf(obj).Elem(), reflect.ValueOf(want).Elem(), &changes)
		if len(changes) > 0 {
			ctx.Update(obj, changes)
		}
	})
}

// whole contains the struct types that are compared and reported as one value.
var whole = map[reflect.Type]bool{
	reflect.TypeFor[time.Time]():                    true,
	reflect.TypeFor[types.ManagedObjectReference](): true,
}

// A compared field is a field of a struct that diff compares.
type compared struct {
	index int
	path  string // the property's name
	as    comparison
}

type comparison int

const (
	asProperty comparison = iota
	asEmbedded            // a struct whose fields are properties of the outer one
	asEntity              // mo.ManagedEntity: only its name and parent change
)

// comparisons caches the compared fields of struct types, because reflect allocates each field that it describes.
var comparisons sync.Map // reflect.Type to []compared

func comparedOf(t reflect.Type) []compared {
	if known, ok := comparisons.Load(t); ok {
		return known.([]compared)
	}
	var out []compared
	for f := range t.Fields() {
		c := compared{index: f.Index[0], path: strings.ToLower(f.Name[:1]) + f.Name[1:]}
		switch {
		case f.Name == "Self" || f.Name == "DynamicData" || f.Name == "ExtensibleManagedObject":
			continue
		case f.Name == "ManagedEntity":
			c.as = asEntity
		case f.Anonymous:
			c.as = asEmbedded
		}
		out = append(out, c)
	}
	comparisons.Store(t, out)
	return out
}

func diff(prefix string, old, want reflect.Value, out *[]types.PropertyChange) {
	fields := comparedOf(old.Type())
	for _, f := range fields {
		o, n := old.Field(f.index), want.Field(f.index)
		switch f.as {
		case asEntity:
			// The type may have a name in addition to that of ManagedEntity.
			named := slices.ContainsFunc(fields, func(other compared) bool { return other.path == "name" })
			if name := n.FieldByName("Name"); !named && o.FieldByName("Name").String() != name.String() {
				*out = append(*out, Set("name", name.String()))
			}
			if at := n.FieldByName("Parent"); !at.IsNil() &&
				(o.FieldByName("Parent").IsNil() || o.FieldByName("Parent").Elem().Interface() != at.Elem().Interface()) {
				*out = append(*out, Set("parent", at.Elem().Interface()))
			}
		case asEmbedded:
			diff(prefix, o, n, out)
		default:
			differ(prefix, f.path, o, n, out)
		}
	}
}

// differ compares a property: a struct field by field, and plain values without copying them, because all of an object is compared
// after each change of the world.
func differ(prefix, name string, old, want reflect.Value, out *[]types.PropertyChange) {
	isStruct := func(t reflect.Type) bool { return t.Kind() == reflect.Struct && !whole[t] }
	switch kind := old.Kind(); {
	case isStruct(old.Type()):
		diff(prefix+name+".", old, want, out)
	case kind == reflect.Pointer && isStruct(old.Type().Elem()) && !old.IsNil() && !want.IsNil():
		if old.Pointer() != want.Pointer() {
			diff(prefix+name+".", old.Elem(), want.Elem(), out)
		}
	case (kind <= reflect.Complex128 || kind == reflect.String) && old.Equal(want):
	case kind == reflect.Slice && old.Len() == 0 && want.Len() == 0 || reflect.DeepEqual(old.Interface(), want.Interface()):
	case kind == reflect.Pointer && want.IsNil():
		*out = append(*out, types.PropertyChange{Name: prefix + name})
	case kind == reflect.Pointer:
		*out = append(*out, Set(prefix+name, want.Elem().Interface()))
	default:
		*out = append(*out, Set(prefix+name, want.Interface()))
	}
}
