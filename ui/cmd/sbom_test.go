package cmd

import (
	"bytes"
	"regexp"
	"runtime/debug"
	"testing"
	"time"
)

// TestSBOMNamesLicenses uses a binary with two modules, one of which is not in any table. (Test binaries do not list their linked
// modules; package assets compares the table with all modules of the real binary.)
func TestSBOMNamesLicenses(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Path: "github.com/rdma-setup/rdma-setup"},
		Deps: []*debug.Module{{Path: "github.com/vmware/govmomi", Version: "v0.56.0"}, {Path: "example.com/unknown", Version: "v1.0.0"}}}
	doc := materials(info, "1.0", time.Unix(0, 0))
	for i, want := range []string{"Apache-2.0", "BSD-3-Clause", "Apache-2.0", "NOASSERTION"} {
		if got := doc.Packages[i].Declared; got != want {
			t.Errorf("%s: %s, want %s", doc.Packages[i].Name, got, want)
		}
	}
	if got, want := moduleZip(&debug.Module{Path: "github.com/BurntSushi/toml", Version: "v1.4.0"}),
		"https://proxy.golang.org/github.com/!burnt!sushi/toml/@v/v1.4.0.zip"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var out bytes.Buffer
	if err := licenses(&out, doc); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^github.com/vmware/govmomi +v0.56.0 +Apache-2.0$`).Match(out.Bytes()) {
		t.Errorf("%s", &out)
	}
}
