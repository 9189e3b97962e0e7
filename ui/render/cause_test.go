package render_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// Pairs are in the natural order of their names, and a quiet unknown does not hide the other findings of its check.
func TestTerminalOrderAndUnknowns(t *testing.T) {
	r := &report.Report{
		Measurements: []perftest.Measurement{{From: "vm-10", To: "vm-1", Verdict: perftest.VerdictPass},
			{From: "vm-9", To: "vm-10", Verdict: perftest.VerdictPass}},
		Checks: []checks.Finding{
			{ID: "SW-PFC-012", Target: backends.HostRef("esx-1"), Status: checks.Unknown, Quiet: true, Evidence: "waits for a word"},
			{ID: "SW-PFC-012", Target: backends.HostRef("esx-2"), Status: checks.Unknown, Evidence: "not read"},
		},
	}
	var b strings.Builder
	if err := render.Terminal(&b, r, theme.Plain()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if nine, ten := strings.Index(text, "vm-9 -> "), strings.Index(text, "vm-10 -> "); nine < 0 || ten < nine ||
		!strings.Contains(text, "not read") {
		t.Errorf("%s", text)
	}
}
