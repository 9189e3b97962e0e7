package cmd

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// attachPoll is how often attach checks for new events of a run.
const attachPoll = 200 * time.Millisecond

func newAttachCmd(e *console.Env) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "attach [RUN]",
		Short: "Show a run from its beginning and follow it to its end",
		Long: `attach prints what a run has done since it began and follows it until it ends, for example after the terminal that
started it was lost: apply, resume and rollback continue without their terminal. Without RUN it shows the run in
progress, otherwise the latest one.

On a terminal attach shows the page of the run: p pauses it after the running steps and continues it, the arrow keys choose a
target, x skips the rest of it and R tries its failed steps again. Your requests are recorded in the journal. With -o json, or
if the output is not a terminal, attach prints lines and only reads.

Ctrl-C and q end attach, not the run. It needs the state directory of the run: use the machine and the
account that started it. Its exit code is the one of the run, by its verdict; 130 if the run was interrupted.`,
		Example: `  rdma-setup attach
  rdma-setup attach 20260314-092653-pvrdma-abcd -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns(e),
		RunE: console.WithSettings(e, func(cmd *cobra.Command, args []string, set *console.Settings) error {
			run, err := attachable(set.StateDir, args)
			if err != nil {
				return err
			}
			screen := e.Terminal() && !cmd.Flags().Changed("output") && e.Getenv("TERM") != "dumb"
			sink := plain.Lines(e.Lines(e.Stdout, e.Stdout))
			if output == "json" {
				sink = plain.JSONLines(e.Stdout)
			}
			return console.Interruptible(cmd.Context(), e, func(ctx context.Context) error {
				if screen && journal.Running(set.StateDir, journal.Summarize(set.StateDir, run).VCenter, run) {
					return attachScreen(ctx, e, set.StateDir, run)
				}
				return attach(ctx, e, set.StateDir, run, sink)
			})
		}),
	}
	console.OutputFlag(c, &output, "text", "json")
	return c
}

// attachable returns the run for attach: the named one, the running one, or the latest that began.
func attachable(state string, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	runs, err := journal.Runs(state)
	if err != nil {
		return "", err
	}
	var latest string
	var going []string
	for _, r := range runs {
		switch r.Status {
		case "running":
			going = append(going, r.Run)
		case "not begun", "unreadable":
			continue
		}
		latest = r.Run
	}
	switch {
	case len(going) == 1:
		return going[0], nil
	case len(going) > 1:
		return "", console.Usage("select one: rdma-setup attach "+going[len(going)-1], "%d runs are in progress", len(going))
	case latest == "":
		return "", console.Usage("start one with: rdma-setup apply -f answers.yaml", "there is no run yet")
	}
	return latest, nil
}

// attachScreen shows the page of a running run; attach prints its end afterwards.
func attachScreen(ctx context.Context, e *console.Env, state, run string) error {
	behind := &held{to: e.Stderr}
	behind.hold()
	own := *e
	own.Stderr = behind
	var end error
	_, err := live.RunAttach(ctx, live.AttachOptions{
		Title: "rdma-setup attach " + run, Theme: screenTheme(e), In: e.Stdin, Out: e.Stdout, Environ: os.Environ(),
		Control: func(ctx context.Context, c engine.Control) (string, error) { return sendControl(ctx, state, run, c) },
		Follow: func(ctx context.Context, sink engine.Sink) error {
			end = attach(ctx, &own, state, run, sink)
			return nil
		},
	})
	behind.release()
	return errors.Join(err, end)
}

// attach passes the events of a run to sink, first the past ones, then each new one.
func attach(ctx context.Context, e *console.Env, state, run string, sink engine.Sink) error {
	if _, err := journal.Read(state, run); err != nil && !errors.Is(err, journal.ErrNotBegun) {
		return err
	}
	sum := journal.Summarize(state, run)
	fmt.Fprintf(e.Stderr, "run %s, mode %s, started %s: %s\n", run, sum.Mode, sum.Made.Local().Format("2006-01-02 15:04:05 MST"), sum.Status)
	log := follower{state: state, run: run}
	defer log.close()
	tick := time.NewTicker(attachPoll)
	defer tick.Stop()
	process := journal.Process(state, sum.VCenter, run) // it measures when it has released its lock
	for ended := false; ; {
		going := journal.Running(state, sum.VCenter, run) // checked first: what the run writes until its end is still read
		if err := log.read(sink); err != nil {
			return err
		}
		if !going {
			break
		}
		process = journal.Process(state, sum.VCenter, run)
		if log.ended && !ended {
			fmt.Fprintln(e.Stderr, "the changes have ended; measurement and report follow, and are not shown here")
		}
		ended = log.ended
		select {
		case <-ctx.Done():
			fmt.Fprintf(e.Stderr, "detached; the run continues. Attach again with: rdma-setup attach %s\n", run)
			return console.Exit(console.ExitInterrupted)
		case <-tick.C:
		}
	}
	sum = journal.Summarize(state, run)
	code, verdict := console.ExitOK, ""
	if r := reportOfAttempt(ctx, state, sum, process, tick.C); r != nil {
		v := report.Decide(r)
		code, verdict = v.Exit, ", "+v.Line()
	}
	switch engine.Status(sum.Status) {
	case engine.StatusPartial:
		fmt.Fprintf(e.Stderr, "the run completed only in part. Continue with: %s\n", sum.Phase.Continue(run))
		code = cmp.Or(code, console.ExitPartial)
	case engine.StatusFailed:
		fmt.Fprintf(e.Stderr, "the run failed. Continue with: %s\n", sum.Phase.Continue(run))
		code = cmp.Or(code, console.ExitFailed)
	case engine.StatusInterrupted:
		fmt.Fprintf(e.Stderr, "the run was interrupted. Continue with: %s\n", sum.Phase.Continue(run))
		code = cmp.Or(code, console.ExitInterrupted)
	case "unreadable":
		return backends.Refusedf(run, "look at journal.jsonl in the directory of the run",
			"the run has ended, but its journal cannot be read: %s", sum.Err)
	default:
		fmt.Fprintf(e.Stderr, "the run has ended: %s%s. Its report: rdma-setup report %s\n", sum.Status, verdict, run)
	}
	return console.Exit(code)
}

// reportOfAttempt returns the report of the attempt that has ended; nil if there is none, as for a rollback. The process of a run
// writes it after it has released its lock: it measures before.
func reportOfAttempt(ctx context.Context, state string, sum journal.Summary, process int, tick <-chan time.Time) *report.Report {
	if sum.Phase == journal.PhaseRollback {
		return nil
	}
	measures := slices.Contains([]engine.Status{engine.StatusDone, engine.StatusUnchanged}, engine.Status(sum.Status))
	for {
		alive := process > 0 && syscall.Kill(process, 0) == nil // checked first: what it writes until its end is still read
		if r, err := reportKept(state, sum.Run); err == nil && !r.Made.Before(sum.Ended) {
			return r
		}
		if !alive || !measures {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
	}
}

// A follower reads the log of a run as it is written.
type follower struct {
	state, run string
	file       *os.File
	in         *bufio.Reader
	part       []byte // of an incomplete line
	ended      bool   // the last event so far is a result
}

func (f *follower) read(sink engine.Sink) error {
	if f.file == nil {
		file, err := journal.ReadLog(f.state, f.run)
		if errors.Is(err, os.ErrNotExist) {
			return nil // the run has just begun, or could not write a log
		}
		if err != nil {
			return err
		}
		f.file, f.in = file, bufio.NewReaderSize(file, 1<<16)
	}
	for {
		b, err := f.in.ReadBytes('\n')
		f.part = append(f.part, b...)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the log of run %s: %w", f.run, err)
		}
		var ev engine.Event
		if bytes.Contains(f.part, []byte(`"event"`)) && json.Unmarshal(f.part, &ev) == nil && ev.Type != "" {
			f.ended = ev.Type == engine.EventResult
			sink(ev)
		}
		f.part = f.part[:0]
	}
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
}

// A held writer buffers what is written while a screen uses the terminal, and prints it after the screen has ended. A line
// written into a screen would stay there until it is redrawn.
type held struct {
	mu     sync.Mutex
	to     io.Writer
	screen bool
	kept   bytes.Buffer
}

func (h *held) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.screen {
		return h.kept.Write(b)
	}
	return h.to.Write(b)
}

// hold buffers everything from now on.
func (h *held) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.screen = true
}

// release prints what was buffered, and everything afterwards immediately.
func (h *held) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.screen = false
	_, _ = h.kept.WriteTo(h.to) // if this fails, there is no other output left
}
