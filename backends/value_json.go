package backends

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// In JSON, data is written as it is and null is Absent. The other states, and an object that could be mistaken for one of them,
// are an object whose member stateKey names the state:
//
//	{"$value": "unknown", "until": "host/esx-01/host-ssh"}
//	{"$value": "partial", "part": [..]}
//	{"$value": "data", "part": {"$value": ..}}
const stateKey = "$value"

// unknownUntil is the prefix of the text shown for a value that is not known yet.
const unknownUntil = "unknown until "

type tagged struct {
	State string          `json:"$value"`
	Until *string         `json:"until,omitempty"`
	Part  json.RawMessage `json:"part,omitempty"`
}

// MarshalJSON writes a form from which UnmarshalJSON restores the same value.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.state {
	case absent:
		return []byte("null"), nil
	case unknown:
		return marshalPlain(tagged{State: "unknown", Until: &v.text})
	case partial:
		return marshalPlain(tagged{State: "partial", Part: json.RawMessage(v.text)})
	case invalid:
		return nil, v.Err()
	}
	if v.looksTagged() {
		return marshalPlain(tagged{State: "data", Part: json.RawMessage(v.text)})
	}
	return []byte(v.text), nil
}

func (v Value) looksTagged() bool {
	var members map[string]json.RawMessage
	if !strings.HasPrefix(v.text, "{") || !strings.Contains(v.text, `"`+stateKey+`"`) || json.Unmarshal([]byte(v.text), &members) != nil {
		return false
	}
	_, is := members[stateKey]
	return is
}

// UnmarshalJSON reads the output of MarshalJSON, and any other JSON as data. Text that is not UTF-8 and an unknown state are errors.
func (v *Value) UnmarshalJSON(b []byte) error {
	got, err := parse(b)
	if err != nil {
		return fmt.Errorf("value: %w", err)
	}
	*v = got
	return nil
}

func parse(b []byte) (Value, error) {
	plain, text, err := canonical(b)
	if err != nil {
		return Absent, err
	}
	members, _ := plain.(map[string]any)
	if _, is := members[stateKey]; is {
		return untag(text)
	}
	return dataOf(text), nil
}

func dataOf(text string) Value {
	if text == "null" {
		return Absent
	}
	return Value{data, text}
}

// untag reads a tagged object; it accepts exactly what MarshalJSON writes.
func untag(text string) (Value, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	var t tagged
	if err := dec.Decode(&t); err != nil {
		return Absent, err
	}
	inner := Value{data, string(t.Part)}
	var v Value
	switch {
	case t.State == "unknown" && t.Until != nil && t.Part == nil:
		v = Unknown(*t.Until)
	case t.State == "partial" && t.Until == nil && inner.text != "null":
		v = Value{partial, inner.text}
	case t.State == "data" && t.Until == nil && inner.looksTagged():
		v = inner
	default:
		return Absent, fmt.Errorf("%s is not a valid state of a value", text)
	}
	back, err := v.MarshalJSON()
	if err != nil {
		return Absent, err
	}
	if _, same, err := canonical(back); err != nil || same != text {
		return Absent, fmt.Errorf("%s is not a valid state of a value", text)
	}
	return v, nil
}

// A State is the state of a value in the JSON of a plan or a report, where values are plain data so that anyone can read them.
type State string

// The states of plain JSON; "" is plain data, or null for an absent value.
const (
	StateUnknown State = "unknown" // "unknown until ID": cannot be read yet
	StatePartial State = "partial" // the existing part of a setting that is half done
)

// Plain returns the value as plain JSON, and the state that ReadPlain needs to restore the same value.
func (v Value) Plain() (json.RawMessage, State, error) {
	switch v.state {
	case absent:
		return json.RawMessage("null"), "", nil
	case unknown:
		b, err := marshalPlain(v.String())
		return b, StateUnknown, err
	case partial:
		if v.text == "" {
			return json.RawMessage("null"), StatePartial, nil
		}
		return json.RawMessage(v.text), StatePartial, nil
	case invalid:
		return nil, "", v.Err()
	}
	return json.RawMessage(v.text), "", nil
}

// ReadPlain reads the output of Plain; empty JSON is Absent.
func ReadPlain(b json.RawMessage, s State) (Value, error) {
	if len(b) == 0 {
		b = json.RawMessage("null")
	}
	plain, text, err := canonical(b)
	if err != nil {
		return Absent, fmt.Errorf("value: %w", err)
	}
	switch s {
	case "":
		return dataOf(text), nil
	case StateUnknown:
		sentence, _ := plain.(string)
		if until, is := strings.CutPrefix(sentence, unknownUntil); is {
			return Unknown(until), nil
		}
	case StatePartial:
		if text == "null" {
			text = ""
		}
		return Value{partial, text}, nil
	}
	return Absent, fmt.Errorf("value: %s is not of the state %q", text, s)
}

// canonicalOf returns the canonical JSON of plain data, "" for nil.
func canonicalOf(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	plain, err := decodeJSON(b)
	if err != nil || plain == nil {
		return "", err
	}
	out, err := marshalPlain(plain)
	return string(out), err
}

// canonical reads JSON from an untrusted source.
func canonical(b []byte) (any, string, error) {
	if !utf8.Valid(b) {
		return nil, "", errors.New("the text is not UTF-8")
	}
	plain, err := decodeJSON(b)
	if err != nil {
		return nil, "", err
	}
	out, err := marshalPlain(plain)
	return plain, string(out), err
}

// decodeJSON reads one JSON value and nothing after it; numbers keep their digits.
func decodeJSON(b []byte) (any, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the value")
	}
	return v, nil
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
