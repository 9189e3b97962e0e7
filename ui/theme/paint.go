package theme

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

// A meaning colours parts of the lines that it concerns: what part matches, or its group if it has one.
type meaning struct {
	line, part *regexp.Regexp
	style      func(Theme) lipgloss.Style
}

var (
	good    = func(t Theme) lipgloss.Style { return t.Good }
	bad     = func(t Theme) lipgloss.Style { return t.Bad }
	warning = func(t Theme) lipgloss.Style { return t.Warning }
	quiet   = func(t Theme) lipgloss.Style { return t.Quiet }
	accent  = func(t Theme) lipgloss.Style { return t.Accent }
	title   = func(t Theme) lipgloss.Style { return t.Title }
)

// meanings are tried in order; of parts that overlap, the first is coloured.
var meanings = func() (out []meaning) {
	for _, m := range []struct {
		line, part string
		style      func(Theme) lipgloss.Style
	}{
		{`^RDMA [A-Z]+ - `, `^RDMA OK`, good},
		{`^RDMA [A-Z]+ - `, `^RDMA (?:WARNING|UNKNOWN)`, warning},
		{`^RDMA [A-Z]+ - `, `^RDMA CRITICAL`, bad},
		{`^(?:INSECURE|FAIL|fail)\b`, `^\w+`, bad},
		{`^(?:SIMULATED|WARN|UNKNOWN|warn)\b`, `^\w+`, warning},
		{`^(?:NOTE|NOT READ|note:)`, `^(?:NOTE|NOT READ|note:)`, quiet},
		{`^pass\b`, `^pass`, good},
		{`^ +(?:remedy|hint): `, `(?:remedy|hint):`, accent},
		{`^chain `, ` (pass)\b`, good},
		{`^chain `, ` (fail)\b`, bad},
		{`^chain `, ` (warn|not evaluated)\b`, warning},
		{`^chain `, ` (n/a|partly read|not read)\b| (\(\d+ not read\))`, quiet},
		{`^  \+ `, `\+`, good},
		{`^  ~ `, `~`, accent},
		{`^  [?!] `, `[?!]`, warning},
		{`^  - `, `-`, bad},
		{`^      (?:disrupts|cannot be undone)\b`, `\S.*`, warning},
		{`^(?:cost|window|left alone|kept): `, `^[a-z ]+:`, title},
		{`^\d{8}-\d{6}-\S+ `, ` (done|rolled back) `, good},
		{`^\d{8}-\d{6}-\S+ `, ` (failed|partial|damaged) `, bad},
		{`^\d{8}-\d{6}-\S+ `, ` (interrupted|running|refused) `, warning},
		{`^\d\d:\d\d:\d\d  `, `^\S+  (done) `, good},
		{`^\d\d:\d\d:\d\d  `, `^\S+  (FAILED) `, bad},
		{`^\d\d:\d\d:\d\d  `, `^\S+  (waiting|blocked|stopping)`, warning},
		{`^\S+ +[.=#]{20,}`, `#+`, bad},
		{`^\S+ +[.=#]{20,}`, `=+`, accent},
		{`^\S+ +\S+ +(?:[0-9a-f]{2}:){5}[0-9a-f]{2} `, ` (yes) `, good},
		{`^[A-Z][A-Z0-9]+ +[A-Z][A-Z0-9 ]*$`, `.+`, quiet},
	} {
		out = append(out, meaning{regexp.MustCompile(m.line), regexp.MustCompile(m.part), m.style})
	}
	return out
}()

// Paint colours a line of a command by its meaning, and folds it at words if it is wider than width.
func (t Theme) Paint(line string, width int) string {
	rows := []string{line}
	if width > 0 && lipgloss.Width(line) > width {
		rows = strings.Split(hang(line, width), "\n")
	}
	if t.Colour {
		said := slices.DeleteFunc(slices.Clone(meanings), func(m meaning) bool { return !m.line.MatchString(line) })
		for i := range rows {
			rows[i] = t.paint(rows[i], said)
		}
	}
	return strings.Join(rows, "\n")
}

func (t Theme) paint(row string, said []meaning) string {
	type span struct {
		from, to int
		style    lipgloss.Style
	}
	var spans []span
	for _, m := range said {
		for _, found := range m.part.FindAllStringSubmatchIndex(row, -1) {
			s := span{found[0], found[1], m.style(t)}
			for i := 2; i < len(found); i += 2 {
				if found[i] >= 0 {
					s.from, s.to = found[i], found[i+1]
				}
			}
			if !slices.ContainsFunc(spans, func(o span) bool { return s.from < o.to && o.from < s.to }) {
				spans = append(spans, s)
			}
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, s := range spans {
		b.WriteString(row[at:s.from])
		b.WriteString(s.style.Render(row[s.from:s.to]))
		at = s.to
	}
	return b.String() + row[at:]
}

// hang folds a line. What follows its last gap stays in its column, unless that is too narrow.
func hang(line string, width int) string {
	at := strings.LastIndex(line, "  ") + 2
	if at < 2 || at > width-narrow || at == len(line)-len(strings.TrimLeft(line, " ")) {
		return Fold(line, width)
	}
	return line[:at] + strings.ReplaceAll(Wrap(line[at:], width-at), "\n", "\n"+strings.Repeat(" ", at))
}

// narrow is the width below which a column is not folded in itself.
const narrow = 20

// Writer returns a writer that paints each line of a command's text for a terminal of this width.
func (t Theme) Writer(w io.Writer, width int) io.Writer { return &painter{t: t, w: w, width: width} }

type painter struct {
	t     Theme
	w     io.Writer
	width int
	rest  []byte
}

// Write implements io.Writer. A line is written when it is complete.
func (p *painter) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		p.rest = rest
		if _, err := io.WriteString(p.w, p.t.Paint(string(line), p.width)+"\n"); err != nil {
			return 0, err
		}
	}
}
