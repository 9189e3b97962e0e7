package backends

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
