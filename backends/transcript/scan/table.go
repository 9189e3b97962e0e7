package scan

import "strings"

// Cells returns the cells that two blanks or a tab separate.
func Cells(line string) []string {
	line = ExpandTabs(line)
	var out []string
	for i := 0; i < len(line); {
		if line[i] == ' ' {
			i++
			continue
		}
		start := i
		for i < len(line) && (line[i] != ' ' || i+1 < len(line) && line[i+1] != ' ') {
			i++
		}
		out = append(out, line[start:i])
	}
	return out
}

// ExpandTabs replaces tabs by blanks up to the next multiple of eight, at least two, so that a tab always separates cells.
func ExpandTabs(line string) string {
	if strings.IndexByte(line, '\t') < 0 {
		return line
	}
	var b strings.Builder
	for i := range len(line) {
		if line[i] != '\t' {
			b.WriteByte(line[i])
			continue
		}
		n := 8 - b.Len()%8
		if n == 1 {
			n = 9
		}
		b.WriteString("         "[:n])
	}
	return b.String()
}
