package cmd

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// generatedMark begins the part of a document that TestReferences generates.
const generatedMark = "<!-- Generated; do not edit. Run: go test ./ui/cmd -run TestReferences -update -->\n"

// TestReferences compares the references in assets/docs with the table of keys, the catalogue and the command tree.
func TestReferences(t *testing.T) {
	for name, generated := range map[string]string{
		"answers": keyReference(), "check-list": checkReference(),
		"cli": commandReference(newRootCmd(&console.Env{Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{},
			Getenv: func(string) string { return "" }})), "pvrdma": kernelReference(t), "releases": releaseReference(t),
		"sources": sourceReference(t),
	} {
		path := "../../assets/docs/" + name + ".md"
		b := testclass.Read(t, path)
		written, _, _ := strings.Cut(string(b), generatedMark)
		if name == cliTopic {
			written = cliIntro
		}
		want := strings.TrimRight(written, "\n") + "\n\n" + generatedMark + "\n" + strings.TrimRight(generated, "\n") + "\n"
		if want == string(b) {
			continue
		}
		if !*testclass.Update {
			t.Errorf("%s is out of date; run: go test ./ui/cmd -run TestReferences -update", path)
		} else if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNamedChecksExist checks that each check id in the documents and in the help of commands is in the catalogue.
func TestNamedChecksExist(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	docs, err := filepath.Glob("../../assets/docs/*.md")
	testclass.OK(t, err)
	for _, path := range append(docs, "../../README.md") {
		b := testclass.Read(t, path)
		if filepath.Base(path) != "changelog.md" { // it also names rows that were removed
			texts[path] = string(b)
		}
	}
	for name, d := range descriptions {
		texts["help of "+name] = d.long + "\n" + d.examples
	}
	known := map[string]bool{}
	for _, c := range catalogue.Checks() {
		known[c.ID] = true
	}
	id := regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+-\d{3}\b`)
	named := 0
	for where, text := range texts {
		for _, found := range id.FindAllString(text, -1) {
			named++
			if !known[found] {
				t.Errorf("%s: there is no check %s", where, found)
			}
		}
	}
	if named < len(known) {
		t.Errorf("only %d ids were found", named)
	}
}

func keyReference() string {
	var b strings.Builder
	for _, k := range answers.Keys() {
		top := !strings.Contains(k.Path, ".")
		if top && k.Default == "" && len(k.Enum) == 0 {
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", k.Path, sentence(k.Doc))
			continue
		}
		fmt.Fprintf(&b, "- `%s`", k.Path)
		if k.Default != "" {
			fmt.Fprintf(&b, " (default `%s`)", k.Default)
		}
		fmt.Fprintf(&b, ": %s", sentence(strings.TrimRight(k.Doc, ".")))
		if len(k.Enum) > 0 && !strings.Contains(k.Doc, " | ") {
			fmt.Fprintf(&b, " One of %s.", strings.Join(k.Enum, ", "))
		}
		if k.Min != 0 || k.Max != 0 {
			fmt.Fprintf(&b, " From %d to %d.", k.Min, k.Max)
		}
		if k.Mode != "" {
			fmt.Fprintf(&b, " Mode %s only.", k.Mode)
		}
		if k.Required {
			b.WriteString(" Required.")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// kernelReference returns the table of kernels that have the driver of PVRDMA.
func kernelReference(t *testing.T) string {
	rows, err := assets.Kernels()
	testclass.OK(t, err)
	var b strings.Builder
	b.WriteString("| distribution | package with vmw_pvrdma | source |\n|---|---|---|\n")
	for _, k := range rows {
		p := strings.ReplaceAll(cmp.Or(k.Packages[backends.PVRDMAModule], "none"), "KERNEL", "`uname -r`")
		fmt.Fprintf(&b, "| %s | %s | %s |\n", k.Name, p, k.Source)
	}
	return b.String()
}

// releaseReference returns the table of releases: one section per topic, one row per change of the fact.
func releaseReference(t *testing.T) string {
	rows, err := assets.Releases()
	testclass.OK(t, err)
	var b strings.Builder
	for i, f := range rows[0].Facts {
		fmt.Fprintf(&b, "## %s\n\n| since | fact | source |\n|---|---|---|\n", strings.ToUpper(f.Topic[:1])+f.Topic[1:])
		for n, r := range rows {
			if n == 0 || r.Facts[i] != rows[n-1].Facts[i] {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Name, r.Facts[i].Is, cmp.Or(r.Facts[i].Source, "unverified"))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
