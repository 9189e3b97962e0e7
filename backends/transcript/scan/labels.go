package scan

import (
	"iter"
	"strings"
)

// Labels are the field names of a record, for texts with one field per line, all fields on one line, or wrapped lines.
type Labels struct {
	byLast  map[string][]label // by the last word of the name
	longest int                // the length of the longest last word
}

// maxMarks bounds the marks ("*", "|") in front of a name.
const maxMarks = 8

type label struct {
	name  string
	words []string
}

// Named makes Labels of the names as they are printed, without the colon; case and blanks do not matter.
func Named(names ...string) Labels {
	l := Labels{byLast: make(map[string][]label, len(names))}
	for _, name := range names {
		words := strings.Fields(strings.ToLower(name))
		if len(words) == 0 {
			continue
		}
		last := words[len(words)-1]
		l.longest = max(l.longest, len(last))
		l.byLast[last] = append(l.byLast[last], label{name, words})
	}
	return l
}

// Field is one piece of a record.
type Field struct {
	Label   string // as given to Named, "" for text that follows none
	Text    string // the value, or the text itself
	Unknown bool   // the text is a "name: value" line whose name is not known
	Indent  int    // columns before the line
}

// Blank reports whether the field is an empty line.
func (f Field) Blank() bool { return f.Label == "" && f.Text == "" }

// Plain reports whether the field is text that may be the heading of a record or the rest of a wrapped value.
func (f Field) Plain() bool { return f.Label == "" && f.Text != "" && !f.Unknown }

// Fields yields the pieces of a clean text in order. Rules and gaps are yielded as blank fields.
func (l Labels) Fields(text string) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for line := range Lines(text) {
			if IsRule(line) || IsGap(line) {
				line = ""
			}
			if !l.line(line, yield) {
				return
			}
		}
	}
}

func (l Labels) line(line string, yield func(Field) bool) bool {
	if strings.IndexByte(line, ':') < 0 {
		return yield(Field{Text: strings.TrimSpace(line), Indent: Indent(line)})
	}
	indent, lower := Indent(line), strings.ToLower(line)
	if len(lower) != len(line) { // a letter whose lower case is longer: the offsets would not fit
		lower = line
	}
	name, from, floor := "", 0, 0
	for i := 0; i < len(line); i++ {
		if line[i] != ':' {
			continue
		}
		end := i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t'
		if !end && name != "" {
			continue
		}
		next, start := l.before(lower, floor, i)
		if next == "" || !end && strings.TrimLeft(line[:start], " \t*|") != "" {
			continue
		}
		if head := strings.TrimSpace(line[from:start]); name != "" || head != "" {
			if !yield(Field{Label: name, Text: head, Indent: indent}) {
				return false
			}
		}
		name, from, floor = next, i+1, i+1
	}
	text := strings.TrimSpace(line[from:])
	f := Field{Label: name, Text: text, Indent: indent}
	if name == "" && text != "" {
		_, _, f.Unknown = KeyValue(text)
	}
	return yield(f)
}

// before finds the longest name that ends at the colon line[colon] and starts at floor or later.
func (l Labels) before(line string, floor, colon int) (name string, start int) {
	end := len(strings.TrimRight(line[:colon], " \t"))
	if end <= floor {
		return "", 0
	}
	reach := max(floor, end-l.longest-maxMarks-1) // a longer word cannot match
	last := max(reach, strings.LastIndexAny(line[reach:end], " \t")+reach+1)
	best := 0
	for _, c := range l.byLast[strings.TrimLeft(line[last:end], "*|")] {
		if at := backward(line, floor, end, c.words); at >= 0 && len(c.words) > best {
			name, start, best = c.name, at, len(c.words)
		}
	}
	return name, start
}

// backward returns the start of the words that end at end, -1 if line has other words there.
func backward(line string, floor, end int, words []string) int {
	for i := len(words) - 1; i >= 0; i-- {
		at := end - len(words[i])
		if at < floor || line[at:end] != words[i] {
			return -1
		}
		if at > floor && strings.IndexByte(" \t*|", line[at-1]) < 0 {
			return -1
		}
		end = at
		if i > 0 {
			for end > floor && (line[end-1] == ' ' || line[end-1] == '\t') {
				end--
			}
			if end == at {
				return -1
			}
		}
	}
	return end
}
