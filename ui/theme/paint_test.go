package theme_test

import (
	"regexp"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/ui/theme"
)

var lines = []string{
	"RDMA CRITICAL - no path works | 'failed'=3",
	"chain   BIOS partly read (4 not read) > driver pass > host fail (9 not read) > switch warn > guest not read",
	"FAIL    HOST-VMKNIC-SET-001  4 of 4: esx-01 to esx-04",
	"        not installed: rdma-core, ibverbs-providers, perftest, ibverbs-utils, rdmacm-utils, infiniband-diags",
	"        remedy: Set Net.PVRDMAVmknic to the vmknic.",
	"NOT READ 18 checks; -o json names them, and says why",
	"  + create distributed switch RDMA-DVS",
	"      disrupts: VM power cycle",
	"20261128-212157-pvrdma-wwnl  done     pvrdma  https://vc/sdk",
	"21:22:03  FAILED      vm-03: power on: no memory",
	"vm-01     .######===========...............................  off for 1m35s",
	"esx-01  vmnic2  b8:59:9f:00:00:02  100G   thedriver   vmrdma0  v1,v2  -         -           yes       RoCE v2 (vmrdma0), 100G, " +
		"link up, free",
	"HOST    pNIC    MAC                SPEED  DRIVER      RDMA     ROCE",
	"", "   ", "einzeiler ohne bedeutung", "ünïcödé  wörter, die länger sind als die zeile breit ist, und noch ein paar mehr davon hinterher",
}

var escape = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// Painted lines say what they said, in the given width; without colours nothing is added but line breaks.
func TestPaintKeepsWords(t *testing.T) {
	for _, width := range []int{0, 30, 60, 80, 200} {
		for _, line := range lines {
			for _, colour := range []bool{true, false} {
				got := theme.New(colour, false, true).Paint(line, width)
				if !colour && strings.Contains(got, "\x1b") {
					t.Errorf("a colour in %q", got)
				}
				got = escape.ReplaceAllString(got, "")
				if a, b := strings.Fields(got), strings.Fields(line); strings.Join(a, "") != strings.Join(b, "") {
					t.Errorf("%d: %q became %q", width, line, got)
				}
				for row := range strings.SplitSeq(got, "\n") {
					if width >= 60 && lipgloss.Width(row) > width {
						t.Errorf("%d: too wide: %q", width, row)
					}
				}
			}
		}
	}
}

// States have the colour of their meaning, wherever they stand in the line.
func TestPaintMeans(t *testing.T) {
	th := theme.New(true, false, true)
	for line, want := range map[string]string{
		lines[0]:  th.Bad.Render("RDMA CRITICAL") + " - no",
		lines[1]:  "driver " + th.Good.Render("pass") + " > host " + th.Bad.Render("fail") + " ",
		lines[2]:  th.Bad.Render("FAIL") + "    HOST",
		lines[6]:  "  " + th.Good.Render("+") + " create",
		lines[7]:  th.Warning.Render("disrupts: VM power cycle"),
		lines[8]:  "  " + th.Good.Render("done") + "  ",
		lines[9]:  th.Bad.Render("FAILED"),
		lines[10]: "." + th.Bad.Render("######") + th.Accent.Render("==========="),
		lines[11]: " " + th.Good.Render("yes") + "  ",
	} {
		if got := th.Paint(line, 0); !strings.Contains(got, want) {
			t.Errorf("%q:\n%q has no\n%q", line, got, want)
		}
	}
}

// Lines are painted when they are complete, in whatever pieces they come.
func TestPaintedWriter(t *testing.T) {
	var b strings.Builder
	w := theme.New(false, false, true).Writer(&b, 20)
	for _, piece := range []string{"one two three ", "four five six\nse", "ven\n"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Error(n, err)
		}
	}
	if got := b.String(); got != "one two three four\n  five six\nseven\n" {
		t.Errorf("%q", got)
	}
}
