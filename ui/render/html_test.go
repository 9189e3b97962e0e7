package render_test

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// htmlShape returns the elements of a page with the names of their attributes, and fails if the page loads anything from
// elsewhere, runs anything, or is not accessible to screen readers.
func htmlShape(t testing.TB, doc string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(doc, "<!DOCTYPE html>")))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var shape, open []string
	var captions, tables int
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed after %v: %v", open, err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			open = append(open, e.Name.Local)
			shape = append(shape, element(t, e, open))
			switch e.Name.Local {
			case "table":
				tables++
			case "caption":
				captions++
			}
		case xml.EndElement:
			if open[len(open)-1] != e.Name.Local {
				t.Fatalf("</%s> closes %v", e.Name.Local, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) != 0 || tables == 0 || captions != tables {
		t.Errorf("left open: %v; %d tables with %d captions", open, tables, captions)
	}
	return strings.Join(shape, "\n")
}

func element(t testing.TB, e xml.StartElement, open []string) string {
	t.Helper()
	attr := map[string]string{}
	words := []string{e.Name.Local}
	for _, a := range e.Attr {
		attr[a.Name.Local] = a.Value
		words = append(words, a.Name.Local)
		if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" || a.Name.Local == "src" ||
			a.Name.Local == "href" && a.Value != "data:," {
			t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
		}
	}
	switch e.Name.Local {
	case "script", "img", "iframe", "object", "embed", "a", "form", "base", "foreignObject", "use", "image", "video", "audio":
		t.Errorf("<%s> in the report", e.Name.Local)
	case "th":
		if attr["scope"] == "" {
			t.Errorf("a th without scope")
		}
	case "svg":
		if attr["aria-hidden"] != "true" && (attr["role"] != "img" || attr["aria-label"] == "") {
			t.Errorf("a figure without description: %v", e.Attr)
		}
	case "title":
		if slices.Contains(open, "svg") || open[len(open)-2] == "head" {
			break
		}
		t.Errorf("a title in %v", open)
	}
	return strings.Join(words, " ")
}

func TestHTMLIsSelfContained(t *testing.T) {
	for _, r := range []func() string{
		func() string { return rendered(t, "html", everything()) }, func() string { return rendered(t, "html", allPairs(64)) },
	} {
		doc := r()
		htmlShape(t, doc)
		if strings.Contains(doc, "url(") || strings.Contains(doc, "@import") || !strings.Contains(doc, `content="default-src 'none'`) {
			t.Error("the page may ask for something from elsewhere")
		}
	}
}

func TestEveryFormatSaysThatItIsInsecure(t *testing.T) {
	r := everything()
	r.Insecure = []string{"vCenter's certificate is not verified <--insecure>"}
	for format := range formats {
		if format == "prom" {
			continue // figures; check itself says so
		}
		doc := rendered(t, format, r)
		if !strings.Contains(strings.ToUpper(doc), "INSECURE") {
			t.Errorf("%s: the word is missing", format)
		}
	}
	if doc := rendered(t, "html", r); !strings.Contains(doc, "&lt;--insecure&gt;") {
		t.Error("not escaped")
	}
}

// 64 nodes have 2016 cells, each with a readable figure, in a file small enough for mail.
func TestHTMLOf64Nodes(t *testing.T) {
	doc := rendered(t, "html", allPairs(64))
	if n := strings.Count(doc, "<title>vm-"); n != 2*64*63/2 {
		t.Errorf("%d cells, want %d", n, 64*63)
	}
	if len(doc) > 1<<20 {
		t.Errorf("%d bytes", len(doc))
	}
}

// 200 nodes: the map is drawn, and the figure of each pair is in the list, in a file of the same size.
func TestHTMLOf200Nodes(t *testing.T) {
	r := allPairs(200)
	m := &r.Measurements[2*(199+198)] // of vm-03 and vm-04
	m.AchievedGbps, m.Verdict, m.Hint = 12.3, perftest.VerdictFail, "look at the path"
	doc := rendered(t, "html", r)
	htmlShape(t, doc)
	if n := len(regexp.MustCompile(`[ >]vm-\d+ \d+\.\d+( fail)?[,<]`).FindAllString(doc, -1)); n != 200*199 {
		t.Errorf("%d figures, want %d", n, 200*199)
	}
	for _, want := range []string{"vm-04 12.3 fail, vm-05 ", `<path class="h5"`, `<path class="out"`, "</text>"} {
		if !strings.Contains(doc, want) {
			t.Errorf("no %s", want)
		}
	}
	if len(doc) > 1<<20 {
		t.Errorf("%d bytes", len(doc))
	}
}

// allPairs measures n nodes, one on each host, every two once.
func allPairs(n int) *report.Report {
	r := base()
	for i := 1; i <= n; i++ {
		for j := i + 1; j <= n; j++ {
			r.Measurements = append(r.Measurements, both(i, j, 96+float64((i*7+j)%10)/10, 2.1)...)
		}
	}
	return r
}
