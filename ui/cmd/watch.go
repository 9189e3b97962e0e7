package cmd

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/watch"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render"
)

// watching repeats checks until the operator quits. An unreachable vCenter is reported and retried.
type watching struct {
	*checkup
	last *checked // nil until something was judged
}

// watch shows checks on a screen, or as blocks if there is none. Quitting by q returns the code of the last check, 3 if that
// could not judge anything.
func (f *checkFlags) watch(ctx context.Context, e *console.Env, cmd *cobra.Command) error {
	return untilSignalled(ctx, e, func(ctx context.Context, stop <-chan struct{}) error {
		starting, cancel := backends.Stoppable(ctx, stop)
		defer cancel()
		u, err := f.begin(starting, e, cmd)
		if err != nil {
			return f.ended(starting, e, err)
		}
		defer u.s.Close()
		w := &watching{checkup: u}
		if f.output == "json" && f.out == "" || !e.Terminal() || e.Getenv("TERM") == "dumb" {
			return w.blocks(starting)
		}
		return w.screen(ctx, stop)
	})
}

// untilSignalled closes stop at the first signal, even if the terminal is gone: a watch leaves nothing unfinished.
func untilSignalled(ctx context.Context, e *console.Env, do func(ctx context.Context, stop <-chan struct{}) error) error {
	signals, done := e.Interrupts()
	defer done()
	stop, finished := make(chan struct{}), make(chan struct{})
	defer close(finished)
	go func() {
		select {
		case <-signals:
			close(stop)
		case <-finished:
		}
	}()
	return do(ctx, stop)
}

// one checks once, within a time limit, and updates the file of --out.
func (w *watching) one(ctx context.Context) watch.Round {
	l := watch.Round{At: w.s.Env.Now()}
	ctx, cancel := context.WithTimeout(ctx, max(2*w.flags.every, 5*time.Minute))
	defer cancel()
	c, err := w.look(ctx)
	if err == nil && w.flags.out != "" {
		err = w.flags.show(w.s.Env, c)
	}
	l.Took = w.s.Env.Now().Sub(l.At)
	if err != nil {
		l.Err = err
		return l
	}
	w.last = c
	l.Status, l.Findings, l.Calls, l.Simulated, l.Insecure = c.word, c.report.Checks, c.calls, c.report.Simulated, len(c.report.Insecure) > 0
	return l
}

func line(l *watch.Round) string { return render.PluginLine(l.Status, l.Findings) }

// screen runs the screen. It never prompts for passwords: those known at the start must be sufficient.
func (w *watching) screen(ctx context.Context, stop <-chan struct{}) error {
	e := w.s.Env
	w.s.Screen.Store(true)
	h, interrupted, err := live.RunWatch(ctx, live.WatchOptions{
		Inspect: w.one, Line: line, Every: w.flags.every, Site: w.s.Set.URL, Theme: screenTheme(e),
		In: e.Stdin, Out: e.Stdout, Environ: os.Environ(), Stop: stop, Now: e.Now,
	})
	w.s.Screen.Store(false)
	if err != nil {
		return err
	}
	if h.Last != nil {
		fmt.Fprintln(e.Stdout, line(h.Last))
	}
	switch {
	case interrupted:
		return console.Exit(console.ExitInterrupted)
	case h.Err != nil || w.last == nil:
		return console.Exit(checkUnknown)
	}
	return console.Exit(w.last.code)
}

// blocks prints a block for each check, or with -o json a document per line.
func (w *watching) blocks(ctx context.Context) error {
	e := w.s.Env
	var h watch.History
	for {
		next := time.NewTimer(w.flags.every)
		l := w.one(ctx)
		if ctx.Err() != nil {
			next.Stop()
			return console.Exit(console.ExitInterrupted)
		}
		h.Take(l)
		if err := w.print(&h, l); err != nil {
			next.Stop()
			return err
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			fmt.Fprintf(e.Stderr, "stopped after %d checks\n", h.Rounds)
			return console.Exit(console.ExitInterrupted)
		}
	}
}

// An awayLine is the -o json line of a check that could not judge anything.
type awayLine struct {
	Status string    `json:"status"`
	At     time.Time `json:"at"`
	Err    string    `json:"error"`
	Hint   string    `json:"hint,omitempty"`
}

// A lookLine is the document of a check, with its time.
type lookLine struct {
	At time.Time `json:"at"`
	checkDoc
	Changes []watch.Change `json:"changes,omitempty"`
}

func (w *watching) print(h *watch.History, l watch.Round) error {
	e := w.s.Env
	if w.flags.output != "json" || w.flags.out != "" {
		if h.Rounds == 1 && l.Simulated {
			fmt.Fprintln(e.Stdout, "SIMULATED: checked on the embedded lab; it says nothing about real hardware")
		}
		said := ""
		if l.Err == nil {
			said = line(&l)
		}
		return plain.Watched(e.Stdout, h, said)
	}
	if l.Err != nil {
		return plain.JSON(e.Stdout).Encode(awayLine{"unknown", l.At, l.Err.Error(), backends.HintOf(l.Err)})
	}
	return plain.JSON(e.Stdout).Encode(lookLine{At: l.At, checkDoc: w.last.document(), Changes: h.Changes})
}
