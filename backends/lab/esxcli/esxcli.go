// Package esxcli runs esxcli commands on the lab's world. The ESXi shells print the answers as text, and the simulated vCenter
// returns them as data. Both use this package, so their answers are consistent.
package esxcli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Shape is the format in which an answer is printed.
type Shape int

// The formats of an answer.
const (
	Table  Shape = iota // rows below a header
	Record              // "Name: value" lines, one block per row
	Text                // free text
	Titled              // Record with a heading: Answer.Title, or the row's first value
)

// A Field is one value of a row. Name is the title of the column ("Paired Uplink"); the key in the API is the title without
// spaces and hyphens. Sub contains nested fields instead of a value.
type Field struct {
	Name, Value string
	Sub         []Field
	Hidden      bool     // only in the API, not printed
	List        []string // if not nil, the values of a list; Value contains them for display
}

// An Answer is the result of a command.
type Answer struct {
	Shape Shape
	Title string // title of a Titled answer
	Type  string // type name of the rows in the API, "RDMADevice"
	Rows  [][]Field
	Text  string
}

// A Param is one option of a command.
type Param struct {
	Name     string // name in the API: nic-name is "nicname"
	Long     string // long option, nic-name
	Short    string // short option, n
	Help     string
	Flag     bool // takes no value
	Required bool
	Many     bool // can occur more than once; the values are joined by commas
}

// Args contains the values of options by Param.Name. The values of a list are joined by commas. Flags have the value "true".
type Args map[string]string

// A Command is one command of esxcli.
type Command struct {
	Path   []string // command words, network nic list
	Help   string
	Params []Param
	Writes bool
	Run    func(w *world.World, host string, args Args) (Answer, error)
}

// Find returns the command at the beginning of the words and the number of words in its name, or nil if there is none.
func Find(words []string) (*Command, int) {
	for _, c := range Commands() {
		if len(words) >= len(c.Path) && slices.Equal(words[:len(c.Path)], c.Path) {
			return &c, len(c.Path)
		}
	}
	return nil, 0
}

// Parse parses the options after the words of the command.
func (c *Command) Parse(words []string) (Args, error) {
	args := Args{}
	for i := 0; i < len(words); i++ {
		name, value, joined := strings.Cut(words[i], "=")
		p := c.option(name)
		if p == nil {
			return nil, refuse("Invalid option %s", words[i])
		}
		switch {
		case p.Flag:
			value = "true"
		case !joined:
			if i+1 >= len(words) {
				return nil, refuse("Option %s requires an argument", name)
			}
			i++
			value = words[i]
		}
		if p.Many && args[p.Name] != "" {
			value = args[p.Name] + "," + value
		}
		args[p.Name] = value
	}
	for _, p := range c.Params {
		if _, given := args[p.Name]; p.Required && !given {
			return nil, refuse("Missing required parameter -%s|--%s", p.Short, p.Long)
		}
	}
	return args, nil
}

func (c *Command) option(word string) *Param {
	for i, p := range c.Params {
		if word == "--"+p.Long || p.Short != "" && word == "-"+p.Short {
			return &c.Params[i]
		}
	}
	return nil
}

// A Refusal is an error with a message of ESXi.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return Refusal(fmt.Sprintf(format, args...)) }

// Key returns the name of a field in the API.
func (f Field) Key() string { return joined.Replace(f.Name) }

var joined = strings.NewReplacer(" ", "", "-", "", "/", "")

// hidden returns fields that esxcli does not print.
func hidden(pairs ...string) []Field {
	fields := row(pairs...)
	for i := range fields {
		fields[i].Hidden = true
	}
	return fields
}

// seen returns the fields that esxcli prints.
func seen(fields []Field) []Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f Field) bool { return f.Hidden })
}

// Print formats an answer as esxcli does.
func (a Answer) Print() string {
	var b strings.Builder
	switch a.Shape {
	case Text:
		b.WriteString(a.Text)
		if a.Text != "" && !strings.HasSuffix(a.Text, "\n") {
			b.WriteByte('\n')
		}
	case Record:
		for i, row := range a.Rows {
			if i > 0 {
				b.WriteByte('\n')
			}
			record(&b, row, "   ")
		}
	case Titled:
		for i, row := range a.Rows {
			if i > 0 {
				b.WriteByte('\n')
			}
			title := a.Title
			if title == "" {
				title = row[0].Value
			}
			b.WriteString(title + "\n")
			record(&b, row, "   ")
		}
	case Table:
		table(&b, a.Rows)
	}
	return b.String()
}

func record(b *strings.Builder, row []Field, indent string) {
	for _, f := range seen(row) {
		if f.Sub != nil {
			fmt.Fprintf(b, "%s%s: \n", indent, f.Name)
			record(b, f.Sub, indent+"      ")
			continue
		}
		fmt.Fprintf(b, "%s%s: %s\n", indent, f.Name, f.Value)
	}
}

func table(b *strings.Builder, rows [][]Field) {
	if len(rows) == 0 {
		return
	}
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i] = seen(rows[i])
	}
	width := make([]int, len(rows[0]))
	numeric := make([]bool, len(rows[0]))
	for c := range rows[0] {
		width[c], numeric[c] = len(rows[0][c].Name), true
		for _, row := range rows {
			width[c] = max(width[c], len(row[c].Value))
			numeric[c] = numeric[c] && isRight(row[c].Value)
		}
	}
	line := func(cell func(c int) string) {
		var parts []string
		for c := range width {
			text := cell(c)
			switch {
			case numeric[c] && !strings.HasPrefix(text, "-"):
				text = fmt.Sprintf("%*s", width[c], text)
			case c < len(width)-1:
				text = fmt.Sprintf("%-*s", width[c], text)
			}
			parts = append(parts, text)
		}
		b.WriteString(strings.TrimRight(strings.Join(parts, "  "), " ") + "\n")
	}
	line(func(c int) string {
		if numeric[c] {
			return fmt.Sprintf("%-*s", width[c], rows[0][c].Name)
		}
		return rows[0][c].Name
	})
	line(func(c int) string { return strings.Repeat("-", width[c]) })
	for _, row := range rows {
		line(func(c int) string { return row[c].Value })
	}
}

// isRight reports whether esxcli right-aligns a value: numbers and booleans.
func isRight(value string) bool {
	if value == "true" || value == "false" {
		return true
	}
	return value != "" && strings.Trim(value, "0123456789") == ""
}
