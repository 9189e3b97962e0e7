package esxi_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/transcript/esxi"
	"github.com/rdma-setup/rdma-setup/backends/transcript/esxi/nic"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

// own are the parsers of the package itself: those of package nic are tested there.
func own() scantest.Tools {
	tools := esxi.Tools()
	nics := nic.Tools()
	maps.DeleteFunc(tools, func(id string, _ func(string) any) bool { return nics[id] != nil })
	return tools
}

func TestGolden(t *testing.T) { scantest.Golden(t, "testdata", own()) }

func TestForeign(t *testing.T) { scantest.Score(t, own()) }

func TestMutations(t *testing.T) {
	scantest.Hold(t, "testdata", own(), map[string][]string{
		"esxcli_network_firewall_ruleset_rule_list": {"tabs"}, // only its place tells which cell of a short row is empty
	})
}

func TestNoise(t *testing.T) { scantest.Noise(t, "testdata", own()) }

// TestParametersDoubleSpaced: a blank line between all lines, as some pages copy them, ends no description.
func TestParametersDoubleSpaced(t *testing.T) {
	text, err := os.ReadFile("testdata/esxcli_system_module_parameters_list/nmlx5-core.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := esxi.ParameterList(string(text))
	got := esxi.ParameterList(strings.ReplaceAll(string(text), "\n", "\n\n"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
