package perflog

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

type kind int

const (
	bandwidth kind = iota
	latency
)

// column is the meaning of a number in a row.
type column int

const (
	size column = iota
	iterations
	peak
	average
	rate
	tMin
	tMax
	tTypical
	tAvg
	tStdev
	p99
	p999
	tps
	other
	columns
)

// titles are the words that identify the columns of a heading; the percentiles are printed with and without "percentile".
var titles = []struct {
	text string
	col  column
}{
	{"#bytes", size}, {"#sl", other}, {"#iterations", iterations}, {"bw peak", peak}, {"bw average", average}, {"bw avg", average},
	{"msgrate", rate}, {"cpu_util", other}, {"bw port", other}, {"t_min", tMin}, {"t_max", tMax}, {"t_typical", tTypical}, {"t_avg", tAvg},
	{"t_stdev", tStdev}, {"99.9%", p999}, {"99%", p99}, {"99.9 ", p999}, {"99 p", p99}, {"tps", tps},
}

// usual are the columns of tables whose heading was cut off, by the count of their numbers.
var usual = map[kind]map[int][]column{
	bandwidth: {4: {size, iterations, peak, average}, 5: {size, iterations, peak, average, rate}},
	latency: {4: {size, iterations, tAvg, tps}, 5: {size, iterations, tMin, tMax, tTypical},
		9: {size, iterations, tMin, tMax, tTypical, tAvg, tStdev, p99, p999}},
}

// table collects the rows: a row begins with two whole numbers and continues, also over line ends, with decimal ones.
type table struct {
	kind     kind
	columns  []column
	titles   string // the heading so far, lower case
	unit     string
	rows     []*row
	open     row
	isOpen   bool
	complete bool
	results  bool   // the rows come from a results block
	overflow bool   // a figure is negative
	tail     string // text directly after the last number of a line
}

// seen reports whether there was a heading or a row.
func (t *table) seen() bool { return t.columns != nil || len(t.rows) > 0 }

// heading reads a heading, or the second part of a wrapped one.
func (t *table) heading(lower string) bool {
	if !strings.HasPrefix(lower, "#bytes") && !strings.HasPrefix(lower, "# bytes") {
		if t.columns == nil || len(t.rows) > 0 || !strings.Contains(lower, "[") || strings.ContainsAny(lower, ":=") || !t.isTitle(lower) {
			return false
		}
		lower = t.titles + " " + lower
	}
	t.titles = strings.Replace(lower, "# bytes", "#bytes", 1)
	t.columns = headingColumns(t.titles)
	switch {
	case strings.Contains(lower, "gb/s"):
		t.unit = "Gb/s"
	case strings.Contains(lower, "mb/s"), strings.Contains(lower, "mib/s"):
		t.unit = "MB/s"
	}
	return true
}

func (t *table) isTitle(lower string) bool {
	for _, c := range titles {
		if strings.HasPrefix(lower, c.text) {
			return true
		}
	}
	return strings.HasPrefix(lower, "percentile") || strings.HasPrefix(lower, "average[") || strings.HasPrefix(lower, "peak[") ||
		strings.HasPrefix(lower, "min[")
}

// headingColumns returns the columns by their titles. A unit without a known title before it is a column that is not read, such as
// "BW min[Gb/sec]" of --report-min-bw.
func headingColumns(lower string) []column {
	var out []column
	var seen [columns]bool
	titled := false
scan:
	for i := 0; i < len(lower); i++ {
		if lower[i] == '[' {
			if !titled {
				out = append(out, other)
			}
			titled = false
		}
		for _, c := range titles {
			if !strings.HasPrefix(lower[i:], c.text) {
				continue
			}
			col := c.col
			if seen[col] { // "BW average" of port 1 and 2 after that of both
				col = other
			}
			seen[col] = true
			out = append(out, col)
			titled = true
			i += len(c.text) - 1
			continue scan
		}
	}
	return out
}

// numbers reads a line that begins with a number and reports whether it belongs to the table.
func (t *table) numbers(line string) bool {
	t.tail = ""
	if t.columns == nil && !t.guessColumns(line) {
		return false
	}
	taken := false
	for line != "" {
		end := 0
		for end < len(line) && line[end] != ' ' && line[end] != '\t' {
			end++
		}
		word := line[:end]
		for end < len(line) && (line[end] == ' ' || line[end] == '\t') {
			end++
		}
		line = line[end:]
		if isDashes(word) && taken {
			t.rule()
			continue
		}
		if !t.number(word) {
			if taken {
				t.tail = strings.TrimSpace(t.tail + " " + line)
			}
			return taken
		}
		taken = true
		if t.tail != "" {
			t.tail = strings.TrimSpace(t.tail + " " + line)
			return true
		}
	}
	return taken
}

