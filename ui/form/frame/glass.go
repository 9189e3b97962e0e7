package frame

import (
	"io"
	"os"
	"sync/atomic"
)

// A glass wraps the terminal and knows whether the current page has been drawn. A key pressed before that was meant for the
// previous page.
type glass struct {
	out     io.Writer
	covered atomic.Bool // a new page is shown and has not been drawn yet
	ready   atomic.Bool // the new page has been composed
}

func newGlass(out io.Writer) *glass { return &glass{out: out} }

// cover marks that a new page is being shown.
func (g *glass) cover() {
	if g != nil {
		g.ready.Store(false)
		g.covered.Store(true)
	}
}

// composed is called when the page is about to be written to the terminal.
func (g *glass) composed() {
	if g != nil && g.covered.Load() {
		g.ready.Store(true)
	}
}

// dark reports whether keys must be ignored because the current page has not been drawn yet.
func (g *glass) dark() bool { return g != nil && g.covered.Load() }

// writes is called before output is sent, so that keys are accepted as soon as the page is visible.
func (g *glass) writes() {
	if g.ready.Load() {
		g.covered.Store(false)
	}
}

// output returns the writer that the screen is drawn on; a terminal is still recognised as one.
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

// WriteString exists because that of os.File would bypass Write.
func (f *glassFile) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

type glassWriter struct{ glass *glass }

func (w *glassWriter) Write(b []byte) (int, error) {
	w.glass.writes()
	return w.glass.out.Write(b)
}
