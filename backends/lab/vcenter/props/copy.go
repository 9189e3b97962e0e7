package props

import (
	"reflect"
	"sync"
	"time"
)

// A copier creates deep copies, so that an object can change while its copy is encoded.
type copier struct{ flat sync.Map } // reflect.Type -> whether a plain assignment is a copy

func (c *copier) copy(x any) any {
	if x == nil {
		return nil
	}
	return c.value(reflect.ValueOf(x)).Interface()
}

func (c *copier) value(v reflect.Value) reflect.Value {
	t := v.Type()
	if c.isFlat(t) {
		return v
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		p := reflect.New(t.Elem())
		p.Elem().Set(c.value(v.Elem()))
		return p
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		out := reflect.New(t).Elem()
		out.Set(c.value(v.Elem()))
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(t, v.Len(), v.Len())
		if c.isFlat(t.Elem()) {
			reflect.Copy(out, v)
			return out
		}
		for i := range v.Len() {
			out.Index(i).Set(c.value(v.Index(i)))
		}
		return out
	case reflect.Struct:
		out := reflect.New(t).Elem()
		out.Set(v)
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && !c.isFlat(f.Type) {
				out.Field(i).Set(c.value(v.Field(i)))
			}
		}
		return out
	}
	return v
}

// isFlat reports whether an assignment is a complete copy of a value: the type contains nothing that can be changed through a
// reference.
func (c *copier) isFlat(t reflect.Type) bool {
	if known, ok := c.flat.Load(t); ok {
		return known.(bool)
	}
	flat := true
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func:
		flat = false
	case reflect.Array:
		flat = c.isFlat(t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			break // its pointer refers to a time zone, which never changes
		}
		for i := range t.NumField() {
			flat = flat && c.isFlat(t.Field(i).Type)
		}
	}
	c.flat.Store(t, flat)
	return flat
}
