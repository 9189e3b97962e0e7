package transcript_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// mutations change how a text looks and not what it says: the terminals, editors and mail programs of the world.
var mutations = []struct {
	name   string
	mutate func(string) string
	except string // tools and fixtures for which the change does say something else
}{
	{"CRLF", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }, ""},
	{"no newline at the end", func(s string) string { return strings.TrimRight(s, "\n") }, ""},
	{"blanks at line ends", each(func(l string) string { return l + "  \t " }), ""},
	{"terminal colours", each(func(l string) string { return "\x1b[01;31m\x1b[K" + l + "\x1b[m\x1b[K" }), ""},
	{"byte order mark", func(s string) string { return "\ufeff" + s }, ""},
	{"quoted four blanks", each(func(l string) string { return "    " + l }), ""},
	{"no indentation", each(func(l string) string { return strings.TrimLeft(l, " \t") }), ""},
	{"indented by a tab", each(func(l string) string { return "\t" + l }), ""},
	{"prompt before", func(s string) string { return "[root@vm-07 ~]# the-command --with 1 -o x:y | tee out\n" + s }, ""},
	{"prompt behind", func(s string) string {
		return strings.TrimRight(s, "\n") + "\nroot@vm-07:/home/user# \nvm-07:~ # exit\n"
	}, ""},
	{"code fences", func(s string) string { return "```\n" + strings.TrimRight(s, "\n") + "\n```\n" }, ""},
	{"comment lines", func(s string) string { return "# seen on the second host\n" + line(s) + "# end\n" }, ""},
	{"foreign words", func(s string) string {
		return "Last login from somewhere\nplease see below\n...\n" + line(s) + "...\nthat is all\n"
	}, ""},
	{"tabs for wide gaps", each(wideGaps("\t")), ""},
	{"two blanks for wide gaps", each(wideGaps("  ")), ""},
	{"one blank for wide gaps", each(wideGaps(" ")), ""},
	{"blank lines between", each(func(l string) string { return l + "\n" }), ""},
	{"no-break spaces", each(func(l string) string { return strings.ReplaceAll(l, "  ", " \u00a0") }), ""},
	{"terminal of 72 columns", each(wrap(72)), ""},
	{"terminal of 80 columns", each(wrap(80)), ""},
	{"terminal of 100 columns", each(wrap(100)), ""},
	{"one long line", oneLine, "lspci nvidia_smi nvidia_smi_q nvidia_smi_topo mlnx_qos ethtool_s/after-login ib_write_bw/cm-disconnect " +
		"ib_write_bw/fault-versions-conflict ib_write_bw/no-heading ib_read_lat/fault-version " +
		"ibv_devinfo/list lsmod/proc"},
	{"lines swapped for paragraphs", each(func(l string) string { return "\n\n" + l + "\n" }), ""},
	{"quoted in a mail", each(func(l string) string { return "> " + l }), ""},
}

// line ends a text with a newline.
func line(s string) string { return strings.TrimRight(s, "\n") + "\n" }

func each(change func(string) string) func(string) string {
	return func(s string) string {
		lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
		for i, l := range lines {
			lines[i] = change(strings.TrimRight(l, "\r"))
		}
		return strings.Join(lines, "\n") + "\n"
	}
}

// oneLine joins all lines but prompts.
func oneLine(s string) string {
	var words []string
	for l := range scan.Lines(scan.Clean(s)) {
		words = append(words, strings.Fields(l)...)
	}
	return strings.Join(words, " ")
}

// wideGaps replaces every run of blanks and tabs inside a line that is two or more columns wide.
func wideGaps(with string) func(string) string {
	return func(l string) string {
		body := strings.TrimLeft(l, " \t")
		var b strings.Builder
		b.WriteString(l[:len(l)-len(body)])
		for body != "" {
			i := strings.IndexAny(body, " \t")
			if i < 0 {
				break
			}
			rest := strings.TrimLeft(body[i:], " \t")
			gap := body[i : len(body)-len(rest)]
			b.WriteString(body[:i])
			if len(gap) > 1 || gap == "\t" {
				gap = with
			}
			b.WriteString(gap)
			body = rest
		}
		return b.String() + body
	}
}

// wrap breaks a line at the last blank before the width.
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

// TestMutations reads every fixture as it is and changed: the value must be the same.
func TestMutations(t *testing.T) {
	for _, f := range fixtures(t, "testdata") {
		if strings.HasSuffix(f.name, "/flat") { // mutated enough: all on one line, a prompt and a command too
			continue
		}
		want := withoutTexts(t, parse(t, f.tool, f.text))
		for _, m := range mutations {
			if except := " " + m.except + " "; strings.Contains(except, " "+f.tool+" ") || strings.Contains(except, " "+f.name+" ") {
				continue
			}
			t.Run(f.name+"/"+m.name, func(t *testing.T) {
				got := withoutTexts(t, parse(t, f.tool, m.mutate(f.text)))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-as it is +changed)\n%s\n%s", diff, m.mutate(f.text))
				}
			})
		}
	}
}

// withoutTexts drops the lines that messages quote.
func withoutTexts(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"errors", "warnings"} {
		for _, m := range v[list].([]any) {
			delete(m.(map[string]any), "text")
		}
	}
	return v
}
