package report

import (
	"encoding/json"

	"github.com/rdma-setup/rdma-setup/backends"
)

type outcomeExtra struct {
	State string          `json:"outcome"`
	Found *backends.Value `json:"found,omitempty"`
	Err   string          `json:"error,omitempty"`
}

// MarshalJSON adds "outcome", "found" and "error" to the fields of the change.
func (o Outcome) MarshalJSON() ([]byte, error) {
	a, err := json.Marshal(o.Change)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(outcomeExtra{o.State, o.Found, o.Err})
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
	o.State, o.Found, o.Err = x.State, x.Found, x.Err
	return nil
}
