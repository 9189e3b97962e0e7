package lab_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
)

// BELIEFS.md must list every scenario, because a scenario is an assumption about real sites that has to be documented.
func TestEachScenarioIsInBeliefs(t *testing.T) {
	text, err := os.ReadFile("BELIEFS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lab.Scenarios() {
		if !strings.Contains(string(text), "| `"+name+"` |") {
			t.Errorf("BELIEFS.md does not name the scenario %s", name)
		}
	}
}

// Each entry in BELIEFS.md names an existing file, a source and a second witness. Each package of the lab has an entry.
func TestEachPackageHasABelief(t *testing.T) {
	text, err := os.ReadFile("BELIEFS.md")
	if err != nil {
		t.Fatal(err)
	}
	beliefs, _, _ := strings.Cut(string(text), "\n## Scenarios\n")
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([a-z_/]+\\.go)` \\| [^|]+ \\| [^|]+ \\|$")
	rows, named := row.FindAllStringSubmatch(beliefs, -1), map[string]bool{".": true} // the package lab only combines the others
	if all := strings.Count(beliefs, "\n| ") - 2*strings.Count(beliefs, "\n| belief | where | source | second witness |\n"); len(rows) != all || all < 80 {
		t.Errorf("%d of %d rows are whole", len(rows), all)
	}
	for _, r := range rows {
		if _, err := os.Stat(r[1]); err != nil {
			t.Errorf("a belief names %s: %v", r[1], err)
		}
		named[path.Dir(r[1])] = true
	}
	if err := fs.WalkDir(os.DirFS("."), ".", func(file string, _ fs.DirEntry, err error) error {
		if dir := path.Dir(file); path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !named[dir] {
			t.Errorf("no belief names a file of %s", dir)
			named[dir] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
