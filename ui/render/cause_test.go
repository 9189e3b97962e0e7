package render_test

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// The first twelve visible lines say what was left behind, why, and what to do, in every format; the style sheet of HTML
// does not count.
func TestCausesAreFirst(t *testing.T) {
	style, tag, blank := regexp.MustCompile(`(?s)<style>.*</style>`), regexp.MustCompile(`<[^>]*>`), regexp.MustCompile(`\n\s*\n+`)
	for name, write := range map[string]func(io.Writer, *report.Report) error{
		"terminal": func(w io.Writer, r *report.Report) error { return render.Terminal(w, r, theme.Theme{}) },
		"markdown": render.Markdown, "html": render.HTML,
	} {
		r := partial()
		r.Simulated = true
		r.Failures = nil
		var b bytes.Buffer
		if err := write(&b, r); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if name == "html" {
			text = blank.ReplaceAllString(tag.ReplaceAllString(style.ReplaceAllString(text, ""), ""), "\n")
		}
		top := strings.Join(strings.SplitN(strings.TrimSpace(text), "\n", 13)[:12], "\n")
		for _, want := range []string{"VMs off: vm-9, vm-10", "hosts in maintenance mode: esx-02", "resume " + r.Run, "esx-02: enable firewall ruleset pvrdma", "permission", "grant Host.Config.NetService"} {
			if !strings.Contains(top, want) {
				t.Errorf("%s: %q is not among the first 12 lines:\n%s", name, want, top)
			}
		}
	}
}

// Pairs are in the natural order of their names, and a quiet unknown does not hide the other findings of its check.
func TestTerminalOrderAndUnknowns(t *testing.T) {
	r := &report.Report{
		Measurements: []perftest.Measurement{{From: "vm-10", To: "vm-1", Verdict: perftest.VerdictPass}, {From: "vm-9", To: "vm-10", Verdict: perftest.VerdictPass}},
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
	if nine, ten := strings.Index(text, "vm-9 -> "), strings.Index(text, "vm-10 -> "); nine < 0 || ten < nine || !strings.Contains(text, "not read") {
		t.Errorf("%s", text)
	}
}
