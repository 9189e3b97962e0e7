package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/form"
	"github.com/rdma-setup/rdma-setup/ui/form/dialog"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// runWizard opens the wizard; without a terminal it names the alternatives.
func runWizard(ctx context.Context, e *console.Env, cmd *cobra.Command) error {
	if !e.Terminal() {
		return noTerminal()
	}
	set, err := console.ReadSettings(e, cmd)
	if err != nil {
		return err
	}
	behind := &held{to: e.Stderr}
	own := *e
	own.Stderr, e = behind, &own
	s, err := session.New(ctx, e, set)
	if err != nil {
		return err
	}
	defer s.Close()
	a, err := firstAnswers(e, cmd, s)
	if err != nil {
		return err
	}
	signals, done := e.Interrupts()
	defer done()
	stop, hangup := make(chan struct{}), make(chan struct{})
	finished := make(chan struct{})
	defer close(finished)
	var stopped atomic.Bool
	go func() {
		for {
			select {
			case <-finished:
				return
			case sig := <-signals:
				switch {
				case sig == syscall.SIGPIPE: // also of a connection that its other end closed; a lost terminal sends SIGHUP
				case console.IsHangup(sig):
					closeOnce(hangup)
				case stopped.CompareAndSwap(false, true):
					close(stop)
				}
			}
		}
	}()
	s.Screen.Store(true)
	o := form.Options{
		Fabric: &fabric{s: s, file: "rdma-setup-answers.yaml", given: cmd.Flags().Changed("file")}, Answers: a, Theme: screenTheme(e),
		In: e.Stdin, Out: e.Stdout,
		Environ: os.Environ(), Stop: stop, Hangup: hangup,
	}
	out, err := showWizard(ctx, e, cmd, o, behind)
	s.Screen.Store(false)
	if err != nil {
		return err
	}
	return wizardExit(out)
}

// showWizard chooses between the screen and plain questions. What others write to stderr is held back until the screen ends.
func showWizard(ctx context.Context, e *console.Env, cmd *cobra.Command, o form.Options, behind *held) (entry.Outcome, error) {
	accessible, err := cmd.Flags().GetBool("accessible")
	if err != nil {
		return entry.Outcome{}, err
	}
	if accessible || e.Getenv("ACCESSIBLE") != "" || e.Getenv("TERM") == "dumb" {
		width := 0
		if _, screen := e.Stdout.(*os.File); screen {
			width = e.Width()
		}
		return dialog.Run(ctx, dialog.Options{Fabric: o.Fabric, Answers: o.Answers, In: o.In, Out: o.Out, Width: width, Secret: e.Secret,
			Stop: o.Stop})
	}
	behind.hold()
	out, err := form.Run(ctx, o)
	behind.release()
	farewell(e, o.Fabric, out)
	return out, err
}

// farewell prints after the screen how it ended, and the commands to continue.
func farewell(e *console.Env, f live.Fabric, out entry.Outcome) {
	if r := out.Report; r != nil {
		words := report.Decide(r).Summary
		if r.Simulated {
			words += " (simulated)"
		}
		fmt.Fprintln(e.Stderr, backends.Clean(words))
		if r.Run != "" {
			fmt.Fprintf(e.Stderr, "report  rdma-setup report %s\n", r.Run)
			if r.Status == string(engine.StatusPartial) || r.Status == string(engine.StatusInterrupted) || r.Status == string(engine.StatusFailed) {
				fmt.Fprintf(e.Stderr, "resume  rdma-setup resume %s\n", r.Run)
			}
			if own, ok := f.(*fabric); ok {
				fmt.Fprintf(e.Stderr, "undo    %s\n", own.s.Undo(r.Run, out.Result.Status.Exit()))
			}
		}
	}
	if r := out.Inspected; r != nil && out.Report == nil {
		words := report.Decide(r).Summary
		if r.Simulated {
			words += " (simulated)"
		}
		_ = plain.Printf(e.Stderr, "%s\nnothing was changed\nrepeat  %s\n", words, f.InspectCommand())
	} else if out.Report == nil {
		fmt.Fprintln(e.Stderr, "the wizard was closed before anything was changed")
	}
	if out.Path != "" {
		fmt.Fprintf(e.Stderr, "repeat  %s\n", f.ReplayCommand(out.Path))
	}
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// firstAnswers returns the initial answers of the wizard: the file of -f, the lab's own, or the defaults.
func firstAnswers(e *console.Env, cmd *cobra.Command, s *session.Session) (*answers.Answers, error) {
	file, err := cmd.Flags().GetString("file")
	if err != nil {
		return nil, err
	}
	f := planFlags{file: file}
	switch {
	case file != "" || s.Lab != nil:
		return f.load(e, s.Lab)
	}
	return answers.Default(answers.PVRDMA), nil
}

// screenTheme is for the wizard's screen, where the library finds out how many colours there are.
func screenTheme(e *console.Env) theme.Theme {
	dark := !strings.HasSuffix(e.Getenv("COLORFGBG"), ";15")
	return theme.New(e.Getenv("NO_COLOR") == "", !theme.UTF8(e.Getenv), dark)
}

func wizardExit(out entry.Outcome) error {
	if out.Err != nil && !errors.Is(out.Err, context.Canceled) {
		return out.Err
	}
	if out.Interrupted {
		return &console.CodeError{Code: console.ExitInterrupted}
	}
	if out.Report == nil {
		return nil
	}
	return console.Exit(report.Decide(out.Report).Exit)
}
