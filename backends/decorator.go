package backends

// A Decorator is a Setter around another one. It has the methods of every optional interface, so that none is lost, and
// As reports only those that the wrapped Setter has too. Called without asking As first, a method whose interface the
// wrapped Setter lacks fails with ErrNotOffered.
type Decorator interface {
	Setter
	ManySetter
	ManyReader
	Keeper
	Unwrap() Setter
}

// ErrNotOffered is the error of a Decorator whose wrapped Setter lacks the requested operation.
var ErrNotOffered = Errorf(KindPermanent, "", "", "the setting offers no such operation")

// As finds an optional interface (ManySetter, ManyReader, Keeper, Aborter, EffectReader) of a Setter or a Bracket. Decorators have them
// all, so a type assertion on one says nothing: As follows Unwrap, and what a decorator wraps must have T as well. What a
// decorator itself lacks is found beneath it.
func As[T any](s any) (T, bool) {
	own, ok := s.(T)
	var inner any
	switch w := s.(type) {
	case interface{ Unwrap() Setter }:
		inner = w.Unwrap()
	case interface{ Unwrap() Bracket }:
		inner = w.Unwrap()
	default:
		return own, ok
	}
	below, has := As[T](inner)
	if !has || ok {
		return own, has
	}
	return below, true
}
