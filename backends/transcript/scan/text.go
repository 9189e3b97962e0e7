// Package scan is the basis of the transcript parsers: it cleans the text of a tool, iterates over its lines, finds the columns
// of tables and normalizes numbers and addresses.
//
// All functions are total: no input causes a panic, and all take linear time.
package scan

import (
	"io"
	"io/fs"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxInput is the number of bytes of a text that are read; the rest is dropped with the warning CodeInputCut.
	MaxInput = 16 << 20
	// maxLine bounds a line, so that parsers can split it into words without using gigabytes of memory.
	maxLine = 64 << 10
)

// Read returns at most MaxInput+1 bytes of r: the additional byte shows Begin that the text was longer.
func Read(r io.Reader) (string, error) {
	var b strings.Builder
	switch s := r.(type) {
	case interface{ Len() int }:
		b.Grow(min(s.Len(), MaxInput+1))
	case interface{ Stat() (fs.FileInfo, error) }:
		if info, err := s.Stat(); err == nil && info.Mode().IsRegular() {
			b.Grow(int(min(info.Size()+1, MaxInput+1)))
		}
	}
	_, err := io.Copy(&b, io.LimitReader(r, MaxInput+1))
	return b.String(), err
}

// Normalize removes what terminals and editors leave behind: line ends become \n; a byte order mark, NUL, BEL, terminal
// escape sequences are removed; blanks that are not ASCII become ASCII, and bytes that are not UTF-8
// become '?'. A clean text is returned unchanged.
func Normalize(s string) string {
	if needsCleaning(s) {
		s = plain(s)
	}
	if strings.Contains(s, "\n\n\n\n") {
		s = withoutGaps(s)
	}
	return s
}

// withoutGaps reduces several empty lines to two, because a parser examines every line.
func withoutGaps(s string) string {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		if n := len(b); s[i] != '\n' || n < 3 || string(b[n-3:]) != "\n\n\n" {
			b = append(b, s[i])
		}
	}
	return string(b)
}

func plain(s string) string {
	var out strings.Builder // processes the lines one by one, so that a text of 16 MB is not stored twice
	out.Grow(len(s))
	var line []byte
	for i := 0; i < len(s); {
		end := false
		switch c := s[i]; {
		case c == '\r':
			// "\r\n", "\r\r\n" and a single "\r" (after a progress line that is overwritten) all end a line.
			for i < len(s) && s[i] == '\r' {
				i++
			}
			if i < len(s) && s[i] == '\n' {
				i++
			}
			end = true
		case c == 0x1b:
			i = skipEscape(s, i)
		case c == 0x08 && len(line) > 0:
			line = line[:len(line)-1]
			i++
		case c == '\n' || c == '\v' || c == '\f':
			end = true
			i++
		case c < ' ' && c != '\t', c == 0x7f:
			i++
		case c < utf8.RuneSelf:
			line = append(line, c)
			i++
		default:
			_, n := utf8.DecodeRuneInString(s[i:])
			line = appendPlain(line, s[i:i+n])
			i += n
		}
		if end {
			line = append(line, '\n')
		}
		if end || i >= len(s) {
			out.Write(line)
			line = line[:0]
		}
	}
	return out.String()
}

// appendPlain adds one character that is not ASCII, as the ASCII character with the same meaning if there is one.
func appendPlain(line []byte, char string) []byte {
	r, n := utf8.DecodeRuneInString(char)
	switch {
	case r == utf8.RuneError && n == 1:
		return append(line, '?')
	case r == '\uFEFF' || r >= '\u200B' && r <= '\u200F':
		return line
	case unicode.IsSpace(r):
		return append(line, ' ')
	case r >= '\u2010' && r <= '\u2015' || r == '\u2212':
		return append(line, '-')
	case r == '\u2018' || r == '\u2019':
		return append(line, '\'')
	case r == '\u201C' || r == '\u201D':
		return append(line, '"')
	}
	return append(line, char...)
}

func needsCleaning(s string) bool {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		// The high bit of a byte is set when the byte is 0x7f or more, or less than a blank.
		if (w|(w+ones)|((w-ones*' ')&^w))&(ones<<7) != 0 && dirty(s[i:i+8]) {
			return true
		}
	}
	return dirty(s[i:])
}

const ones = 0x0101010101010101

func dirty(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return true
		}
	}
	return false
}

// skipEscape returns the index after the escape sequence that starts at s[i].
func skipEscape(s string, i int) int {
	i++
	if i >= len(s) {
		return i
	}
	switch s[i] {
	case '[': // CSI: parameters, then one final byte of @ to ~
		for i++; i < len(s) && s[i] >= ' ' && s[i] < '@'; i++ {
		}
		if i < len(s) && s[i] >= '@' && s[i] <= '~' {
			i++
		}
	case ']': // OSC: up to BEL or ESC \, never beyond the line
		for i++; i < len(s) && s[i] != 0x07 && s[i] != 0x1b && s[i] != '\n'; i++ {
		}
		if i < len(s) && s[i] == 0x07 {
			i++
		}
	case '(', ')':
		i = min(i+2, len(s))
	default:
		i++
	}
	return i
}

// Lines yields the lines of a clean text without trailing blanks, each at most 64 KiB long. Blank lines are yielded.
func Lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			line := text
			if i := strings.IndexByte(text, '\n'); i >= 0 {
				line, text = text[:i], text[i+1:]
			} else {
				text = ""
			}
			if len(line) > maxLine {
				line = line[:maxLine]
			}
			for len(line) > 0 && isBlank(line[len(line)-1]) {
				line = line[:len(line)-1]
			}
			if !yield(line) {
				return
			}
		}
	}
}

// TrimIndent drops the blanks and tabs before the first word.
func TrimIndent(line string) string {
	for len(line) > 0 && isBlank(line[0]) {
		line = line[1:]
	}
	return line
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// Squeeze joins the words of s with one blank. Call it with a part of a text, not a complete one.
func Squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// Indent counts the columns before the first word; a tab reaches to the next multiple of eight.
func Indent(line string) int {
	n := 0
	for i := range len(line) {
		switch line[i] {
		case ' ':
			n++
		case '\t':
			n += 8 - n%8
		default:
			return n
		}
	}
	return n
}
