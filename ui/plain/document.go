package plain

import (
	"regexp"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// Document prints a document of package assets as text that is at most width cells wide. Code blocks keep their lines. It
// reads the part of Markdown that the documents use: headings, paragraphs, lists, tables, code that is indented by four
// spaces, links, images and bold text.
func Document(text string, width int) string {
	var out strings.Builder
	for i, b := range blocksOf(text) {
		switch {
		case b.tight:
			out.WriteString("\n")
		case i > 0:
			out.WriteString("\n\n")
		}
		out.WriteString(b.text(width))
	}
	return out.String() + "\n"
}

// A block is the text between blank lines, or one heading, or one item of a list.
type block struct {
	kind  blockKind
	lines []string
	tight bool // no blank line before it
}

type blockKind int

const (
	paragraphBlock blockKind = iota
	headingBlock
	itemBlock
	tableBlock
	codeBlock
)

var (
	htmlComment = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
	itemBegins  = regexp.MustCompile(`^(- |\d+\. )`)
	image       = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	link        = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]*)\)`)
	bold        = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

func blocksOf(text string) []block {
	var all []block
	blank := true
	for line := range strings.Lines(htmlComment.ReplaceAllString(text, "")) {
		line = strings.TrimRight(line, " \n")
		if line == "" {
			blank = true
			continue
		}
		kind := kindOf(line, blank)
		var last *block
		if len(all) > 0 {
			last = &all[len(all)-1]
		}
		switch {
		case last != nil && kind == codeBlock && last.kind == codeBlock && blank:
			last.lines = append(last.lines, "", line)
		case last != nil && !blank && last.kind == codeBlock && strings.HasPrefix(line, "    "),
			last != nil && !blank && kind == paragraphBlock && (last.kind == paragraphBlock || last.kind == itemBlock),
			last != nil && !blank && kind == tableBlock && last.kind == tableBlock:
			last.lines = append(last.lines, line)
		default:
			all = append(all, block{kind: kind, lines: []string{line}, tight: kind == itemBlock && !blank && last != nil})
		}
		blank = false
	}
	return all
}

// kindOf returns the kind of block that a line begins.
func kindOf(line string, afterBlank bool) blockKind {
	switch {
	case strings.HasPrefix(line, "#"):
		return headingBlock
	case strings.HasPrefix(line, "|"):
		return tableBlock
	case itemBegins.MatchString(line):
		return itemBlock
	case afterBlank && strings.HasPrefix(line, "    "):
		return codeBlock
	}
	return paragraphBlock
}

func (b block) text(width int) string {
	switch b.kind {
	case headingBlock:
		marks, title, _ := strings.Cut(b.lines[0], " ")
		title = theme.Wrap(inline(title), width)
		if under := map[string]string{"#": "=", "##": "-"}[marks]; under != "" {
			title += "\n" + strings.Repeat(under, lipgloss.Width(title))
		}
		return title
	case itemBlock:
		mark := itemBegins.FindString(b.lines[0])
		rest := append([]string{strings.TrimPrefix(b.lines[0], mark)}, b.lines[1:]...)
		hang := strings.Repeat(" ", len(mark))
		return mark + strings.ReplaceAll(theme.Wrap(oneLine(rest), width-len(mark)), "\n", "\n"+hang)
	case tableBlock:
		return tableText(b.lines, width)
	case codeBlock:
		return strings.Join(b.lines, "\n")
	}
	return theme.Wrap(oneLine(b.lines), width)
}

func oneLine(lines []string) string {
	return inline(strings.Join(Mapped(lines, strings.TrimSpace), " "))
}

// inline replaces links to other documents with the command that prints them, and removes pictures and the marks of bold text.
func inline(s string) string {
	s = image.ReplaceAllString(s, "")
	s = link.ReplaceAllStringFunc(s, func(l string) string {
		m := link.FindStringSubmatch(l)
		path, _, _ := strings.Cut(m[2], "#")
		switch name, ok := strings.CutSuffix(path, ".md"); {
		case strings.Contains(m[2], "://"):
			return m[1] + " <" + m[2] + ">"
		case ok:
			return m[1] + " (rdma-setup help " + name + ")"
		}
		return m[1]
	})
	return bold.ReplaceAllString(s, "$1")
}

// tableText formats a table in columns that share the width. The text of a wide cell is wrapped within its column.
func tableText(lines []string, width int) string {
	var rows [][]string
	var natural []int
	for i, l := range lines {
		if i == 1 {
			continue // the line of dashes below the header
		}
		var row []string
		for c, cell := range strings.Split(strings.Trim(l, "|"), "|") {
			cell = inline(strings.TrimSpace(cell))
			row = append(row, cell)
			if c == len(natural) {
				natural = append(natural, 0)
			}
			natural[c] = max(natural[c], lipgloss.Width(cell))
		}
		rows = append(rows, row)
	}
	const gap = 2
	widths := share(natural, width-gap*(len(natural)-1))
	var out []string
	wrapped := false
	for _, row := range rows {
		cells := make([][]string, len(row))
		high := 0
		for c, cell := range row {
			cells[c] = strings.Split(theme.Wrap(cell, widths[c]), "\n")
			high = max(high, len(cells[c]))
		}
		wrapped = wrapped || high > 1
		var b strings.Builder
		for l := range high {
			var line strings.Builder
			for c := range cells {
				part := ""
				if l < len(cells[c]) {
					part = cells[c][l]
				}
				line.WriteString(part + strings.Repeat(" ", max(0, widths[c]-lipgloss.Width(part)+gap)))
			}
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
		out = append(out, strings.TrimSuffix(b.String(), "\n"))
	}
	if wrapped {
		return strings.Join(out, "\n\n")
	}
	return strings.Join(out, "\n")
}

// share assigns each column its natural width while there is room; the wider columns divide the rest equally.
func share(natural []int, room int) []int {
	widths := make([]int, len(natural))
	for open := len(natural); open > 0; {
		fair, assigned := max(1, room/open), false
		for c, n := range natural {
			if widths[c] == 0 && n <= fair {
				widths[c], room, open, assigned = max(1, n), room-n, open-1, true
			}
		}
		if assigned {
			continue
		}
		for c := range widths {
			if widths[c] == 0 {
				widths[c] = fair
			}
		}
		break
	}
	return widths
}
