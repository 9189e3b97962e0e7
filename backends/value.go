package backends

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// A Value is what a setting is or shall be: plain data, kept as canonical JSON (keys sorted), so that two
// values are equal exactly when == says so. The zero Value is Absent: the thing does not exist.
type Value struct{ text string }

// Absent is the value of a thing that does not exist; setting it removes the thing.
var Absent = Value{}

const unknownPrefix = "unknown until "

// ValueOf makes a Value of plain data (strings, numbers, booleans, slices, maps, structs with JSON tags).
func ValueOf(v any) Value {
	b, err := json.Marshal(v)
	if err != nil {
		return Value{text: quote(fmt.Sprintf("%v", v))}
	}
	return canonical(b)
}

// Unknown is a value that cannot be read before the change or bracket of the given id is done.
func Unknown(until string) Value { return Value{text: quote(unknownPrefix + until)} }

// Known is false for a Value made by Unknown.
func (v Value) Known() bool { return !strings.HasPrefix(v.text, `"`+unknownPrefix) }

// IsAbsent tells whether the thing does not exist.
func (v Value) IsAbsent() bool { return v.text == "" }

// Decode fills into from the value; it fails on Absent and on an unknown value.
func (v Value) Decode(into any) error {
	switch {
	case v.IsAbsent():
		return fmt.Errorf("the value is absent")
	case !v.Known():
		return fmt.Errorf("the value is %s", v)
	}
	return json.Unmarshal([]byte(v.text), into)
}

// String prints the value for people: text without quotes, objects as "key value, key value", lists with commas.
func (v Value) String() string {
	if v.IsAbsent() {
		return "absent"
	}
	var any any
	dec := json.NewDecoder(strings.NewReader(v.text))
	dec.UseNumber()
	if err := dec.Decode(&any); err != nil {
		return v.text
	}
	return human(any)
}

// MarshalJSON gives the plain JSON, null for Absent.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.IsAbsent() {
		return []byte("null"), nil
	}
	return []byte(v.text), nil
}

// UnmarshalJSON reads any JSON; null is Absent.
func (v *Value) UnmarshalJSON(b []byte) error {
	*v = canonical(b)
	return nil
}

func canonical(b []byte) Value {
	var any any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&any); err != nil || any == nil {
		return Absent
	}
	out, err := marshalPlain(any)
	if err != nil {
		return Absent
	}
	return Value{text: string(out)}
}

// marshalPlain keeps <, > and & readable; encoding/json sorts map keys.
func marshalPlain(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

func quote(s string) string {
	b, err := marshalPlain(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

func human(v any) string {
	switch t := v.(type) {
	case nil:
		return "none"
	case string:
		if t == "" {
			return `""`
		}
		return t
	case bool:
		if t {
			return "on"
		}
		return "off"
	case []any:
		if len(t) == 0 {
			return "none"
		}
		parts := make([]string, len(t))
		for i, e := range t {
			parts[i] = human(e)
		}
		return strings.Join(parts, ",")
	case map[string]any:
		keys := make([]string, 0, len(t))
		for k := range t {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		parts := make([]string, len(keys))
		for i, k := range keys {
			parts[i] = k + " " + human(t[k])
		}
		return strings.Join(parts, "; ")
	}
	return fmt.Sprint(v)
}
