package theme_test

import (
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

func TestFold(t *testing.T) {
	for name, tt := range map[string]struct {
		width      int
		text, want string
	}{
		"short":             {20, "  as it is\n\nhere", "  as it is\n\nhere"},
		"deeper by two":     {14, "  one two three four", "  one two\n    three four"},
		"names stay whole":  {16, "on esx-0001, esx-0002", "on esx-0001,\n  esx-0002"},
		"a word too long":   {8, "abcdefghijk", "abcdef\n  ghijk"},
		"wide characters":   {8, "日本語 日本語", "日本語\n  日本語"},
		"no width":          {0, "as it is", "as it is"},
		"deep on little":    {10, "            deep words", "     deep\n     words"},
		"commands copied":   {24, "again rdma-setup apply -f a.yaml", "again rdma-setup apply\n  -f a.yaml"},
		"nothing but blank": {3, "     ", "     "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := theme.Fold(tt.text, tt.width); strings.TrimRight(got, " ") != strings.TrimRight(tt.want, " ") {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestWrapKeepsTheIndent(t *testing.T) {
	if got := theme.Wrap("  one two three", 9); got != "  one two\n  three" {
		t.Errorf("%q", got)
	}
}

func TestFoldKeepsColours(t *testing.T) {
	red := theme.New(true, false, true).Bad.Render("one two three four five six")
	lines := strings.Split(theme.Fold(red, 12), "\n")
	if len(lines) < 3 {
		t.Fatalf("%q", lines)
	}
	for _, l := range lines {
		if lipgloss.Width(l) > 12 || !strings.Contains(l, "\x1b[") {
			t.Errorf("%q is %d wide, or without colour", l, lipgloss.Width(l))
		}
	}
}

func TestPlainIsASCIIWithoutColour(t *testing.T) {
	p := theme.Plain()
	all := p.Bar(0.5, 10) + p.Title.Render("a") + p.Border.Left + p.Border.TopLeft
	for m := theme.Pass; m <= theme.Skipped; m++ {
		all += p.Symbol(m)
	}
	for _, r := range all {
		if r > 0x7e {
			t.Errorf("%q holds %U", all, r)
		}
	}
	if strings.Contains(theme.New(false, false, true).Title.Render("a"), "38;") {
		t.Error("a theme without colour names one")
	}
}

func TestSymbolsTakeOneCell(t *testing.T) {
	for _, th := range []theme.Theme{theme.Plain(), theme.New(true, false, true), theme.New(true, false, false)} {
		seen := map[string]bool{}
		for m := theme.Pass; m <= theme.Skipped; m++ {
			s := th.Symbol(m)
			if lipgloss.Width(s) != 1 || seen[s] {
				t.Errorf("mark %d is %q", m, s)
			}
			seen[s] = true
		}
	}
}

func TestUTF8(t *testing.T) {
	for name, tt := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"nothing set":           {nil, false},
		"LANG":                  {map[string]string{"LANG": "en_US.UTF-8"}, true},
		"LC_ALL wins":           {map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, false},
		"LC_CTYPE before LANG":  {map[string]string{"LC_CTYPE": "C.utf8", "LANG": "C"}, true},
		"a set without unicode": {map[string]string{"LANG": "de_DE.ISO-8859-1"}, false},
	} {
		if got := theme.UTF8(func(k string) string { return tt.env[k] }); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestMarksOfStatuses(t *testing.T) {
	for s, want := range map[checks.Status]theme.Mark{checks.Pass: theme.Pass, checks.Warn: theme.Warn, checks.Fail: theme.Fail,
		checks.Unknown: theme.Unknown, "something new": theme.Unknown, "": theme.Unknown} {
		if got := theme.MarkOf(s); got != want {
			t.Errorf("%q has mark %d, not %d", s, got, want)
		}
	}
	for v, want := range map[perftest.Verdict]theme.Mark{perftest.VerdictPass: theme.Pass, perftest.VerdictWarn: theme.Warn,
		perftest.VerdictFail:    theme.Fail,
		perftest.VerdictUnknown: theme.Unknown, perftest.VerdictNotApplicable: theme.Skipped} {
		if got := theme.MarkOf(v); got != want {
			t.Errorf("%q has mark %d, not %d", v, got, want)
		}
	}
}
