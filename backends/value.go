package backends

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Value is the current or requested value of a setting: plain data in canonical JSON (keys sorted), so that two values are
// equal if and only if == is true. Absent, unknown and partial are states separate from the data, so no text from an operator or
// a host can be mistaken for one of them. The zero Value is Absent: the thing does not exist.
type Value struct {
	state state
	text  string // data, partial: canonical JSON, "" if there is none; unknown: until when; invalid: why
}

type state byte

const (
	absent state = iota
	data
	unknown
	partial
	invalid
)

// Absent is the value of a thing that does not exist; setting it removes the thing.
var Absent = Value{}

// ValueOf returns a Value of plain data (strings, numbers, booleans, slices, maps, structs with JSON tags); nil is Absent. Bytes
// that are not valid UTF-8 become U+FFFD. If JSON cannot represent v (a NaN), the Value has an error: see Err.
func ValueOf(v any) Value { return valueOf(data, v) }

// Unknown returns a value that cannot be read before the change or bracket with the given id is done.
func Unknown(until string) Value { return Value{unknown, strings.ToValidUTF8(until, "\ufffd")} }

// Partial returns the value of a setting that was only partly set or removed. what is the part that exists; nil if unknown. A
// Partial equals only the same Partial.
func Partial(what any) Value {
	v := valueOf(partial, what)
	if v == Absent {
		v.state = partial
	}
	return v
}

func valueOf(s state, v any) Value {
	if known, is := v.(Value); is {
		switch {
		case s == data, known.state == absent, known.state == invalid:
			return known
		case known.state == data:
			return Value{s, known.text}
		}
		return Value{invalid, "a partial value holds data, not a value that is itself " + known.String()}
	}
	text, err := canonicalOf(v)
	switch {
	case err != nil:
		return Value{invalid, err.Error()}
	case text == "":
		return Absent
	}
	return Value{s, text}
}

// Known is false for a Value made by Unknown.
func (v Value) Known() bool { return v.state != unknown }

// IsAbsent reports whether the thing does not exist.
func (v Value) IsAbsent() bool { return v.state == absent }

// IsPartial reports whether the value was made by Partial.
func (v Value) IsPartial() bool { return v.state == partial }

// Part returns the existing part of a partial value, Absent if it is unknown; it returns any other value unchanged.
func (v Value) Part() Value {
	switch {
	case v.state != partial:
		return v
	case v.text == "":
		return Absent
	}
	return Value{data, v.text}
}

// Err returns why the value is invalid: it was created from something that is not plain data. Such a value equals no data and can
// be neither decoded nor written.
func (v Value) Err() error {
	if v.state == invalid {
		return fmt.Errorf("the value cannot be represented: %s", v.text)
	}
	return nil
}

// Decode stores the value in into; it fails for anything but data.
func (v Value) Decode(into any) error {
	switch v.state {
	case data:
		return json.Unmarshal([]byte(v.text), into)
	case invalid:
		return v.Err()
	}
	return fmt.Errorf("the value is %s", v)
}

// Decoded is the data of a value that target was to get. The error says what was being done.
func Decoded[T any](v Value, target, what string) (T, error) {
	var out T
	if err := v.Decode(&out); err != nil {
		return out, Errorf(KindPermanent, target, "", "%s: %w", what, err)
	}
	return out, nil
}

// String formats the value for display: text without quotes, objects as "key value, key value", lists with commas.
func (v Value) String() string {
	switch v.state {
	case absent:
		return "absent"
	case unknown:
		return unknownUntil + v.text
	case invalid:
		return v.Err().Error()
	case partial:
		if v.text == "" {
			return "partial"
		}
		return "partial (" + v.Part().String() + ")"
	}
	any, err := decodeJSON([]byte(v.text))
	if err != nil {
		return v.text
	}
	return human(any)
}

// fileMode formats the mode of a file as chmod(1) takes it: 0600. Other modes, such as those of adapters, are not numbers.
func fileMode(key string, v any) (string, bool) {
	if n, is := v.(json.Number); is && key == "mode" {
		if mode, err := strconv.ParseUint(n.String(), 10, 32); err == nil {
			return fmt.Sprintf("0%03o", mode), true
		}
	}
	return "", false
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
		keys := slices.Sorted(maps.Keys(t))
		var parts []string
		for _, k := range keys {
			if mode, is := fileMode(k, t[k]); is {
				parts = append(parts, k+" "+mode)
			} else if t[k] != "" {
				parts = append(parts, k+" "+human(t[k]))
			}
		}
		if len(parts) == 0 && len(keys) > 0 {
			return "none"
		}
		return strings.Join(parts, "; ")
	}
	return fmt.Sprint(v)
}

// FactState is the state of a fact. The zero value means that it was not requested.
type FactState string

// The states of a fact that was requested.
const (
	FactKnown      FactState = "known"
	FactAbsent     FactState = "absent"     // the thing does not exist on this host
	FactUnreadable FactState = "unreadable" // Fact.Why holds the reason
)

// A Fact is a value read from a host by a call of its own. A failed call affects only the facts that it reads.
type Fact[T any] struct {
	State FactState `json:"state,omitempty"`
	Value T         `json:"value,omitzero"`
	Why   string    `json:"why,omitempty"`
}

// FactOf returns a Fact with a known value.
func FactOf[T any](v T) Fact[T] { return Fact[T]{State: FactKnown, Value: v} }

// ReadFact turns the result of a call into a Fact: its value, or the reason why there is none.
func ReadFact[T any](v T, err error) Fact[T] {
	if err != nil {
		return Fact[T]{State: FactUnreadable, Why: err.Error()}
	}
	return FactOf(v)
}

// Known reports whether the fact has a value.
func (f Fact[T]) Known() bool { return f.State == FactKnown }

// Reason returns why the fact has no value; "" if it has one, or if none exists.
func (f Fact[T]) Reason() string {
	switch f.State {
	case FactUnreadable:
		return f.Why
	case "":
		return "nobody asked"
	}
	return ""
}
