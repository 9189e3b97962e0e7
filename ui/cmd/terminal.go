package cmd

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// theme is for printing to stdout: colour only on a terminal and where NO_COLOR does not speak against it.
func (e *Env) theme() theme.Theme {
	colour := isTerminal(e.Stdout) && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
	return theme.New(colour, !theme.UTF8(e.Getenv), true)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
