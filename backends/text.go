package backends

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes untrusted text safe for a terminal: control characters, escapes, direction marks, zero-width characters and invalid
// UTF-8 become question marks; line breaks and tabs become blanks.
func Clean(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case Unsafe(r):
			return '?'
		}
		return r
	}, s)
}

// Unsafe reports whether a character may act on a terminal or a reader: a control character, an escape, a direction mark, a
// character without width, or a byte that is not UTF-8.
func Unsafe(r rune) bool {
	if r <= '~' {
		return r < ' '
	}
	return r == utf8.RuneError || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)
}

// Shorten truncates a text to most characters, and then appends an ellipsis.
func Shorten(s string, most int) string {
	for i := range s { // i is the start of a character
		if most == 0 {
			return s[:i] + "..."
		}
		most--
	}
	return s
}

// Speed formats Mbps: 100G, 2.5G, 100M; "down" for no link.
func Speed(mbps int) string {
	switch {
	case mbps <= 0:
		return "down"
	case mbps < 1000:
		return fmt.Sprintf("%dM", mbps)
	}
	return fmt.Sprintf("%gG", float64(mbps)/1000)
}
