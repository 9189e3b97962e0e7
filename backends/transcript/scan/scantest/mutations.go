package scantest

import (
	"bytes"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// A Mutation changes how a text looks, not what it says.
type Mutation struct {
	Name   string
	Mutate func(string) string
}

// Mutations are what editors, terminals, mail and tool versions do to a text.
func Mutations() []Mutation {
	gap := regexp.MustCompile(`(\S) {2,}`)
	return []Mutation{
		{"crlf", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }},
		{"lone cr", func(s string) string { return strings.ReplaceAll(s, "\n", "\r") }},
		{"tabs", func(s string) string { return gap.ReplaceAllString(s, "$1\t") }},
		{"wider columns", func(s string) string { return gap.ReplaceAllStringFunc(s, func(m string) string { return m + m[1:] }) }},
		{"no indentation", perLine(func(l string) string { return strings.TrimLeft(l, " \t") })},
		{"more indentation", perLine(func(l string) string {
			if l == "" {
				return l
			}
			return "      " + l
		})},
		{"trailing blanks", perLine(func(l string) string { return l + "  \t " })},
		{"prompts", func(s string) string {
			return "[root@esx-01:~] run the tool\n" + strings.TrimRight(s, "\n") + "\n[root@esx-01:~] \n"
		}},
		{"code fence", func(s string) string { return "```text\n" + strings.TrimRight(s, "\n") + "\n```\n" }},
		{"noise behind", func(s string) string {
			return strings.TrimRight(s, "\n") + "\n\nlogout\nConnection to 192.0.2.7 closed.\n"
		}},
		{"gap in front", func(s string) string { return "...\n" + s }},
		{"byte order mark and colours", func(s string) string { return "\ufeff\x1b[0m" + s + "\x1b[0m" }},
		{"no dash line", func(s string) string {
			return strings.Join(slices.DeleteFunc(strings.Split(s, "\n"), scan.IsRule), "\n")
		}},
		{"short dash line", perLine(func(l string) string {
			if scan.IsRule(l) {
				return l[:len(l)/2]
			}
			return l
		})},
	}
}

func perLine(f func(string) string) func(string) string {
	return func(s string) string {
		body := strings.TrimSuffix(s, "\n")
		lines := strings.Split(body, "\n")
		for i, l := range lines {
			lines[i] = f(l)
		}
		return strings.Join(lines, "\n") + s[len(body):]
	}
}

// Hold checks that no mutation changes what is read from a fixture. But names what a tool may not be mutated with,
// because its text says something by it: tool id -> mutation names.
func Hold(t *testing.T, dir string, tools Tools, but map[string][]string) {
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		for _, file := range fixtures(t, filepath.Join(dir, tool)) {
			text := read(t, file)
			want := encode(t, silent(decode(t, encode(t, tools[tool](text)))))
			for _, m := range Mutations() {
				if slices.Contains(but[tool], m.Name) {
					continue
				}
				t.Run(tool+"/"+filepath.Base(file)+"/"+m.Name, func(t *testing.T) {
					got := encode(t, silent(decode(t, encode(t, tools[tool](m.Mutate(text))))))
					if !bytes.Equal(want, got) {
						t.Errorf("%s reads otherwise:\n%s\nbefore:\n%s", m.Name, got, want)
					}
				})
			}
		}
	}
}

// silent takes the lines of the source out of the messages: a mutation changes them.
func silent(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for _, key := range []string{"errors", "warnings"} {
		list, _ := m[key].([]any)
		for _, e := range list {
			if message, ok := e.(map[string]any); ok {
				delete(message, "text")
			}
		}
	}
	return m
}
