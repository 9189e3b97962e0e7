package form

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// A reading shows a report above the steps that follow, and writes it as HTML.
type reading struct {
	reader *live.Reader           // nil until there is something to read
	where  func(width int) string // the steps that follow
}

// read shows a report, the text that follows it, and the next steps.
func (p *reading) read(w *frame.Wizard, r *report.Report, after string, steps [][2]string) {
	p.where = func(width int) string {
		label := 0
		for _, s := range steps {
			label = max(label, len(s[0])+2)
		}
		out := w.Theme.Title.Render("Next steps")
		for _, s := range steps {
			text := theme.Wrap(backends.Clean(s[1]), max(1, width-label-2))
			out += "\n  " + w.Theme.Quiet.Render(fmt.Sprintf("%-*s", label, s[0])) + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", label+2))
		}
		return out
	}
	p.reader = live.NewReader(w.Theme, func(width int) string {
		var b strings.Builder
		if r != nil {
			_ = render.Screen(&b, r, w.Theme, width)
		}
		return b.String() + after
	})
}

// Typing reports whether letters are meant for the search.
func (p *reading) Typing() bool { return p.reader != nil && p.reader.Typing() }

// Editing reports whether Enter belongs to the search field.
func (p *reading) Editing() bool { return p.Typing() }

func (p *reading) hints() []frame.Hint {
	hints := []frame.Hint{{Key: "h", Does: "write HTML"}}
	for _, k := range p.reader.Keys() {
		hints = append(hints, frame.Hint{Key: k[0], Does: k[1]})
	}
	return hints
}

func (p *reading) update(w *frame.Wizard, r *report.Report, msg tea.Msg) (tea.Cmd, bool) {
	if p.reader == nil {
		return nil, false
	}
	if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "h" && r != nil && !p.Typing() {
		var b bytes.Buffer
		path, err := "", render.HTML(&b, r)
		if err == nil {
			path, err = w.Fabric.SaveHTML(cmp.Or(r.Run, "look"), b.Bytes())
		}
		if err != nil {
			return w.Fail(err), true
		}
		w.Say("written: " + path)
		return nil, true
	}
	return nil, p.reader.Update(msg)
}

func (p *reading) view(width, height int) string {
	where := p.where(width)
	top := p.reader.View(width, height-lines(where)-1)
	return top + strings.Repeat("\n", max(1, height-lines(top)-lines(where)+1)) + where
}
