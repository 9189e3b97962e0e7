package render

import (
	"cmp"
	"embed"
	"html/template"
	"io"
	"math"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render/page"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

//go:embed templates
var templates embed.FS

// HTML prints the report as one self-contained page without scripts, fonts, pictures or requests to other sites (its content
// security policy forbids them). It can be printed, and follows the reader's choice of light or dark.
func HTML(w io.Writer, r *report.Report) error {
	t, err := template.New("report").Funcs(template.FuncMap{"symbol": symbol, "word": word, "percent": percent, "named": named,
		"linkWord": plain.LinkWord}).ParseFS(templates, "templates/*.gohtml")
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "report", page.Of(r))
}

// symbol returns the symbol of a status, so that the status does not depend on colour alone.
func symbol(s checks.Status) string {
	return cmp.Or(map[checks.Status]string{checks.Pass: "✓", checks.Warn: "!", checks.Fail: "✗", checks.Unknown: "?"}[s], "–")
}

// word returns a status as a word; pairs that do not use the fabric have no status.
func word(s checks.Status) string { return cmp.Or(string(s), "n/a") }

func percent(share float64) float64 { return math.Round(share * 100) }

// A seen is a table of groups with a caption.
type seen struct {
	Caption string
	Groups  []page.Group
}

func named(caption string, groups []page.Group) seen { return seen{caption, groups} }
