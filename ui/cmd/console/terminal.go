package console

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// Theme is for printing to stdout: colour only on a terminal and unless NO_COLOR is set.
func (e *Env) Theme() theme.Theme {
	colour := isTerminal(e.Stdout) && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
	return theme.New(colour, !theme.UTF8(e.Getenv), true)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width returns the number of columns of the terminal, or 80 if stdout is not a terminal.
func (e *Env) Width() int {
	if f, ok := e.Stdout.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

// ThemeFor returns the terminal's theme, or the plain one for a file.
func (e *Env) ThemeFor(out string) theme.Theme {
	if out != "" {
		return theme.Plain()
	}
	return e.Theme()
}