// guessColumns assumes the usual columns if the heading is missing and the line resembles a row.
func (t *table) guessColumns(line string) bool {
	words := strings.Fields(line)
	cols := usual[t.kind][len(words)]
	if cols == nil {
		return false
	}
	for i, w := range words {
		if _, integer, decimal := number(w); i < 2 && !integer || i >= 2 && !decimal {
			return false
		}
	}
	t.columns = cols
	return true
}

// number reads one word of a row.
func (t *table) number(word string) bool {
	v, integer, decimal := number(word)
	switch {
	case integer:
		if v < 0 && (!t.isOpen || t.open.n != 1) {
			return false
		}
		if t.isOpen && t.open.n < len(t.columns) && (t.columns[t.open.n] == iterations || t.columns[t.open.n] == other) {
			t.put(v)
			return true
		}
		t.close()
		t.open, t.isOpen = row{}, true
		t.put(v)
		return true
	case !t.isOpen || t.open.n < 2:
		t.isOpen = false
		return false
	case decimal:
		t.put(v)
		return true
	case word == "nan" || word == "-nan" || word == "inf" || word == "-inf":
		t.open.n++
		t.open.blank = true
		return true
	}
	return t.glued(word)
}

// glued splits values without a blank between them; perftest prints two decimals, six below one in the first rows. What remains
// and is not a number becomes the tail.
func (t *table) glued(word string) bool {
	for word != "" {
		dot := strings.IndexByte(word, '.')
		if dot < 1 || !isInteger(word[:dot]) {
			break
		}
		end := dot + 1
		for end < len(word) && word[end] >= '0' && word[end] <= '9' {
			end++
		}
		if end < len(word) && word[end] == '.' {
			decimals := 2
			if t.kind == bandwidth && word[:dot] == "0" && end-dot > 7 {
				decimals = 6
			}
			end = min(end, dot+1+decimals)
		}
		v, _, _ := number(word[:end])
		t.put(v)
		word = word[end:]
	}
	if word != "" && t.open.n <= 2 {
		return false
	}
	t.tail = word
	return true
}

func (t *table) put(v float64) {
	if t.open.n < len(t.columns) {
		c := t.columns[t.open.n]
		switch {
		case v >= 0:
			t.open.put(c, v)
		case c == iterations:
			t.open.put(c, 0)
			t.overflow = true
		default:
			t.open.blank, t.overflow = true, true
		}
	}
	t.open.n++
}

// close keeps the open row if it is complete enough.
func (t *table) close() {
	r := &t.open
	if !t.isOpen {
		return
	}
	t.isOpen = false
	if !r.has(size) || !r.has(iterations) {
		return
	}
	if !r.blank && (t.kind == bandwidth && !r.has(average) || t.kind == latency && !r.has(tAvg) && !r.has(tTypical)) {
		return
	}
	t.rows = append(t.rows, new(*r))
	t.complete = false
}

func (t *table) rule() {
	t.close()
	if len(t.rows) > 0 {
		t.complete = true
	}
}

func (t *table) finish() {
	t.close()
	if t.results && len(t.rows) > 0 {
		t.complete = true
	}
}

// resultKeys are the keys of the results block of --out_json.
var resultKeys = map[string]column{
	"msgsize": size, "n iterations": iterations, "bw peak": peak, "bw average": average, "msgrate": rate,
	"t min": tMin, "t max": tMax, "t typical": tTypical, "t avg": tAvg, "t stdev": tStdev, "percentile 99": p99,
	"percentile 99.9": p999, "tps": tps, "tps average": tps,
}

// result reads one value of the results block of --out_json.
func (t *table) result(key, value string) bool {
	c, ok := resultKeys[key]
	if !ok || !t.isOpen && c != size {
		return false
	}
	f := scan.LeadingFloat(value)
	if f == nil {
		return false
	}
	if c == size {
		t.close()
		if len(t.rows) > 0 && !t.results { // the block repeats the table above it
			return true
		}
		t.open, t.isOpen, t.results = row{}, true, true
	}
	t.open.put(c, *f)
	t.open.n++
	return true
}

// number reads a whole number or a decimal one of at most 15 digits, which a float holds exactly.
func number(s string) (v float64, integer, decimal bool) {
	if s == "" || len(s) > 16 {
		return 0, false, false
	}
	digits, scale, from := uint64(0), 1.0, 0
	if s[0] == '-' { // counters of long runs overflow
		scale, from = -1.0, 1
	}
	for i := from; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits = digits*10 + uint64(c-'0')
			if decimal {
				scale *= 10
			}
		case c == '.' && i > from && i+1 < len(s) && !decimal:
			decimal = true
		default:
			return 0, false, false
		}
	}
	return float64(digits) / scale, !decimal && len(s) <= 15 && len(s) > from, decimal
}

func isInteger(s string) bool {
	_, integer, _ := number(s)
	return integer
}
