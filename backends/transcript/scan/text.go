// Package scan is the basis of the transcript parsers: it cleans the text of a tool, iterates over its lines, finds the columns
// of tables and normalizes numbers and addresses.
//
// All functions are total: no input causes a panic, and all take linear time.
package scan

import (
	"io"
	"io/fs"
	"iter"
	"regexp"
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

// escapes are the sequences of terminals: CSI, OSC up to BEL, character sets, others.
var escapes = regexp.MustCompile(`(?s)\x1b(?:\[[ -?]*[@-~]?|\][^\x07\x1b\n]*\x07?|[()].?|.)?`)

// Normalize removes what terminals leave behind: line ends become \n, control characters and escape sequences are removed, blanks
// that are not ASCII become ASCII, and bytes that are not UTF-8 become '?'.
func Normalize(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = escapes.ReplaceAllString(s, "")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r >= ' ' && r < 0x7f:
			return r
		case r == '\r': // after a progress line that is overwritten
			return '\n'
		case r == utf8.RuneError:
			return '?'
		case unicode.IsControl(r):
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, s)
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
