package scan

import "strings"

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

// Snake converts a label to snake_case: "Receive CRC errors" becomes "receive_crc_errors".
func Snake(s string) string {
	var b strings.Builder
	gap := false
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if !isDigit(c) && (c < 'a' || c > 'z') {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte('_')
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
