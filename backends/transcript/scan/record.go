package scan

import (
	"strings"
)

// maxTail bounds how many lines a wrapped value may take.
const maxTail = 16

// Record is a group of fields that belong together.
type Record struct {
	Head   string   // the line that opened it, empty if a label did
	Tail   []string // text after the last field up to a blank line: the rest of a wrapped value, or noise
	values map[string]string
	last   string // the label that a wrapped line would continue, "" after a blank line
	final  string // the label of the last field
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

// Opening says how records begin. With First, a record begins at that label; with Head, at a line that Head accepts; with both,
// at a line that Head accepts and that the label First follows. With neither the text is one record. Fields before the first
// record are ignored.
type Opening struct {
	First string
	Head  func(line string) bool
}

// Records groups the fields of a text. The first value of a label wins; text between two fields of one record is the
// wrapped rest of the value before it.
func (l Labels) Records(text string, o Opening) []*Record {
	var (
		list []*Record
		cur  *Record
		head string // the last line without a label
	)
	open := func(headline string) {
		cur = &Record{Head: headline, values: map[string]string{}}
		list = append(list, cur)
	}
	if o.First == "" && o.Head == nil {
		open("")
	}
	for f := range l.Fields(text) {
		switch {
		case f.Blank():
			if cur != nil {
				cur.last = ""
			}
		case f.Label == "":
			switch {
			case o.Head != nil && o.First == "" && o.Head(f.Text):
				open(f.Text)
				continue
			case o.Head == nil || o.Head(f.Text):
				head = f.Text
			default:
				head = ""
			}
			if cur != nil && cur.last != "" && !f.Unknown && len(cur.Tail) < maxTail {
				cur.Tail = append(cur.Tail, f.Text)
			}
		default:
			if o.First != "" && f.Label == o.First {
				switch {
				case o.Head == nil:
					open("")
				case head != "":
					// The heading may have been stored as the rest of a wrapped value: remove it there.
					if cur != nil && len(cur.Tail) > 0 && cur.Tail[len(cur.Tail)-1] == head {
						cur.Tail = cur.Tail[:len(cur.Tail)-1]
					}
					open(head)
				default:
					cur = nil
				}
			}
			head = ""
			cur.set(f.Label, f.Text)
		}
	}
	return list
}

func (r *Record) set(label, value string) {
	if r == nil {
		return
	}
	if r.last != "" && len(r.Tail) > 0 {
		r.values[r.last] = strings.TrimSpace(r.values[r.last] + " " + strings.Join(r.Tail, " "))
	}
	r.Tail, r.last, r.final = nil, "", label
	if _, seen := r.values[label]; !seen {
		r.values[label], r.last = value, label
	}
}
