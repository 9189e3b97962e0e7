package report

import (
	"encoding/json"

	"github.com/rdma-setup/rdma-setup/backends"
)

type outcomeExtra struct {
	State      string          `json:"outcome"`
	Found      json.RawMessage `json:"found,omitempty"`
	FoundState backends.State  `json:"found_state,omitempty"`
	Err        string          `json:"error,omitempty"`
	Hint       string          `json:"hint,omitempty"`
}

// JSONShape returns values with the fields that MarshalJSON writes.
func (o Outcome) JSONShape() []any { return append(o.Change.JSONShape(), outcomeExtra{}) }

// MarshalJSON adds "outcome", "found", "error" and "hint" to the fields of the change. If "found" is missing, the current value
// could not be read; null is a thing that does not exist.
func (o Outcome) MarshalJSON() ([]byte, error) {
	a, err := json.Marshal(o.Change)
	if err != nil {
		return nil, err
	}
	x := outcomeExtra{State: o.State, Err: o.Err, Hint: o.Hint}
	if o.Found != nil {
		if x.Found, x.FoundState, err = o.Found.Plain(); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return append(append(a[:len(a)-1], ','), b[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Outcome) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &o.Change); err != nil {
		return err
	}
	var x outcomeExtra
	if err := json.Unmarshal(b, &x); err != nil {
		return err
	}
	o.State, o.Found, o.Err, o.Hint = x.State, nil, x.Err, x.Hint
	if len(x.Found) > 0 {
		found, err := backends.ReadPlain(x.Found, x.FoundState)
		if err != nil {
			return err
		}
		o.Found = &found
	}
	return nil
}
