package props

import (
	"errors"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// errNoSuch is a path that the type does not have.
var errNoSuch = errors.New("no such property")

// property returns the value at a property path of a managed object, nil if it is not set. Lists have the types of the API
// (ArrayOfPhysicalNic), single elements of a list are named by key: config.option["Net.PVRDMAVmknic"].
func property(obj reflect.Value, path string) (any, error) {
	var f mo.Field
	if !f.FromString(path) {
		return nil, errNoSuch
	}
	v, err := descend(obj, f.Path)
	if err != nil || !v.IsValid() {
		return nil, err
	}
	if f.Key == nil {
		return listed(v), nil
	}
	if v, err = element(v, f.Key); err != nil || !v.IsValid() || f.Item == "" {
		return anyOf(v), err
	}
	v, err = descend(v, f.Item)
	if err != nil || !v.IsValid() {
		return nil, err
	}
	return listed(v), nil
}

func anyOf(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	return v.Interface()
}

// descend follows names; the zero Value is something on the way, or at its end, that is not set.
func descend(v reflect.Value, path string) (reflect.Value, error) {
	for name := range strings.SplitSeq(path, ".") {
		if v = solid(v); !v.IsValid() {
			return v, nil
		}
		if v.Kind() != reflect.Struct || name == "" {
			return reflect.Value{}, errNoSuch
		}
		if v = v.FieldByName(strings.ToUpper(name[:1]) + name[1:]); !v.IsValid() {
			return v, errNoSuch
		}
	}
	if v.Kind() == reflect.String && v.Len() == 0 {
		return reflect.Value{}, nil
	}
	return solid(v), nil
}

// solid dereferences pointers and interfaces; the zero Value is nil.
func solid(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// element finds the element of a list that has a key.
func element(list reflect.Value, key any) (reflect.Value, error) {
	if list.Kind() != reflect.Slice {
		return reflect.Value{}, errNoSuch
	}
	for i := range list.Len() {
		e := solid(list.Index(i))
		if e.Kind() != reflect.Struct {
			return reflect.Value{}, errNoSuch
		}
		k := e.FieldByName("Key")
		if !k.IsValid() || k.Type() != reflect.TypeOf(key) {
			return reflect.Value{}, errNoSuch
		}
		if k.Interface() == key {
			return e, nil
		}
	}
	return reflect.Value{}, nil
}

// listed wraps a slice into the type that the API has for it.
func listed(v reflect.Value) any {
	if v.Kind() != reflect.Slice {
		return v.Interface()
	}
	switch list := v.Interface().(type) {
	case []string:
		return types.ArrayOfString{String: list}
	case []byte:
		return types.ArrayOfByte{Byte: list}
	case types.ByteSlice:
		return types.ArrayOfByte{Byte: list}
	case []int16:
		return types.ArrayOfShort{Short: list}
	case []int32:
		return types.ArrayOfInt{Int: list}
	case []int64:
		return types.ArrayOfLong{Long: list}
	}
	name := strings.TrimPrefix(v.Type().Elem().Name(), "Base")
	t, ok := types.TypeFunc()("ArrayOf" + name)
	if !ok {
		return nil
	}
	array := reflect.New(t).Elem()
	array.FieldByName(name).Set(v)
	return array.Interface()
}
