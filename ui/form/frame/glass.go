package frame

import (
	"io"
	"os"
	"sync/atomic"
)

// A glass stands before the terminal and knows whether the page that is shown has been drawn. A key that was pressed
// before that was meant for the page before.
type glass struct {
	out     io.Writer
	covered atomic.Bool // a new page is shown and nothing was drawn since it was
	ready   atomic.Bool // the new page has been composed
}

func newGlass(out io.Writer) *glass { return &glass{out: out} }

// cover begins a new page.
func (g *glass) cover() {
	if g != nil {
		g.ready.Store(false)
		g.covered.Store(true)
	}
}

// composed is told when the page is on its way to the terminal.
func (g *glass) composed() {
	if g != nil && g.covered.Load() {
		g.ready.Store(true)
	}
}

// dark reports whether keys cannot be meant for the page that is shown.
func (g *glass) dark() bool { return g != nil && g.covered.Load() }

// writes is told before something is sent, so that whoever sees the page has its keys taken.
func (g *glass) writes() {
	if g.ready.Load() {
		g.covered.Store(false)
	}
}

// output is what the screen is drawn on: a terminal stays one.
func (g *glass) output() io.Writer {
	if f, ok := g.out.(*os.File); ok {
		return &glassFile{f, g}
	}
	return &glassWriter{g}
}

type glassFile struct {
	*os.File
	glass *glass
}

func (f *glassFile) Write(b []byte) (int, error) {
	f.glass.writes()
	return f.File.Write(b)
}

// WriteString is there because that of os.File would pass by Write.
func (f *glassFile) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

type glassWriter struct{ glass *glass }

func (w *glassWriter) Write(b []byte) (int, error) {
	w.glass.writes()
	return w.glass.out.Write(b)
}
