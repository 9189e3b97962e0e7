package console

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// Theme is for printing to stdout: colour only on a terminal and where NO_COLOR does not speak against it.
func (e *Env) Theme() theme.Theme {
	colour := isTerminal(e.Stdout) && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
	return theme.New(colour, !theme.UTF8(e.Getenv), true)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ThemeFor is the terminal's theme, and the plain one for a file.
func (e *Env) ThemeFor(out string) theme.Theme {
	if out != "" {
		return theme.Plain()
	}
	return e.Theme()
}
