package scan

import (
	"iter"
	"strings"
)

// Pair is one "key: value" of a text; the key is as Key makes it.
type Pair struct {
	Key, Value string
	Line       string // the line of the source
	Next       string // the next line when nothing in it is a pair: the terminal may have wrapped the value
}

// maxKey bounds the bytes of a key as it is printed.
const maxKey = 80

// Pairs yields the pairs of one line whose key is known, in order: "a: 1" as well as "a: 1 b: 2" and "a:1". A key is the longest
// run of at most four words before a colon that known accepts; the text between two keys is the value of the first.
func Pairs(line string, known func(key string) bool) []Pair {
	var out []Pair
	from := 0 // where the words of the next key may begin
	value := 0
	for i := 0; i < len(line); i++ {
		if line[i] != ':' {
			continue
		}
		key, start := keyBefore(line, from, i, known)
		if key == "" {
			continue
		}
		if n := len(out); n > 0 {
			out[n-1].Value = strings.TrimSpace(line[value:start])
		}
		out = append(out, Pair{Key: key, Line: line})
		from, value = i+1, i+1
	}
	if n := len(out); n > 0 {
		out[n-1].Value = strings.TrimSpace(line[value:])
	}
	return out
}

// keyBefore finds the longest known key in line[from:colon] that ends at the colon, and where it starts.
func keyBefore(line string, from, colon int, known func(string) bool) (key string, start int) {
	end := colon
	for end > from && (line[end-1] == ' ' || line[end-1] == '\t') {
		end--
	}
	at, floor := end, max(from, end-maxKey)
	for range 4 {
		for at > floor && (line[at-1] == ' ' || line[at-1] == '\t') {
			at--
		}
		if at == from {
			break
		}
		for at > floor && line[at-1] != ' ' && line[at-1] != '\t' {
			at--
		}
		if at == floor && floor > from && line[floor-1] != ' ' && line[floor-1] != '\t' { // the word is longer
			break
		}
		if k := Key(line[at:end]); known(k) {
			key, start = k, at
		}
	}
	return key, start
}

// AllPairs yields the known pairs of a text. A line without a known pair directly after a key without a value is that value: the
// terminal wrapped it.
func AllPairs(text string, known func(key string) bool) iter.Seq[Pair] {
	return func(yield func(Pair) bool) {
		var open *Pair
		for line := range Lines(text) {
			found := Pairs(line, known)
			if open != nil {
				if next := strings.TrimSpace(line); len(found) == 0 && next != "" && !looksLikePair(next) {
					if open.Next = next; open.Value == "" {
						open.Value = next
					}
				}
				if !yield(*open) {
					return
				}
				open = nil
			}
			for i, p := range found {
				if i == len(found)-1 {
					open = &p
					break
				}
				if !yield(p) {
					return
				}
			}
		}
		if open != nil {
			yield(*open)
		}
	}
}

// looksLikePair matches a line with a separate key, known or not.
func looksLikePair(line string) bool {
	i := strings.IndexByte(line, ':')
	return i > 0 && (i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t')
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
