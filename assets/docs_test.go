package assets_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documents are the README and the files it points to, by their path from this package.
func documents(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d documents, %v", len(names), err)
	}
	texts := map[string]string{}
	for _, name := range append(names, "../README.md") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(b)
	}
	return texts
}

func TestReadmeIsShort(t *testing.T) {
	if n := strings.Count(documents(t)["../README.md"], "\n"); n > 150 {
		t.Errorf("README.md has %d lines; at most 150. Move details to assets/docs.", n)
	}
}

// TestLinksResolve follows every relative link and every #anchor of the README and of the documents.
func TestLinksResolve(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for name, text := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			b, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s: dead link %s", name, m[1])
			} else if anchor != "" && !anchors(string(b))[anchor] {
				t.Errorf("%s: %s has no such heading", name, m[1])
			}
		}
	}
}

// TestReadmeLinksEveryDocument holds the list of documents in the README complete.
func TestReadmeLinksEveryDocument(t *testing.T) {
	texts := documents(t)
	for name := range texts {
		if strings.HasPrefix(name, "docs/") && !strings.Contains(texts["../README.md"], "(assets/"+name+")") {
			t.Errorf("README.md does not link to %s", name)
		}
	}
}

// anchors are the ids that GitHub gives to headings: lower case, spaces as hyphens, no punctuation
// (GitHub Docs, "Basic writing and formatting syntax", section "Section links").
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	drop := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			all[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")] = true
		}
	}
	return all
}
