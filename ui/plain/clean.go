// Package plain shows plans, events and findings as lines: for pipes, dumb terminals and logs. It draws nothing and
// moves no cursor.
package plain

import "strings"

// Clean makes text from machines that we do not trust harmless on a terminal: control characters, escapes and
// direction marks become a dot; line breaks become blanks.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < 0x20, r == 0x7f, r >= 0x80 && r < 0xa0, r == 0x200e, r == 0x200f,
			r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff:
			return '·'
		}
		return r
	}, s)
}
