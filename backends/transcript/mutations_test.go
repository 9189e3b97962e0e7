package transcript_test

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

// A mutation changes the form of a text without changing its meaning.
type mutation struct {
	name   string
	mutate func(string) string
}

// mutations are what terminals and tool versions do to a text.
func mutations() []mutation {
	gap := regexp.MustCompile(`(\S) {2,}`)
	return []mutation{
		{"crlf", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }},
		{"no newline at the end", func(s string) string { return strings.TrimRight(s, "\n") }},
		{"trailing blanks", perLine(func(l string) string { return l + "  \t " })},
		{"colours", perLine(func(l string) string { return "\x1b[01;31m\x1b[K" + l + "\x1b[m\x1b[K" })},
		{"noise behind", func(s string) string { return ended(s) + "\nlogout\nConnection to 192.0.2.7 closed.\n" }},
		{"tabs", func(s string) string { return gap.ReplaceAllString(s, "$1\t") }},
		{"wider columns", func(s string) string { return gap.ReplaceAllStringFunc(s, func(m string) string { return m + m[1:] }) }},
		{"two blanks between columns", perLine(wideGaps("  "))},
		{"one blank between columns", perLine(wideGaps(" "))},
		{"blank lines between", perLine(func(l string) string { return l + "\n" })},
		{"no dash line", func(s string) string {
			return strings.Join(slices.DeleteFunc(strings.Split(s, "\n"), scan.IsRule), "\n")
		}},
		{"terminal of 80 columns", perLine(wrap(80))},
		{"terminal of 100 columns", perLine(wrap(100))},
	}
}

// ended ends a text with one newline.
func ended(s string) string { return strings.TrimRight(s, "\n") + "\n" }

func perLine(f func(string) string) func(string) string {
	return func(s string) string {
		body := strings.TrimSuffix(s, "\n")
		lines := strings.Split(body, "\n")
		for i, l := range lines {
			lines[i] = f(strings.TrimSuffix(l, "\r"))
		}
		return strings.Join(lines, "\n") + s[len(body):]
	}
}

// wideGaps replaces every run of blanks and tabs inside a line that is two or more columns wide.
func wideGaps(with string) func(string) string {
	wide := regexp.MustCompile(`(\S)(?:[ \t]{2,}|\t)(\S)`)
	return func(l string) string {
		for next := ""; next != l; { // neighbouring gaps share the character between them
			l, next = wide.ReplaceAllString(l, "${1}\x00${2}"), l
		}
		return strings.ReplaceAll(l, "\x00", with)
	}
}

// wrap breaks a line at the last blank before the width; tables in boxes are not wrapped.
func wrap(width int) func(string) string {
	return func(l string) string {
		var b strings.Builder
		for len(l) > width && !strings.ContainsAny(l, "|") {
			at := strings.LastIndexAny(l[:width], " \t")
			if strings.TrimSpace(l[:max(at, 0)]) == "" {
				break
			}
			b.WriteString(l[:at] + "\n")
			l = strings.TrimLeft(l[at:], " \t")
		}
		return b.String() + l
	}
}

// TestMutations checks that no mutation changes what is read from a fixture.
func TestMutations(t *testing.T) {
	// The tools ("lspci") and fixtures ("lspci/v-flags") for which a mutation changes the meaning.
	but := map[string][]string{
		"no dash line":        {"ib_read_bw", "ib_read_lat", "ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat"}, // it ends the test
		"blank lines between": {"esxcli_software_vib_install/wrapped", "mlxconfig/query-e", "mlxconfig/set-wrapped", "mlxfwmanager/two"},
	}
	tools := tools()
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		for _, file := range fixtures(t, filepath.Join("testdata", tool)) {
			name := tool + "/" + strings.TrimSuffix(filepath.Base(file), ".txt")
			text := read(t, file)
			want := encode(t, silent(decode(t, encode(t, tools[tool](text)))))
			for _, m := range mutations() {
				if slices.Contains(but[m.name], tool) || slices.Contains(but[m.name], name) {
					continue
				}
				t.Run(name+"/"+m.name, func(t *testing.T) {
					got := encode(t, silent(decode(t, encode(t, tools[tool](m.mutate(text))))))
					if !bytes.Equal(want, got) {
						t.Errorf("%s reads otherwise:\n%s\nbefore:\n%s\ntext:\n%s", m.name, got, want, m.mutate(text))
					}
				})
			}
		}
	}
}

// silent removes the source lines from the messages, because a mutation changes them.
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
