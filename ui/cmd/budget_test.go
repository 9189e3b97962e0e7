package cmd_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// budget is the number of bytes of Go, by part of the tree, that must not be exceeded. The parts outside tests and lab are the
// product. A ceiling is lowered with what is removed, and raised only for a feature that is worth it.
var budget = map[string]int64{
	"product": 3_800_000, "ui": 1_020_000, "wizard": 905_000, "backends": 1_375_000, "checks": 495_000, "assets": 20_000,
	"lab": 1_440_000, "tests": 2_950_000, "test data": 810_000, // of any kind
}

// packagesOutsideLab is the most packages of Go outside backends/lab.
const packagesOutsideLab = 71

// testOnly are the packages that only tests use; they count as tests.
var testOnly = []string{"backends/guest/realtest", "backends/settertest", "backends/testclass", "ui/cmd/torture", "ui/cmd/torture/witness"}

func TestBudget(t *testing.T) {
	sizes := map[string]int64{}
	folders := map[string]bool{}
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(top, path)
		if err != nil || path == top || d.IsDir() && !strings.HasPrefix(name, ".") && name != "bin" && name != "dist" {
			return err
		} else if d.IsDir() {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		part := partOf(filepath.ToSlash(name))
		sizes[part] += info.Size()
		if strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "backends/lab/") {
			folders[filepath.Dir(name)] = true
		}
		if slices.Contains([]string{"ui", "wizard", "backends", "checks", "assets"}, part) {
			sizes["product"] += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for part, most := range budget {
		t.Logf("%-9s %7d of %7d bytes", part, sizes[part], most)
		if sizes[part] == 0 || sizes[part] > most {
			t.Errorf("%s has %d bytes, and its ceiling is %d", part, sizes[part], most)
		}
	}
	if len(folders) > packagesOutsideLab {
		t.Errorf("%d packages outside the lab, and the ceiling is %d", len(folders), packagesOutsideLab)
	}
}

// partOf returns the part of the budget to which a file belongs; "" if it has none.
func partOf(name string) string {
	folder, _, _ := strings.Cut(name, "/")
	switch {
	case strings.Contains(name, "/testdata/"):
		return "test data"
	case !strings.HasSuffix(name, ".go"):
		return ""
	case strings.HasSuffix(name, "_test.go"), slices.Contains(testOnly, filepath.ToSlash(filepath.Dir(name))):
		return "tests"
	case strings.HasPrefix(name, "backends/lab/"):
		return "lab"
	}
	return folder
}

func TestPackagesOnlyForTestsAreListed(t *testing.T) {
	all := packages(t)
	used := map[string]bool{strings.TrimSuffix(module, "/"): true}
	for _, p := range all {
		for _, imp := range p.Imports {
			used[imp] = true
		}
	}
	var unused []string
	for _, p := range all {
		if !used[p.ImportPath] {
			unused = append(unused, strings.TrimPrefix(p.ImportPath, module))
		}
	}
	slices.Sort(unused)
	if !slices.Equal(unused, testOnly) {
		t.Errorf("no program imports %v; the list has %v", unused, testOnly)
	}
}
