package backends

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Shown returns v as people may see it: Clean is applied to every text in it at any depth, to keys of maps and to what a Stringer or an
// error among arguments says. Whatever writes for people calls it once, for all that it is given; v stays as it is, and what is clean
// is shared with it. Names in the copy are for reading only: actions and lookups need those of v.
func Shown[T any](v T) T {
	if out, changed := shown(reflect.ValueOf(&v).Elem()); changed {
		return out.Interface().(T)
	}
	return v
}

var typeOfValue = reflect.TypeFor[Value]()

// shown returns a clean copy of v and true, or v itself if it is clean. Unexported fields are not looked at, but for those of a Value.
func shown(v reflect.Value) (reflect.Value, bool) {
	t := v.Type()
	switch {
	case t == typeOfValue:
		clean, changed := v.Interface().(Value).shown()
		return reflect.ValueOf(clean), changed
	case t.Kind() == reflect.String:
		if clean := Clean(v.String()); clean != v.String() {
			return reflect.ValueOf(clean).Convert(t), true
		}
	case t.Kind() == reflect.Struct:
		return parts(v, v.NumField(), reflect.Value.Field)
	case t.Kind() == reflect.Array || t.Kind() == reflect.Slice && hasText(t.Elem()):
		return parts(v, v.Len(), reflect.Value.Index)
	case t.Kind() == reflect.Map && hasText(t):
		return entries(v)
	case t.Kind() == reflect.Interface && !v.IsNil():
		switch said := v.Interface().(type) {
		case error, fmt.Stringer:
			if text := fmt.Sprint(said); t.NumMethod() == 0 && Clean(text) != text {
				return reflect.ValueOf(Clean(text)), true
			}
			return v, false
		}
		return shown(v.Elem())
	case t.Kind() == reflect.Pointer && !v.IsNil():
		if clean, changed := shown(v.Elem()); changed {
			out := reflect.New(t.Elem())
			out.Elem().Set(clean)
			return out, true
		}
	}
	return v, false
}

// parts cleans the fields of a struct, or the elements of a list.
func parts(v reflect.Value, n int, part func(reflect.Value, int) reflect.Value) (reflect.Value, bool) {
	out, dirty := v, false
	for i := range n {
		p := part(v, i)
		if !p.CanInterface() {
			continue
		}
		clean, changed := shown(p)
		if changed && !dirty {
			out, dirty = reflect.New(v.Type()).Elem(), true
			if v.Kind() == reflect.Slice {
				out.Set(reflect.MakeSlice(v.Type(), n, n))
				reflect.Copy(out, v)
			} else {
				out.Set(v)
			}
		}
		if changed {
			part(out, i).Set(clean)
		}
	}
	return out, dirty
}

// entries cleans a map. Of keys that become equal, the first in order stays.
func entries(v reflect.Value) (reflect.Value, bool) {
	out, dirty := reflect.MakeMapWithSize(v.Type(), v.Len()), false
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(b.String(), a.String()) })
	for _, k := range keys {
		key, k1 := shown(k)
		value, v1 := shown(v.MapIndex(k))
		out.SetMapIndex(key, value)
		dirty = dirty || k1 || v1
	}
	return out, dirty
}

// hasText is false for types that hold numbers alone, such as bytes of a file.
func hasText(t reflect.Type) bool { return t.Kind() >= reflect.Array }

func (v Value) shown() (Value, bool) {
	if Clean(v.text) == v.text && !strings.Contains(v.text, `\`) {
		return v, false
	}
	if v.state != data && v.state != partial {
		return Value{v.state, Clean(v.text)}, Clean(v.text) != v.text
	}
	plain, err := decodeJSON([]byte(v.text))
	if err != nil || plain == nil {
		return v, false
	}
	clean, changed := shown(reflect.ValueOf(&plain).Elem())
	if !changed {
		return v, false
	}
	return valueOf(v.state, clean.Interface()), true
}
