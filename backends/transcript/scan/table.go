package scan

import (
	"slices"
	"strings"
)

// Header is the heading of a table: the columns by their titles, with their positions.
type Header struct {
	columns []column
	index   map[string]int // by Key of the title
}

type column struct {
	title      string
	start, end int // terminal columns of the title, or of the dashes below it
}

// NewHeader parses line as a heading made of titles, in any order and case, with any blanks between and inside them. Other text
// is a column of its own. It returns nil if fewer than need titles are found.
func NewHeader(line string, need int, titles ...string) *Header {
	if len(line) > 4096 {
		return nil
	}
	line = ExpandTabs(line)
	lower := strings.ToLower(line)
	taken := make([]bool, len(line))
	byLength := slices.Clone(titles)
	slices.SortStableFunc(byLength, func(a, b string) int { return len(b) - len(a) })
	h := &Header{}
	for _, title := range byLength {
		if start, end := findTitle(lower, taken, strings.Fields(strings.ToLower(title))); start >= 0 {
			for i := start; i < end; i++ {
				taken[i] = true
			}
			h.columns = append(h.columns, column{title, start, end})
		}
	}
	if len(h.columns) < need || need == 0 && len(h.columns) == 0 {
		return nil
	}
	for _, c := range cells(line) {
		if !slices.Contains(taken[c.start:c.end], true) {
			h.columns = append(h.columns, c)
		}
	}
	h.sort()
	return h
}

func (h *Header) sort() {
	slices.SortFunc(h.columns, func(a, b column) int { return a.start - b.start })
	h.index = make(map[string]int, len(h.columns))
	for i, c := range h.columns {
		if _, seen := h.index[Key(c.title)]; !seen {
			h.index[Key(c.title)] = i
		}
	}
}

// findTitle finds the words of a title, with any number of blanks between them, where nothing is taken.
func findTitle(line string, taken []bool, words []string) (start, end int) {
	if len(words) == 0 {
		return -1, -1
	}
	for from := 0; from < len(line); {
		i := strings.Index(line[from:], words[0])
		if i < 0 {
			return -1, -1
		}
		start = from + i
		end = start + len(words[0])
		from = end
		if taken[start] || start > 0 && line[start-1] != ' ' && line[start-1] != '|' {
			continue
		}
		found := true
		for _, w := range words[1:] {
			at := end
			for at < len(line) && line[at] == ' ' {
				at++
			}
			if at == end || !strings.HasPrefix(line[at:], w) {
				found = false
				break
			}
			end = at + len(w)
		}
		if found && (end == len(line) || line[end] == ' ' || line[end] == '|') {
			return start, end
		}
	}
	return -1, -1
}

// Rule widens the columns to the dashes below them and reports whether line was such a line. Dashes that do not fit the titles
// are not used.
func (h *Header) Rule(line string) bool {
	if !IsRule(line) {
		return false
	}
	runs := cells(ExpandTabs(line))
	if len(runs) != len(h.columns) {
		return true
	}
	for i, r := range runs {
		if r.start >= h.columns[i].end || h.columns[i].start >= r.end {
			return true
		}
	}
	for i, r := range runs {
		h.columns[i].start = min(h.columns[i].start, r.start)
		h.columns[i].end = max(h.columns[i].end, r.end)
	}
	return true
}

// Row splits a line below the heading into the cells of the columns. If the line has as many cells as there are columns, they are
// assigned in order; else by position, left or right aligned, so that empty cells stay empty.
func (h *Header) Row(line string) Row {
	r := Row{header: h, cells: make([]string, len(h.columns))}
	line = ExpandTabs(line)
	found := cells(line)
	if len(found) == len(h.columns) {
		for i, c := range found {
			r.cells[i] = c.title
		}
		return r
	}
	if words := strings.Fields(line); len(found) == 1 && len(words) == len(h.columns) {
		copy(r.cells, words)
		return r
	}
	at := 0
	for _, c := range h.split(line, found) {
		best, bestCost := -1, 0
		for i := at; i < len(h.columns); i++ {
			if cost := h.distance(c, i); best < 0 || cost < bestCost {
				best, bestCost = i, cost
			}
		}
		if best < 0 {
			best = len(h.columns) - 1
		}
		if r.cells[best] != "" {
			r.cells[best] += " "
		}
		r.cells[best] += c.title
		at = best
	}
	return r
}

// split separates cells that only one blank divides from the cell of the next column.
func (h *Header) split(line string, found []column) []column {
	var out []column
	for _, c := range found {
		for _, col := range h.columns {
			if col.start > c.start && col.start < c.end && line[col.start-1] == ' ' && line[col.start] != ' ' {
				out = append(out, column{strings.TrimSpace(line[c.start:col.start]), c.start, col.start - 1})
				c = column{line[col.start:c.end], col.start, c.end}
			}
		}
		out = append(out, c)
	}
	return out
}

// distance returns how far a cell is from column i: zero if one edge is shared, small if they overlap.
func (h *Header) distance(c column, i int) int {
	col := h.columns[i]
	d := min(abs(c.start-col.start), abs(c.end-col.end))
	if c.start >= col.end || col.start >= c.end {
		d += 4
	}
	return d
}

// Row is one line of a table.
type Row struct {
	header *Header
	cells  []string
}

// At returns the cell of the column with that title, empty when there is none.
func (r Row) At(title string) string {
	if i, ok := r.header.index[Key(title)]; ok {
		return r.cells[i]
	}
	return ""
}

// Cells returns the cells that two blanks or a tab separate.
func Cells(line string) []string {
	found := cells(ExpandTabs(line))
	out := make([]string, len(found))
	for i, c := range found {
		out[i] = c.title
	}
	return out
}

// cells finds the texts that two blanks separate. Tabs must be expanded.
func cells(line string) []column {
	var out []column
	for i := 0; i < len(line); {
		if line[i] == ' ' {
			i++
			continue
		}
		start := i
		for i < len(line) && (line[i] != ' ' || i+1 < len(line) && line[i+1] != ' ') {
			i++
		}
		out = append(out, column{line[start:i], start, i})
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

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
