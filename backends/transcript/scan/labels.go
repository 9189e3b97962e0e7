package scan

import (
	"iter"
	"strings"
)

// Labels are the names of the fields of a record, one on a line, by what Key makes of them.
type Labels map[string]string

// Named makes Labels of the names as they are printed, without the colon; case and blanks do not matter.
func Named(names ...string) Labels {
	l := Labels{}
	for _, name := range names {
		l[Key(name)] = name
	}
	return l
}

// Field is one line of a record.
type Field struct {
	Label   string // as given to Named, "" for text that follows none
	Text    string // the value, or the text itself
	Unknown bool   // the text is a "name: value" line whose name is not known
}

// Plain reports whether the field is text that may be the heading of a record or the rest of a wrapped value.
func (f Field) Plain() bool { return f.Label == "" && f.Text != "" && !f.Unknown }

// Fields yields the lines of a clean text in order. Rules are yielded as blank fields.
func (l Labels) Fields(text string) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for line := range Lines(text) {
			if IsRule(line) {
				line = ""
			}
			key, value, pair := KeyValue(line)
			f := Field{Text: strings.TrimSpace(line), Unknown: pair}
			if name, known := l[key]; pair && known {
				f = Field{Label: name, Text: value}
			}
			if !yield(f) {
				return
			}
		}
	}
}

// IsRule reports whether a line consists of dashes (three or more; '=', '_', '*' and '+' corners of boxes count too, blanks do
// not).
func IsRule(line string) bool {
	rest := strings.Trim(line, " \t+|-=_*")
	return rest == "" && strings.Count(line, "-")+strings.Count(line, "=")+strings.Count(line, "_")+strings.Count(line, "*") >= 3
}

// Record is a group of fields that belong together.
type Record struct {
	Tail   []string // text after the last field up to a blank line: the rest of a wrapped value, or noise
	values map[string]string
	final  string // the label of the last field
}

// Record reads the fields of a text. The first value of a label wins; text between two fields is the wrapped rest of the value
// before it.
func (l Labels) Record(text string) *Record {
	const maxTail = 16 // bounds how many lines a wrapped value may take
	r := &Record{values: map[string]string{}}
	last := "" // the label that a wrapped line would continue, "" after a blank line
	for f := range l.Fields(text) {
		switch {
		case f.Label != "":
			if last != "" && len(r.Tail) > 0 {
				r.values[last] = strings.TrimSpace(r.values[last] + " " + strings.Join(r.Tail, " "))
			}
			r.Tail, last, r.final = nil, "", f.Label
			if _, seen := r.values[f.Label]; !seen {
				r.values[f.Label], last = f.Text, f.Label
			}
		case f.Text == "":
			last = ""
		case last != "" && !f.Unknown && len(r.Tail) < maxTail:
			r.Tail = append(r.Tail, f.Text)
		}
	}
	return r
}

// Value returns the value of a label, empty if the record does not have it.
func (r *Record) Value(label string) string { return r.values[label] }

// Ends reports whether the label is the last of the record: then Tail may be the rest of its value.
func (r *Record) Ends(label string) bool { return r.final == label }

// Has reports whether the record has the label, possibly with an empty value.
func (r *Record) Has(label string) bool {
	_, ok := r.values[label]
	return ok
}

// Str returns the value of a label; nil for the words of IsNull.
func (r *Record) Str(label string) *string { return Str(r.values[label]) }

// Bool reads a truth value.
func (r *Record) Bool(label string) *bool { return Bool(r.values[label]) }
