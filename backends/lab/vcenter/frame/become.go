package frame

import (
	"fmt"
	"reflect"
	"strings"
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

func diff(prefix string, old, want reflect.Value, out *[]types.PropertyChange) {
	t := old.Type()
	named := false // the type has a Name field in addition to that of ManagedEntity
	for i := range t.NumField() {
		named = named || t.Field(i).Name == "Name"
	}
	for i := range t.NumField() {
		field, o, n := t.Field(i), old.Field(i), want.Field(i)
		switch {
		case field.Name == "Self" || field.Name == "DynamicData" || field.Name == "ExtensibleManagedObject":
		case field.Name == "ManagedEntity":
			if name := n.FieldByName("Name"); !named && o.FieldByName("Name").String() != name.String() {
				*out = append(*out, Set("name", name.String()))
			}
			if at := n.FieldByName("Parent"); !at.IsNil() && (o.FieldByName("Parent").IsNil() || o.FieldByName("Parent").Elem().Interface() != at.Elem().Interface()) {
				*out = append(*out, Set("parent", at.Elem().Interface()))
			}
		case field.Anonymous:
			diff(prefix, o, n, out)
		default:
			differ(prefix+strings.ToLower(field.Name[:1])+field.Name[1:], o, n, out)
		}
	}
}

func differ(path string, old, want reflect.Value, out *[]types.PropertyChange) {
	if old.Kind() == reflect.Slice && old.Len() == 0 && want.Len() == 0 || reflect.DeepEqual(old.Interface(), want.Interface()) {
		return
	}
	switch {
	case old.Kind() == reflect.Struct && !whole[old.Type()]:
		diff(path+".", old, want, out)
	case old.Kind() == reflect.Pointer && want.IsNil():
		*out = append(*out, types.PropertyChange{Name: path})
	case old.Kind() == reflect.Pointer && old.Type().Elem().Kind() == reflect.Struct && !whole[old.Type().Elem()] && !old.IsNil():
		diff(path+".", old.Elem(), want.Elem(), out)
	case old.Kind() == reflect.Pointer:
		*out = append(*out, Set(path, want.Elem().Interface()))
	default:
		*out = append(*out, Set(path, want.Interface()))
	}
}
