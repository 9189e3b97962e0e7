package answers

import (
	"iter"
	"reflect"
)

// fields visits the fields of a struct by their names in the file.
func fields(v reflect.Value) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("yaml")
			if name != "-" && !yield(name, v.Field(i)) {
				return
			}
		}
	}
}

func field(v reflect.Value, name string) (reflect.Value, bool) {
	for n, f := range fields(v) {
		if n == name {
			return f, true
		}
	}
	return reflect.Value{}, false
}

func fieldNames(v reflect.Value) []string {
	var names []string
	for n := range fields(v) {
		names = append(names, n)
	}
	return names
}
