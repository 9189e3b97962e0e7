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

// own returns the parsers of the package itself: those of package nic are tested there.
func own() scantest.Tools {
	tools := esxi.Tools()
	nics := nic.Tools()
	maps.DeleteFunc(tools, func(id string, _ func(string) any) bool { return nics[id] != nil })
	return tools
}

func TestGolden(t *testing.T) { scantest.Golden(t, "testdata", own()) }

func TestForeign(t *testing.T) { scantest.Score(t, own()) }

func TestMutations(t *testing.T) {
	const (
		rules  = "esxcli_network_firewall_ruleset_rule_list" // only its position shows which cell of a short row is empty
		change = "esxcli_software_vib_install/"
		levels = "esxcli_software_vib_list/levels" // a row of it is wrapped
	)
	scantest.Hold(t, "testdata", own(), map[string][]string{
		"tabs": {rules}, "two blanks between columns": {rules}, "one blank between columns": {rules},
		"one long line":          {rules, levels, "esxcli_system_module_parameters_list"},
		"blank lines between":    {change + "wrapped", levels, "esxcli_vm_process_list/names"},
		"terminal of 72 columns": {change + "one-line", levels}, "terminal of 80 columns": {change + "one-line", levels},
		"terminal of 100 columns": {change + "one-line"},
	})
}

func TestNoise(t *testing.T) { scantest.Noise(t, "testdata", own()) }

// TestParametersDoubleSpaced: a blank line after each line, as some copied pages have it, does not end a description.
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
