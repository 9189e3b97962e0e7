package assets_test

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A banned is one line of banned-words.txt.
type banned struct {
	phrase, instead string
	literal         string // the longest word of the phrase, in lower case: a text without it is not searched
	re              *regexp.Regexp
	name            bool // it is a Go identifier
}

// TestWords searches what people read for the words of banned-words.txt: strings, comments and names in Go, documents, templates,
// scripts, testscripts and whatever else is written by hand. Recorded and generated data is left out.
func TestWords(t *testing.T) {
	list := bannedWords(t)
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "testdata"}, d.Name()) && !strings.HasSuffix(path, "ui/cmd/testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		kind := filepath.Ext(path)
		if !slices.Contains([]string{".go", ".md", ".sh", ".yaml", ".yml", ".gohtml", ".tmpl", ".txtar", ".json", ".py", ".c", ".service"},
			kind) &&
			d.Name() != "Makefile" && !strings.Contains(path, "testdata/script") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, hit := range search(b, kind == ".go", list) {
			t.Errorf("%s:%s", filepath.Clean(path), hit)
		}
		return nil
	})
	if err != nil || files < 1000 {
		t.Errorf("%d files, %v", files, err)
	}
}

// The test finds what it is for: across lines, in any case, in strings and comments, and no part of another word.
func TestWordsAreFound(t *testing.T) {
	list := []banned{ban("pale moon", "dark", false), ban("// * shines", "lights", false), ban("star*", "sun", false),
		ban("Comet", "sun", true)}
	for text, want := range map[string]int{
		"package p // Pale\n// moon":                1,
		"package p\nconst pale = moon":              0,
		"package p\nconst s = `a pale moon`":        1,
		"package p\nconst s = \"impale moon\"":      0,
		"package p\n// It shines\n// and it shines": 1,
		"package p\n// Starlight, comet":            1,
		"package p\nvar Comet, comet int":           1,
	} {
		if got := search([]byte(text), true, list); len(got) != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := search([]byte("# a pale\n# moon, a Comet"), false, list); len(got) != 1 {
		t.Errorf("not Go: %q", got)
	}
}

// bannedWords reads banned-words.txt.
func bannedWords(t *testing.T) []banned {
	t.Helper()
	b, err := os.ReadFile("banned-words.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list []banned
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		phrase, instead, ok := strings.Cut(line, " = ")
		if !ok {
			t.Fatalf("banned-words.txt: %q has no \" = \"", line)
		}
		phrase, name := strings.CutPrefix(phrase, "name ")
		list = append(list, ban(phrase, instead, name))
	}
	return list
}

func ban(phrase, instead string, name bool) banned {
	x := banned{phrase: phrase, instead: instead, name: name}
	if name {
		x.literal = strings.ToLower(phrase)
		return x
	}
	var words []string
	for _, w := range strings.Fields(phrase) {
		bare := strings.Trim(w, "*")
		if len(bare) > len(x.literal) {
			x.literal = strings.ToLower(bare)
		}
		w = strings.ReplaceAll(regexp.QuoteMeta(w), `\*`, `[\w.-]*`)
		words = append(words, w)
	}
	re := strings.Join(words, `[\s/#]+`)
	if word := regexp.MustCompile(`^\w`); word.MatchString(phrase) {
		re = `\b` + re
	}
	if word := regexp.MustCompile(`[\w*]$`); word.MatchString(phrase) {
		re += `\b`
	}
	x.re = regexp.MustCompile(`(?i)` + re)
	return x
}

// search returns the hits in a text, each as "line: what it is and what to write".
func search(b []byte, isGo bool, list []banned) (hits []string) {
	lower := bytes.ToLower(b)
	list = slices.DeleteFunc(slices.Clone(list), func(x banned) bool { return !isGo && x.name || !bytes.Contains(lower, []byte(x.literal)) })
	if len(list) == 0 {
		return nil
	}
	names := map[string]int{} // each identifier by its first line
	if isGo {
		b, names = written(b)
	}
	for _, x := range list {
		if x.name {
			if line, ok := names[x.phrase]; ok {
				hits = append(hits, at(line, x))
			}
			continue
		}
		for _, m := range x.re.FindAllIndex(b, -1) {
			hits = append(hits, at(1+bytes.Count(b[:m[0]], []byte("\n")), x))
		}
	}
	return hits
}

// at is a hit in the words of the test's output.
func at(line int, x banned) string {
	return fmt.Sprintf("%d: %q is in banned-words.txt; write: %s", line, x.phrase, x.instead)
}

// written returns a Go file with nothing left but its strings and comments, each where it was, and its identifiers by their first
// line. Of comments on consecutive lines only the first keeps its slashes.
func written(b []byte) ([]byte, map[string]int) {
	file := token.NewFileSet().AddFile("", -1, len(b))
	text, names, last := make([]byte, len(b)), map[string]int{}, 0
	for i, c := range b {
		if text[i] = ' '; c == '\n' {
			text[i] = c
		}
	}
	var s scanner.Scanner
	s.Init(file, b, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		from, line := file.Offset(pos), file.Line(pos)
		switch tok {
		case token.EOF:
			return text, names
		case token.IDENT:
			if _, ok := names[lit]; !ok {
				names[lit] = line
			}
		case token.STRING:
			copy(text[from:], lit)
		case token.COMMENT:
			copy(text[from:], lit)
			if last == line-1 && strings.HasPrefix(lit, "//") {
				copy(text[from:], "  ")
			}
			last = line
		}
	}
}
