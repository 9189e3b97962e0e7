package props

import (
	"errors"
	"reflect"
	"strings"
	"sync"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// errNoSuch means that the type does not have the path.
var errNoSuch = errors.New("no such property")

// property returns the value at a property path of a managed object, or nil if it is not set. Lists have API types
// (ArrayOfPhysicalNic). A single element of a list is selected by key: config.option["Net.PVRDMAVmknic"].
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

// descend follows a path of property names. It returns the zero Value if a property on the path is not set.
func descend(v reflect.Value, path string) (reflect.Value, error) {
	for name := range strings.SplitSeq(path, ".") {
		if v = solid(v); !v.IsValid() {
			return v, nil
		}
		if v.Kind() != reflect.Struct || name == "" {
			return reflect.Value{}, errNoSuch
		}
		f := fieldOf(v.Type(), strings.ToUpper(name[:1])+name[1:])
		if f == nil {
			return reflect.Value{}, errNoSuch
		}
		v = v.FieldByIndex(f.Index)
	}
	if v.Kind() == reflect.String && v.Len() == 0 {
		return reflect.Value{}, nil
	}
	return solid(v), nil
}

// fieldOf returns a field of a struct type, nil if it has none with that name. The answers are kept, because reflect searches the
// embedded types each time.
func fieldOf(t reflect.Type, name string) *reflect.StructField {
	key := fieldKey{t, name}
	if f, ok := fields.Load(key); ok {
		return f.(*reflect.StructField)
	}
	var found *reflect.StructField
	if f, ok := t.FieldByName(name); ok {
		found = &f
	}
	fields.Store(key, found)
	return found
}

type fieldKey struct {
	of   reflect.Type
	name string
}

var fields sync.Map

// solid dereferences pointers and interfaces. It returns the zero Value for nil.
func solid(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// element returns the element of a list with the given key.
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

// listed converts a slice to the array type of the API.
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
