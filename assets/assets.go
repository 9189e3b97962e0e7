// Package assets contains the tables and texts that are built into the program: which packages a guest needs, data about GPUs,
// example answers, the documents, and the scripts that run on other machines. The schema of the answers lies beside them for
// editors; the program generates it. The package imports no other package of the program.
package assets

import (
	"embed"
	"fmt"
	"strings"
	"sync"
)

// The program generates docs/cli.md from its commands and docs/check-list.md from its checks.
//
//go:embed *.yaml licenses.txt docs/[abd-z]*.md docs/changelog.md docs/checks.md docs/containers.md docs/contributing.md examples scripts templates programs
var files embed.FS

// Example returns example answers for a mode (pvrdma, sriov, gpudirect), or for several rails (rails).
func Example(mode string) ([]byte, error) {
	b, err := files.ReadFile("examples/answers-" + mode + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no example for mode %q", mode)
	}
	return b, nil
}

// scripts are the results of Script.
var scripts sync.Map

// Script returns a script that runs on another machine, without its comment lines. It panics on an unknown name; a test
// reads all scripts.
func Script(name string) string {
	if kept, known := scripts.Load(name); known {
		return kept.(string)
	}
	var b strings.Builder
	for line := range strings.Lines(text("scripts/" + name)) {
		if t := strings.TrimSpace(line); t != "" && !strings.HasPrefix(t, "#") {
			b.WriteString(line)
		}
	}
	scripts.Store(name, b.String())
	return b.String()
}

// Program returns the source of a program that is built in guests. It panics on an unknown name. No test compiles it.
func Program(name string) string { return text("programs/" + name) }

// Template returns a script that this program generates, with @NAME@ where a value belongs. It panics on an unknown name; a
// test renders all of them.
func Template(name string) string { return text("templates/" + name) }

// text reads a file, and panics if it is not built in.
func text(path string) string {
	b, err := files.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Topics returns the names of the documents in alphabetical order: docs/sriov.md is the topic sriov.
func Topics() []string {
	entries, err := files.ReadDir("docs")
	if err != nil {
		panic(err) // the folder is built in
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".md"))
	}
	return names
}

// Topic returns the Markdown text of a document, and false for a name that is not among Topics.
func Topic(name string) (string, bool) {
	b, err := files.ReadFile("docs/" + name + ".md")
	return string(b), err == nil
}

// TopicTitle returns the first heading of a document.
func TopicTitle(name string) string {
	text, _ := Topic(name)
	title, _, _ := strings.Cut(text, "\n")
	return strings.TrimPrefix(title, "# ")
}

// Licenses maps the modules that are linked into the program to their licences, as SPDX expressions.
var Licenses = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text("licenses.txt")) {
		if module, expression, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(module, "#") {
			out[module] = expression
		}
	}
	return out
})
