package sh

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// Constant words become one part with their text. A word that may expand keeps its parts.
func TestJoinConstants(t *testing.T) {
	for word, text := range map[string]string{
		`'it'\''s'`: "it's", `a'b'`: "ab", `'a'_b'c*'`: "a_bc*", `\''a b'\'`: "'a b'", `'a'''`: "a",
		`a*'b'`: "", `{p,q}'r'`: "", `~/'x'`: "", `\*'q'`: "", `$'\t'a`: "", `'a'$b`: "", `"a"'b'`: "", `'a'/b`: "", `[a]'b'`: "",
	} {
		file, err := syntax.NewParser().Parse(strings.NewReader("x "+word), "")
		if err != nil {
			t.Fatal(err)
		}
		syntax.Walk(file, func(n syntax.Node) bool { joinConstants(n); return true })
		parts := file.Stmts[0].Cmd.(*syntax.CallExpr).Args[1].Parts
		if text == "" {
			if len(parts) < 2 {
				t.Errorf("%s has become one part", word)
			}
			continue
		}
		if one, is := parts[0].(*syntax.SglQuoted); !is || len(parts) != 1 || one.Value != text {
			t.Errorf("%s: %d parts, not %q", word, len(parts), text)
		}
	}
}
