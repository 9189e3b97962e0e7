//go:build e2e

package render_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/render"
)

// measureBoxes lists texts and pictures of the page that overlap a neighbour in their row, or leave the page.
const measureBoxes = `<script>
addEventListener("load", () => {
  const found = [], shown = e => e.checkVisibility() && getComputedStyle(e).clipPath === "none";
  const box = e => {
    const r = document.createRange();
    r.selectNodeContents(e);
    const all = [...r.getClientRects()].filter(b => b.width > 1 && b.height > 1);
    return { left: Math.min(...all.map(b => b.left)), right: Math.max(...all.map(b => b.right)), top: Math.min(...all.map(b => b.top)), bottom: Math.max(...all.map(b => b.bottom)) };
  };
  for (const row of document.querySelectorAll("tr, ol.chain, dl > div")) {
    const cells = [...row.children].filter(shown);
    cells.forEach((a, i) => cells.slice(i + 1).forEach(b => {
      const x = box(a), y = box(b);
      if (x.right > y.left + 1 && y.right > x.left + 1 && x.bottom > y.top + 1 && y.bottom > x.top + 1 && getComputedStyle(a).display !== "inline")
        found.push("overlap: " + a.textContent.trim() + " | " + b.textContent.trim());
    }));
  }
  for (const e of document.querySelectorAll("td, th, p, li, dd, svg, h1, h2, h3, summary"))
    if (shown(e) && !e.closest(".wide") && e.getBoundingClientRect().right > innerWidth + 1) found.push("leaves the page: " + e.textContent.trim());
  document.title = "boxes " + found.length;
  const out = document.createElement("pre");
  out.id = "boxes";
  out.textContent = innerWidth + "\n" + found.join("\n");
  document.body.append(out);
});
</script>`

var boxesFound = regexp.MustCompile(`(?s)<pre id="boxes">(\d+)\n(.*?)</pre>`)

// TestE2EBoxes lays the report out in Chromium: at no width, and not in print, does a text or a picture cover another.
func TestE2EBoxes(t *testing.T) {
	var page bytes.Buffer
	r := everything()
	for i := range r.Measurements { // each pair has a curve
		m := &r.Measurements[i]
		for size := range 12 {
			m.Rows = append(m.Rows, perftest.Row{Bytes: 8 << size, AvgGbps: m.AchievedGbps * float64(size+1) / 12,
				TypicalUs: m.AchievedUs * float64(size+1)})
		}
	}
	if err := render.HTML(&page, r); err != nil {
		t.Fatal(err)
	}
	html := strings.Replace(page.String(),
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">`, measureBoxes, 1)
	if !strings.Contains(html, "<script>") {
		t.Fatal("the page has another content security policy")
	}
	for _, test := range []struct {
		name  string
		width int
		html  string
	}{
		{"380", 500, strings.Replace(html, "<body>", `<body style="width: 380px">`, 1)}, // no window of Chromium is narrower than 500
		{"640", 640, html}, {"980", 980, html}, {"1200", 1200, html}, {"1920", 1920, html},
		{"print", 688, strings.ReplaceAll(html, "@media print", "@media all")}, // A4 less the margins
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.html")
			if err := os.WriteFile(file, []byte(test.html), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			c := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
				"--no-first-run",
				"--user-data-dir="+t.TempDir(), fmt.Sprintf("--window-size=%d,2000", test.width), "--dump-dom", "file://"+file)
			var stderr bytes.Buffer
			c.Stderr = &stderr
			dom, err := c.Output()
			m := boxesFound.FindSubmatch(dom)
			if err != nil || m == nil {
				t.Fatalf("%v: %s", err, stderr.String())
			}
			if found := strings.TrimSpace(string(m[2])); found != "" {
				t.Errorf("%s px:\n%s", m[1], found)
			}
		})
	}
}
