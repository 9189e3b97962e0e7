// Package plain shows plans, events and findings as lines: for pipes, dumb terminals and logs. It draws nothing and
// moves no cursor.
package plain

import (
	"strings"
	"unicode"
)

// Clean makes text from machines that we do not trust harmless on a terminal: control characters, escapes, direction
// marks and characters of no width become a question mark; line breaks and tabs become blanks.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r):
			return '?'
		}
		return r
	}, s)
}
