package perftest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// says answers each guest's script with the text for its VM.
type says map[string]string

// Exec implements perftest.Shell.
func (s says) Exec(_ context.Context, vm string, c perftest.Command) (perftest.Output, error) {
	if !c.Sudo || !strings.Contains(c.Line, "arping -D") {
		return perftest.Output{}, fmt.Errorf("unexpected: %s", c.Line)
	}
	return perftest.Output{Stdout: s[vm] + "\n"}, nil
}

// Connections between two rails are compared with what their VLANs and subnets should allow.
func TestCrossRail(t *testing.T) {
	rails := func(vms ...string) (out [][]perftest.Node) {
		for i, rail := range []string{"rail-1", "rail-2"} {
			var nodes []perftest.Node
			for k, vm := range vms {
				nodes = append(nodes, perftest.Node{VM: vm, Host: "esx-" + vm, Rail: rail, Device: "mlx5_0", IP: fmt.Sprintf("192.168.5%d.1%d", i, k)})
			}
			out = append(out, nodes)
		}
		return out
	}
	for name, c := range map[string]struct {
		expect, said string
		want         perftest.Verdict
		error        string
	}{
		"apart, silent": {perftest.MustNotReach, "silent", perftest.VerdictPass, ""},
		"apart, answered": {perftest.MustNotReach, "answered", perftest.VerdictFail,
			"the rails have different VLANs, and 192.168.51.11 answers nevertheless"},
		"joined, answered": {perftest.MustReach, "answered", perftest.VerdictPass, ""},
		"joined, silent":   {perftest.MustReach, "silent", perftest.VerdictFail, "does not answer"},
		"one VLAN":         {perftest.MayReach, "answered", perftest.VerdictNotApplicable, ""},
		"no arping": {perftest.MustNotReach, "untried arping (iputils) is not installed", perftest.VerdictUnknown,
			"arping (iputils) is not installed"},
		"nothing": {perftest.MustNotReach, "", perftest.VerdictUnknown, "could not be tested"},
	} {
		t.Run(name, func(t *testing.T) {
			runner := &perftest.Runner{Shell: says{"a": c.said, "b": c.said}}
			pairs := perftest.CrossPairs(rails("a", "b"), func(_, _ string) string { return c.expect })
			all, err := runner.Cross(t.Context(), pairs)
			if err != nil || len(all) != 4 || all[0].Verdict != c.want || !strings.Contains(all[0].Error, c.error) ||
				(c.error == "") != (all[0].Error == "") {
				t.Errorf("%v: %+v", err, all)
			}
			names, cells := perftest.RailMatrix(all)
			if cell := cells[[2]string{"rail-1", "rail-2"}]; !slices.Equal(names, []string{"rail-1", "rail-2"}) || cell.Verdict != c.want ||
				!strings.Contains(cell.Text, c.expect) {
				t.Errorf("%v %+v", names, cell)
			}
			if len(perftest.SameRail(all)) != 0 {
				t.Error("they are no measurements of one rail")
			}
		})
	}
	if pairs := perftest.CrossPairs(rails("a"), func(_, _ string) string { return "" }); len(pairs) != 0 {
		t.Errorf("a VM is asked about itself: %v", pairs)
	}
}

// Each test between rails is reported at its beginning and end, with the number of remaining tests.
func TestCrossReportsItsProgress(t *testing.T) {
	var rails [][]perftest.Node
	for _, rail := range []string{"rail-1", "rail-2"} {
		rails = append(rails, []perftest.Node{{VM: "a", Rail: rail, Device: "mlx5_0"}, {VM: "b", Rail: rail, Device: "mlx5_0"}})
	}
	begun, done, left := 0, 0, []string{}
	runner := &perftest.Runner{Shell: says{"a": "silent", "b": "silent"}, Progress: func(p perftest.Progress) {
		switch {
		case p.Test != perftest.CrossRail || p.Total != 4:
			t.Errorf("%+v", p)
		case p.Result == nil:
			begun++
		default:
			done++
			left = append(left, p.Left.String())
			if p.Done != done {
				t.Errorf("%d done, told %d", done, p.Done)
			}
		}
	}}
	pairs := perftest.CrossPairs(rails, func(_, _ string) string { return perftest.MustNotReach })
	if _, err := runner.Cross(t.Context(), pairs); err != nil || begun != 4 || done != 4 {
		t.Errorf("%d begun, %d done, %v", begun, done, err)
	}
	if want := []string{"3s", "3s", "3s", "0s"}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
	if took, bytes := perftest.CrossCost(17); took.Seconds() != 6 || bytes != 17*256 {
		t.Errorf("17 tests: %s, %d bytes", took, bytes)
	}
}
