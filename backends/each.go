package backends

// Each returns the results of f for the items of a list, in order; nil for an empty list.
func Each[T, R any](list []T, f func(T) R) []R {
	var out []R
	for _, item := range list {
		out = append(out, f(item))
	}
	return out
}
