package scan

import (
	"regexp"
	"strings"
)

// IsFence reports whether a line is a Markdown code fence.
func IsFence(line string) bool {
	line = TrimIndent(line)
	if !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "~~~") {
		return false
	}
	rest := strings.TrimLeft(line, "`~")
	return !strings.ContainsAny(rest, " \t") || strings.TrimSpace(rest) == ""
}

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

// IsPrompt matches a line that starts with a shell prompt (of bash, sh, zsh or ESXi), with or without a command behind it:
//
//	[root@esx-01:~] esxcli ...    [guest OS]$ ...    root@vm-01:~# ...    vm-01:~ # ...    sh-5.1# ...    $ ...    # ...
//
// A comment line ("# text") counts as one.
func IsPrompt(line string) bool {
	line = TrimIndent(line)
	if line == "" {
		return false
	}
	if line[0] == '[' {
		return isBracketPrompt(line)
	}
	if line[0] == '(' { // (venv) root@vm-01:~$
		if i := strings.IndexByte(line, ')'); i > 0 && i < 40 && i+2 < len(line) && line[i+1] == ' ' {
			return IsPrompt(line[i+2:])
		}
		return false
	}
	end, marked := 0, line[0] == '~'
	for end < len(line) && !isBlank(line[end]) {
		marked = marked || line[end] == '@' || line[end] == ':'
		end++
	}
	first, rest := line[:end], TrimIndent(line[end:])
	if isSign(first) {
		return true
	}
	if end > 64 || !marked && line[0] != 's' && line[0] != 'b' {
		return false
	}
	if last := first[len(first)-1]; last == '#' || last == '$' || last == '%' {
		if strings.HasPrefix(first, "sh-") || strings.HasPrefix(first, "bash-") || strings.HasPrefix(first, "~") {
			return true
		}
		return strings.ContainsAny(first, "@:") && !strings.ContainsAny(first, "=<")
	}
	if strings.ContainsRune(first, '@') && strings.ContainsRune(first, ':') && strings.HasSuffix(first, ">") {
		return true
	}
	// The prompt character has blanks on both sides: "vm-01:~ # cmd", "user@vm-01 ~ % cmd".
	if first != "~" && !strings.HasSuffix(first, ":~") && !strings.Contains(first, "@") && !strings.Contains(first, ":/") {
		return false
	}
	for range 2 {
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		if isSign(word) {
			return true
		}
	}
	return false
}

func isSign(word string) bool {
	return len(word) == 1 && (word[0] == '$' || word[0] == '#' || word[0] == '%')
}

// isBracketPrompt judges "[root@esx-01:~] cmd" and "[root@vm-01 ~]# cmd", but not "[   12.3] text" of a kernel log.
func isBracketPrompt(line string) bool {
	end := strings.IndexByte(line, ']')
	if end < 0 || end > 160 {
		return false
	}
	inside, after := line[1:end], strings.TrimPrefix(line[end+1:], " ")
	if after != "" && isSign(after[:1]) && (len(after) == 1 || after[1] == ' ') {
		return !strings.ContainsAny(inside, "\"'") && inside != ""
	}
	return strings.Contains(inside, "@") && strings.Contains(inside, ":") && !strings.Contains(inside, " ")
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
