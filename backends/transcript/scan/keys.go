package scan

// Keys are the keys of a record of type R, each with the function that stores its value.
type Keys[R any] map[string]func(r *R, value string)

// Known reports whether the key is one of k.
func (k Keys[R]) Known(key string) bool { return k[key] != nil }

// Set stores the value of a key in r. It reports whether the key is one of k.
func (k Keys[R]) Set(r *R, key, value string) bool {
	set := k[key]
	if set != nil {
		set(r, value)
	}
	return set != nil
}

// Keep stores a value unless an earlier one is there: of a repeated key, the first value counts.
func Keep[T any](to **T, value *T) {
	if *to == nil {
		*to = value
	}
}
