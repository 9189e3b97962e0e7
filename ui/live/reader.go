package live

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// A Reader shows a long text that can be searched, and whose sections can be folded. A section begins with a line that follows an
// empty one and is not indented.
type Reader struct {
	theme  theme.Theme
	draw   func(width int) string // the text for a screen of this width
	width  int
	parts  []part // the text before the first section, then the sections
	chosen int    // section; 0: none
	scroll *Scroll
	typing bool   // the search text
	find   string // in lower case; "" if there is none
	hits   []hit
	hit    int // index in hits of the hit that is shown
}

type part struct {
	lines  []string // the first line is the heading
	folded bool
}

// A hit is a line that contains the search text.
type hit struct{ part, line int }

// NewReader returns a reader at the first line of the text that draw returns.
func NewReader(t theme.Theme, draw func(width int) string) *Reader {
	r := &Reader{theme: t, draw: draw, scroll: NewScroll(t, "")}
	r.split(80)
	r.laid()
	return r
}

// Keys returns the keys that have an effect now, for the line below a page.
func (r *Reader) Keys() [][2]string {
	keys := [][2]string{{"Up Down", "scroll"}, {"/", "search"}}
	if len(r.hits) > 0 {
		keys = append(keys, [2]string{"n N", "next, previous"})
	}
	if len(r.parts) > 1 {
		keys = append(keys, [2]string{"Tab", "section"}, [2]string{"f F", "fold it, all"})
	}
	return keys
}

// Typing reports whether letters are meant for the search.
func (r *Reader) Typing() bool { return r.typing }

// Update handles a key and reports whether it was used.
func (r *Reader) Update(msg tea.Msg) bool {
	key, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return false
	}
	if r.typing {
		r.search(key.String(), key.Text)
		return true
	}
	switch key.String() {
	case "/":
		r.typing = true
		r.look("")
	case "n":
		r.show(r.hit + 1)
	case "N":
		r.show(r.hit - 1)
	case "tab":
		r.choose(r.chosen + 1)
	case "shift+tab":
		r.choose(r.chosen - 1)
	case "f":
		r.fold()
	case "F":
		r.foldAll()
	case "esc":
		if r.find == "" {
			return false
		}
		r.look("")
	default:
		return r.scroll.Update(msg)
	}
	return true
}

func (r *Reader) search(key, text string) {
	switch key {
	case "enter":
		r.typing = false
	case "esc":
		r.typing = false
		r.look("")
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(r.find)
		r.look(r.find[:len(r.find)-n])
	default:
		r.look(r.find + strings.ToLower(text))
	}
}

// look finds the lines that contain a text and shows the first one.
func (r *Reader) look(text string) {
	r.find, r.hits = text, nil
	for i, p := range r.parts {
		for j, l := range p.lines {
			if text != "" && strings.Contains(strings.ToLower(ansi.Strip(l)), text) {
				r.hits = append(r.hits, hit{i, j})
			}
		}
	}
	r.hit = 0
	r.show(0)
}

// show unfolds the section of a hit and scrolls to it.
func (r *Reader) show(n int) {
	if len(r.hits) == 0 {
		r.laid()
		return
	}
	r.hit = (n + len(r.hits)) % len(r.hits)
	at := r.hits[r.hit]
	r.parts[at.part].folded = false
	r.laid()
	r.scroll.top = r.row(at.part) + at.line - r.scroll.page/2
}

// choose selects the section that the key f folds, and scrolls to its heading.
func (r *Reader) choose(n int) {
	last := len(r.parts) - 1
	if last < 1 {
		return
	}
	r.chosen = (n-1+last)%last + 1
	r.laid()
	if row := r.row(r.chosen); row < r.scroll.top || row > r.scroll.top+r.scroll.page {
		r.scroll.top = row
	}
}

func (r *Reader) fold() {
	for i := 1; r.chosen == 0 && i < len(r.parts); i++ {
		if i == len(r.parts)-1 || r.row(i) >= r.scroll.top {
			r.choose(i)
		}
	}
	if r.chosen > 0 {
		r.parts[r.chosen].folded = !r.parts[r.chosen].folded
		r.laid()
		r.choose(r.chosen)
	}
}

func (r *Reader) foldAll() {
	if len(r.parts) > 1 {
		open := slices.ContainsFunc(r.parts[1:], func(p part) bool { return !p.folded })
		for i := 1; i < len(r.parts); i++ {
			r.parts[i].folded = open
		}
	}
	r.laid()
}

// row returns the line of the screen on which a part begins.
func (r *Reader) row(n int) int {
	row := 0
	for _, p := range r.parts[:n] {
		row += len(p.shown())
	}
	return row
}

// shown returns the visible lines of a part; a part with only a heading cannot be folded.
func (p part) shown() []string {
	below := 0
	for _, l := range p.lines[1:] {
		if l != "" {
			below++
		}
	}
	if !p.folded || below == 0 {
		return p.lines
	}
	return []string{fmt.Sprintf("%s  [%d lines folded]", ansi.Strip(p.lines[0]), below)}
}

// laid joins the parts as they are shown now.
func (r *Reader) laid() {
	var all []string
	for i, p := range r.parts {
		lines := slices.Clone(p.shown())
		if i == r.chosen && i > 0 {
			lines[0] = r.theme.Focus.Render(ansi.Strip(lines[0]))
		}
		if at := r.hits; len(at) > 0 && at[r.hit].part == i && !p.folded {
			lines[at[r.hit].line] = r.theme.Focus.Render(ansi.Strip(lines[at[r.hit].line]))
		}
		all = append(all, lines...)
	}
	r.scroll = r.scroll.replaced(r.theme, strings.Join(all, "\n"))
}

// split divides the text into parts for a screen of this width; folded sections stay folded.
func (r *Reader) split(width int) {
	folded := map[string]bool{}
	for _, p := range r.parts {
		folded[ansi.Strip(p.lines[0])] = p.folded
	}
	r.width, r.parts = width, nil
	lines := strings.Split(theme.Fold(strings.TrimRight(r.draw(width), "\n"), width), "\n")
	for i, l := range lines {
		if i == 0 || lines[i-1] == "" && l != "" && !strings.HasPrefix(ansi.Strip(l), " ") {
			r.parts = append(r.parts, part{folded: i > 0 && folded[ansi.Strip(l)]})
		}
		last := &r.parts[len(r.parts)-1]
		last.lines = append(last.lines, l)
	}
	r.chosen = min(r.chosen, len(r.parts)-1)
}

// View draws the part that fits, with the search text below it.
func (r *Reader) View(width, height int) string {
	if width != r.width {
		r.split(width)
		r.look(r.find)
	}
	if !r.typing && r.find == "" {
		return r.scroll.View(width, height)
	}
	what := "search: " + r.find
	if r.typing {
		what += "_"
	}
	switch {
	case r.find != "" && len(r.hits) == 0:
		what += "  not found"
	case r.find != "":
		what += fmt.Sprintf("  match %d of %d", r.hit+1, len(r.hits))
	}
	return r.scroll.View(width, height-1) + "\n" + r.theme.Accent.Render(r.theme.Cut(what, width))
}
