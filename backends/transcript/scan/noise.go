package scan

import (
	"regexp"
	"strings"
)

// IsRule reports whether a line consists of dashes (three or more; '=', '_', '*' and '+' corners of boxes count too, blanks do
// not).
func IsRule(line string) bool {
	n := 0
	for i := range len(line) {
		switch line[i] {
		case '-', '=', '_', '*':
			n++
		case ' ', '\t', '+', '|':
		default:
			return false
		}
	}
	return n >= 3
}

// IsGap reports whether a line marks omitted lines: "...", "(...)", "[snip]".
func IsGap(line string) bool {
	line = strings.Trim(line, " \t()[]<>{}|")
	if line == "" || len(line) > 64 {
		return false
	}
	if strings.Trim(line, ". \u2026") == "" {
		return true
	}
	switch strings.ToLower(line) {
	case "snip", "snipped", "cut", "truncated", "output omitted", "omitted", "skipped":
		return true
	}
	return false
}

// Unfold splits lines with several rows or messages: before every match of starts, and around dash lines. In a text of one or two
// lines any such line is split, in a longer one only those with two matches.
func Unfold(text string, starts *regexp.Regexp) string {
	const longest = 1 << 20
	if len(text) > longest {
		return text
	}
	flat := IsFlat(text)
	var b strings.Builder
	broken := false
	for line := range Lines(text) {
		if flat || len(starts.FindAllStringIndex(line, 2)) > 1 {
			before := line
			line = dashes.ReplaceAllStringFunc(line, func(run string) string { return "\n" + strings.TrimSpace(run) + "\n" })
			line = starts.ReplaceAllString(line, "\n$0")
			broken = broken || line != before
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	if !broken {
		return text
	}
	return b.String()
}

// IsFlat reports whether a text has one or two lines, like a page that lost its line ends.
func IsFlat(text string) bool {
	few := 0
	for line := range Lines(text) {
		if line != "" {
			few++
		}
		if few > 2 {
			return false
		}
	}
	return true
}

var dashes = regexp.MustCompile(`(?:^|[ \t])-{3,}(?:[ \t]+-{3,})*(?:[ \t]|$)`)
