package backends

// FactState says what is known of a fact. The zero value means that it was not requested.
type FactState string

// The states of a fact that was requested.
const (
	FactKnown      FactState = "known"
	FactAbsent     FactState = "absent"     // there is no such thing here
	FactUnreadable FactState = "unreadable" // Fact.Why says why
)

// A Fact is a value that its own call reads from a host. A failed call only affects the facts that it reads.
type Fact[T any] struct {
	State FactState `json:"state,omitempty"`
	Value T         `json:"value,omitzero"`
	Why   string    `json:"why,omitempty"`
}

// FactOf is a fact that was read.
func FactOf[T any](v T) Fact[T] { return Fact[T]{State: FactKnown, Value: v} }

// ReadFact is the result of a call: its value, or why there is none.
func ReadFact[T any](v T, err error) Fact[T] {
	if err != nil {
		return Fact[T]{State: FactUnreadable, Why: err.Error()}
	}
	return FactOf(v)
}

// Known reports whether the fact has a value.
func (f Fact[T]) Known() bool { return f.State == FactKnown }

// Reason says why the fact has no value; "" if it has one, or there is none to have.
func (f Fact[T]) Reason() string {
	switch f.State {
	case FactUnreadable:
		return f.Why
	case "":
		return "nobody asked"
	}
	return ""
}
