package esxcli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/simulator/esx"

	"github.com/rdma-setup/rdma-setup/backends/lab/esxcli"
)

// The answers have the properties in the type information of a real host. govmomi contains a recording of it
// (simulator/esx/type_info.go, from an ESXi 8.0.2).
func TestColumnsOfRecordedTypes(t *testing.T) {
	recorded := map[string][]string{}
	for _, d := range esx.TypeInfo.DataTypeInfo {
		for _, p := range d.Property {
			recorded[d.WsdlName] = append(recorded[d.WsdlName], p.Name)
		}
	}
	w, compared := lab(t), 0
	for _, c := range esxcli.Commands() {
		if c.Writes {
			continue
		}
		a, err := c.Run(w, "esx-01", esxcli.Args{})
		if err != nil || len(a.Rows) == 0 {
			continue
		}
		kind := "VimEsxCLI" + strings.Join(c.Path, "") + a.Type
		if recorded[kind] == nil {
			for name := range recorded {
				if strings.HasPrefix(name, "VimEsxCLI"+strings.Join(c.Path, "")) {
					t.Errorf("%s: type %s, recorded %s", strings.Join(c.Path, " "), kind, name)
				}
			}
			continue
		}
		compared++
		var got []string
		for _, f := range a.Rows[0] {
			got = append(got, f.Key())
		}
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(recorded[kind])); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", strings.Join(c.Path, " "), got, want)
		}
	}
	if compared < 4 {
		t.Errorf("%d commands compared", compared)
	}
}
