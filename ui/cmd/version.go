package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

func newVersionCmd(e *console.Env) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the SBOM (-o spdx) or the licences (-o licenses)",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch output {
			case "spdx", "licenses":
				info, ok := debug.ReadBuildInfo()
				if !ok {
					return errors.New("this binary contains no list of its modules")
				}
				doc := materials(info, e.Version, e.Made())
				if output == "licenses" {
					return licenses(e.Stdout, doc)
				}
				return plain.WriteForeignJSON(e.Stdout, doc)
			case "json":
				return plain.WriteJSON(e.Stdout, map[string]string{"version": e.Version, "go": runtime.Version(),
					"platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintf(e.Stdout, "rdma-setup %s (%s %s/%s)\n", e.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	console.OutputFlag(c, &output, "text", "json", "spdx", "licenses")
	return c
}

// spdx is the part of an SPDX 2.3 document that can be derived from a Go binary.
type spdx struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      spdxCreation   `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []spdxRelation `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID       string         `json:"SPDXID"`
	Name     string         `json:"name"`
	Version  string         `json:"versionInfo"`
	Download string         `json:"downloadLocation"`
	Analyzed bool           `json:"filesAnalyzed"`
	Declared string         `json:"licenseDeclared"`
	Refs     []spdxExternal `json:"externalRefs"`
}

type spdxExternal struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelation struct {
	Of      string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// materials returns the modules linked into this binary, as recorded by the linker, as SPDX 2.3 without its optional fields
// (concluded licence, copyright text). created is the time in the document; the output is deterministic.
func materials(info *debug.BuildInfo, version string, created time.Time) spdx {
	doc := spdx{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "rdma-setup-" + version,
		Namespace: "https://" + info.Main.Path + "/sbom/" + version,
		Creation:  spdxCreation{created.UTC().Format(time.RFC3339), []string{"Tool: rdma-setup-" + version}},
	}
	add := func(id, path, version, license, download string) {
		doc.Packages = append(doc.Packages, spdxPackage{
			ID: id, Name: path, Version: version, Download: download, Declared: license,
			Refs: []spdxExternal{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
		})
	}
	add("SPDXRef-main", info.Main.Path, version, "Apache-2.0", "git+https://"+info.Main.Path)
	doc.Relationships = append(doc.Relationships, spdxRelation{doc.ID, "DESCRIBES", "SPDXRef-main"})
	add("SPDXRef-go", "std", strings.TrimPrefix(info.GoVersion, "go"), "BSD-3-Clause", "https://go.dev/dl/"+info.GoVersion+".src.tar.gz")
	doc.Relationships = append(doc.Relationships, spdxRelation{"SPDXRef-main", "DEPENDS_ON", "SPDXRef-go"})
	for i, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		id := fmt.Sprintf("SPDXRef-%d", i+1)
		add(id, m.Path, m.Version, cmp.Or(assets.Licenses()[m.Path], "NOASSERTION"), moduleZip(m))
		doc.Relationships = append(doc.Relationships, spdxRelation{"SPDXRef-main", "DEPENDS_ON", id})
	}
	return doc
}

// moduleZip returns the URL of a module's source on the public module proxy, in which a capital letter is written as ! and the
// small one (Go Modules Reference, GOPROXY protocol).
func moduleZip(m *debug.Module) string {
	var path strings.Builder
	for _, r := range m.Path {
		if 'A' <= r && r <= 'Z' {
			path.WriteByte('!')
			r += 'a' - 'A'
		}
		path.WriteRune(r)
	}
	return "https://proxy.golang.org/" + path.String() + "/@v/" + m.Version + ".zip"
}

// licenses prints a line for each module that is linked into this binary, with its licence as an SPDX expression.
func licenses(w io.Writer, doc spdx) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range doc.Packages {
		fmt.Fprintf(t, "%s\t%s\t%s\n", p.Name, p.Version, p.Declared)
	}
	return t.Flush()
}
