package cmd

import (
	"cmp"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// machine reports whether other programs read a format: they get a document even if a command could not do anything.
func machine(format string) bool {
	switch format {
	case "json", "junit", "prometheus", "nagios":
		return true
	}
	return false
}

// exitOf ends a command that has published its document: the exit code is that of the document.
func exitOf(r *report.Report, err error) error {
	code := report.Decide(r).Exit
	if err == nil {
		return console.Exit(code)
	}
	return &console.CodeError{Code: code, Err: err}
}

// unjudged returns the report of a command that could not evaluate anything: why, and what settings and answers say of the site.
func (f *planFlags) unjudged(e *console.Env, cmd *cobra.Command, command report.Command, err error) *report.Report {
	r := &report.Report{Command: command, Made: e.Now(), Tool: e.Version, Err: err.Error(), Hint: backends.HintOf(err),
		ErrExit: console.ExitCode(err)}
	if set, bad := console.ReadSettings(e, cmd); bad == nil {
		r.VCenter = set.URL
	}
	if f.file == "" || f.file == "-" {
		return r
	}
	if a, bad := f.load(e, nil); bad == nil {
		r.VCenter, r.Mode = cmp.Or(r.VCenter, a.VCenter.URL), string(a.Mode)
	}
	return r
}

// misused publishes the document of a check or bench whose command line is invalid, so that the last good one is not read again.
// The flags of the document are those that can be read; if its format cannot, the old document is removed.
func misused(e *console.Env, cmd *cobra.Command, args []string, err error) error {
	command, publishes := map[string]report.Command{"check": report.Check, "bench": report.Bench}[cmd.Name()]
	if !publishes {
		return err
	}
	flags, unformatted := cmd.Flags(), false
	flags.ParseErrorsAllowlist.UnknownFlags = true
	for ; len(args) > 0; args = args[1:] { // parsing ends at a bad value: what stands after it is parsed apart
		bad := flags.Parse(args)
		if bad == nil {
			break
		}
		value, is := errors.AsType[*pflag.InvalidValueError](bad)
		unformatted = unformatted || is && value.GetFlag().Name == "output"
	}
	text := func(name string) string { return flags.Lookup(name).Value.String() }
	out, format := text("out"), text("output")
	if out == "" && (unformatted || !machine(format)) {
		return err
	}
	r := (&planFlags{file: text("file")}).unjudged(e, cmd, command, err)
	bad := console.Publish(e, out, func(w io.Writer) error {
		switch {
		case unformatted:
			return err
		case command == report.Check:
			return (&checked{report: r}).render(w, format, e.ThemeFor(out))
		}
		return writeReport(w, format, r, e.ThemeFor(out))
	})
	if bad != nil {
		return bad
	}
	return exitOf(r, err)
}
