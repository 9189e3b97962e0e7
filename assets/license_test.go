package assets_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/assets"
)

// identified reads from the words of a licence file what it is; each phrase is the licence's own.
func identified(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	var found []string
	for _, l := range []struct{ id, phrase string }{
		{"Apache-2.0", "Apache License"},
		{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
		{"BSD", "Redistribution and use in source and binary forms"},
		{"MPL-2.0", "Mozilla Public License"},
		{"ISC", "Permission to use, copy, modify, and/or distribute this software"},
	} {
		if strings.Contains(text, l.phrase) {
			id := l.id
			if id == "BSD" {
				id = "BSD-2-Clause"
				if regexp.MustCompile(`[Nn]either the name`).MatchString(text) {
					id = "BSD-3-Clause"
				}
			}
			found = append(found, id)
		}
	}
	return strings.Join(found, " AND ")
}

// TestLicenses holds the table against the modules that are linked for each platform of a release, and their licence files.
func TestLicenses(t *testing.T) {
	seen := map[string]bool{}
	for _, system := range []string{"linux", "darwin"} {
		c := exec.Command("go", "list", "-deps", "-json=Module", "..")
		c.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := c.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Module *struct {
					Path, Dir string
					Main      bool
				}
			}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Module == nil || p.Module.Main || seen[p.Module.Path] {
				continue
			}
			seen[p.Module.Path] = true
			var text strings.Builder
			entries, err := os.ReadDir(p.Module.Dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				name := strings.ToLower(e.Name())
				if e.Type().IsRegular() &&
					(strings.HasPrefix(name, "license") || strings.HasPrefix(name, "licence") || strings.HasPrefix(name, "copying")) {
					b, err := os.ReadFile(filepath.Join(p.Module.Dir, e.Name()))
					if err != nil {
						t.Fatal(err)
					}
					text.Write(b)
				}
			}
			if got := assets.Licenses()[p.Module.Path]; got == "" || got != identified(text.String()) {
				t.Errorf("%s: the table says %q, its licence file %q", p.Module.Path, got, identified(text.String()))
			}
		}
	}
	for module := range assets.Licenses() {
		if !seen[module] {
			t.Errorf("%s is not linked", module)
		}
	}
}
