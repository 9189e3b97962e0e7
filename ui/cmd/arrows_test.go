package cmd_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rdma-setup/rdma-setup/"

// allowed lists, for each package, the packages below it that it may import. An entry covers its sub-packages.
var allowed = map[string][]string{
	"ui/cmd":          {"ui", "wizard", "backends", "checks", "assets"},
	"ui/cmd/console":  {"ui/plain", "ui/theme", "wizard/answers", "wizard/plan", "wizard/engine/journal", "backends"},
	"ui/cmd/generate": {"ui/cmd/console", "ui/cmd/session", "ui/plain", "wizard", "backends", "checks"},
	"ui/cmd/session": {"ui/cmd/console", "ui/live", "wizard/answers", "wizard/sizing", "wizard/plan", "wizard/engine/journal",
		"wizard/generate", "wizard/report", "backends", "checks", "assets"},

	"ui/cmd/torture/witness": {}, // the witness shares no code with the program that it checks

	"ui/form":        {"ui/form", "ui/theme", "ui/live", "ui/plain", "ui/render", "wizard", "checks", "backends", "assets"},
	"ui/form/frame":  {"ui/form/entry", "ui/theme", "ui/live", "ui/plain", "wizard", "checks", "backends"},
	"ui/form/dialog": {"ui/form/entry", "ui/theme", "ui/live", "ui/plain", "ui/render", "wizard", "checks", "backends"},
	"ui/form/entry":  {"ui/theme", "ui/live", "ui/plain", "ui/render", "wizard", "backends"},

	"ui/live":   {"ui/theme", "ui/plain", "ui/render", "wizard", "checks", "backends", "assets"},
	"ui/plain":  {"ui/theme", "wizard", "checks", "backends", "assets"},
	"ui/render": {"ui/theme", "ui/plain", "wizard", "checks", "backends", "assets"},
	"ui/theme":  {},

	"wizard/engine":   {"wizard/plan", "wizard/answers", "wizard/sizing", "backends"},
	"wizard/plan":     {"wizard/answers", "wizard/sizing", "backends", "assets"},
	"wizard/report":   {"wizard/plan", "checks", "backends"},
	"wizard/generate": {"wizard/answers", "wizard/sizing", "backends", "assets"},
	"wizard/answers":  {"assets", "backends"},
	"wizard/sizing":   {"wizard/answers", "backends", "assets"},
	"checks":          {"wizard/answers", "wizard/sizing", "backends", "backends/transcript", "assets"},

	"backends/vsphere":    {"backends", "backends/transcript"},
	"backends/esxi":       {"backends", "backends/nic", "backends/ssh"},
	"backends/guest":      {"backends", "backends/ssh", "backends/transcript", "assets"},
	"backends/ssh":        {"backends", "assets"},
	"backends/nic":        {"backends", "backends/transcript"},
	"backends/settertest": {"backends"},
	"backends/testclass":  {},
	"backends/transcript": {},
	"backends/lab":        {},
	"backends":            {},
	"assets":              {},
}

// wordsOnly are packages that may import package backends itself but none of its sub-packages, except the parsers and the interface
// to NIC families.
var wordsOnly = []string{"ui/form", "ui/live", "ui/plain", "ui/render", "wizard", "checks"}

// doors are packages that only the listed packages may import. For example, only the catalogue imports the packages of check rows;
// the rows do not import each other.
var doors = map[string][]string{
	"checks/vcenter": {"checks/catalogue"},
	"checks/host":    {"checks/catalogue"},
	"checks/network": {"checks/catalogue"},
	"checks/vm":      {"checks/catalogue"},
	"checks/guest":   {"checks/catalogue"},
	"checks/row":     {"checks/vcenter", "checks/host", "checks/network", "checks/vm", "checks/guest"},

	// NIC families are used only through their interface.
	"backends/nic/bnxt": {"backends/nic"},
	"backends/nic/e810": {"backends/nic"},
	"backends/nic/mlx5": {"backends/nic"},

	"wizard/plan/draft":  {"wizard/plan/recipe", "wizard/plan/guest", "wizard/plan/driver", "wizard/plan/waves"},
	"wizard/plan/guest":  {"wizard/plan/recipe"},
	"wizard/plan/driver": {"wizard/plan/recipe"},
	"wizard/plan/waves":  {"wizard/plan/recipe", "wizard/plan/rollback"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// room returns the entry with the longest path that contains a package.
func room(path string) string {
	best := ""
	for name := range allowed {
		if (path == name || strings.HasPrefix(path, name+"/")) && len(name) > len(best) {
			best = name
		}
	}
	return best
}

func TestArrowsPointDown(t *testing.T) {
	all := packages(t)
	if len(all) < 10 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	for _, p := range all {
		from := strings.TrimPrefix(p.ImportPath, module)
		if from == strings.TrimSuffix(module, "/") || !strings.HasPrefix(p.ImportPath, module) {
			continue
		}
		here := room(from)
		if here == "" {
			t.Errorf("%s lies in no room of the house: name it in allowed, with what it may import", from)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			if !ours {
				thirdParty(t, from, imp)
				continue
			}
			if guests, kept := doors[to]; kept && !slices.Contains(guests, from) {
				t.Errorf("%s imports %s, which is there for %v", from, to, guests)
			}
			there := room(to)
			if there == here || mayImport(here, to) {
				continue
			}
			t.Errorf("%s imports %s: the arrow points up or across", from, to)
		}
	}
}

func mayImport(here, to string) bool {
	ok := slices.ContainsFunc(allowed[here], func(a string) bool { return to == a || strings.HasPrefix(to, a+"/") })
	below := strings.HasPrefix(to, "backends/") && !strings.HasPrefix(to, "backends/transcript") && to != "backends/nic"
	narrow := slices.ContainsFunc(wordsOnly, func(r string) bool { return here == r || strings.HasPrefix(here, r+"/") })
	return ok && !(below && narrow)
}

// thirdParty fails the test if an external library is imported outside the packages that own it.
func thirdParty(t *testing.T, from, imp string) {
	t.Helper()
	owners := map[string][]string{
		"charm.land/huh/v2":         {"ui/form"},
		"charm.land/bubbletea/v2":   {"ui/form", "ui/live"},
		"github.com/vmware/govmomi": {"backends/vsphere", "backends/lab", "ui/cmd/torture/witness"},
		"github.com/spf13/viper":    {"ui/cmd"},
		"golang.org/x/crypto/ssh":   {"backends/ssh", "backends/lab", "backends/guest", "backends/esxi"},
	}
	for lib, rooms := range owners {
		if imp != lib && !strings.HasPrefix(imp, lib+"/") {
			continue
		}
		if !slices.ContainsFunc(rooms, func(r string) bool { return from == r || strings.HasPrefix(from, r+"/") }) {
			t.Errorf("%s imports %s, which belongs to %v", from, imp, rooms)
		}
	}
}

func TestTopLevelEntries(t *testing.T) {
	named := []string{"main.go", "ui", "wizard", "backends", "checks", "assets", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE", "bin",
		"dist"}
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(named, e.Name()) {
			t.Errorf("%s: the top level holds only %v and dot files", e.Name(), named)
		}
	}
}
