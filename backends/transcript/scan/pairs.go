package scan

import (
	"cmp"
	"iter"
	"strings"
)

// Pair is one "key: value" of a text; the key is as Key makes it.
type Pair struct {
	Key, Value string
	Next       string // the next line when it is no pair: the terminal may have wrapped the value
}

// Pairs yields the lines of a text that are pairs with a known key. A line that is no pair, directly after a key without a value,
// is that value: the terminal wrapped it.
func Pairs(text string, known func(key string) bool) iter.Seq[Pair] {
	return func(yield func(Pair) bool) {
		var open *Pair
		for line := range Lines(text) {
			key, value, pair := KeyValue(line)
			if open != nil {
				if next := strings.TrimSpace(line); !pair && next != "" {
					open.Next, open.Value = next, cmp.Or(open.Value, next)
				}
				if !yield(*open) {
					return
				}
				open = nil
			}
			if pair && known(key) {
				open = &Pair{Key: key, Value: value}
			}
		}
		if open != nil {
			yield(*open)
		}
	}
}

// Word returns the first word of s, without a comma or semicolon after it.
func Word(s string) string {
	s = strings.TrimLeft(s, " \t")
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		s = s[:i]
	}
	return strings.TrimRight(s, ",;")
}

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

// KeyValue splits "key : value" at the first colon that is followed by a blank or ends the line; the key is returned as Key formats
// it, the value trimmed. A line without such a colon is split at its first colon unless the key consists only of digits (so that
// "key:value" works and "00:1f.0 x" does not).
func KeyValue(line string) (key, value string, ok bool) {
	for i := 0; i < len(line); i++ {
		if line[i] != ':' {
			continue
		}
		if i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t' {
			key = Key(line[:i])
			return key, strings.TrimSpace(line[i+1:]), key != ""
		}
	}
	k, v, found := strings.Cut(line, ":")
	key = Key(k)
	if !found || key == "" || allHex(strings.TrimSpace(k)) && isDigit(strings.TrimSpace(k)[0]) {
		return "", "", false
	}
	return key, strings.TrimSpace(v), true
}

// Key normalizes the name of a field: lower case, words joined by one blank, '_' and '-' as blanks, leading marks like "*" or "|"
// dropped.
func Key(s string) string {
	s = strings.Trim(s, " \t*|\"'")
	if len(s) > 128 {
		return ""
	}
	var b strings.Builder
	b.Grow(len(s))
	gap := false
	for i := range len(s) {
		c := s[i]
		switch {
		case c == ' ' || c == '\t' || c == '_' || c == '-':
			gap = b.Len() > 0
			continue
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		if gap {
			b.WriteByte(' ')
			gap = false
		}
		b.WriteByte(c)
	}
	return b.String()
}

// After returns the trimmed text after the first mark in s.
func After(s, mark string) (string, bool) {
	_, after, ok := strings.Cut(s, mark)
	return strings.TrimSpace(after), ok
}

// Between returns the text between the first open and the next shut after it.
func Between(s, open, shut string) (string, bool) {
	_, s, _ = strings.Cut(s, open)
	if inside, _, ok := strings.Cut(s, shut); ok {
		return inside, true
	}
	return "", false
}
