package cmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// rehearseFlags say what is rehearsed.
type rehearseFlags struct {
	file, bundle, output string
	faults               []string
	stated               twin.Stated
}

func newRehearseCmd(e *console.Env) *cobra.Command {
	var f rehearseFlags
	c := &cobra.Command{
		Use:   "rehearse -f answers.yaml [--bundle site.tgz]",
		Short: "Apply the answers on a simulated copy of the site, and roll back there",
		Long: `rehearse reads the site as collect does, or takes a file that collect wrote, builds a simulated copy of it (a twin),
applies the answers there with the ordinary engine, and rolls back. It prints when each step happens by the times that you
state, who is out of service and for how long, what failed, and what the twin assumes. Nothing is written to the site.

The times follow from what you state: the twin does not know how long your hosts reboot.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return console.Interruptible(cmd.Context(), e, func(ctx context.Context) error { return f.run(ctx, e, cmd) })
		},
	}
	c.Flags().StringVarP(&f.file, "file", "f", "", "answers file with the wanted settings")
	_ = c.MarkFlagRequired("file")
	c.Flags().StringVar(&f.bundle, "bundle", "", "the site as collect wrote it to this file (default: read it now)")
	console.OutputFlag(c, &f.output, "text", "json")
	c.Flags().StringArrayVar(&f.faults, "fault", nil, "a fault of the twin, as of rdma-setup lab: what if esx-07 does not come back?")
	s := &f.stated
	c.Flags().DurationVar(&s.Reboot, "reboot", 10*time.Minute, "how long a host reboots")
	c.Flags().DurationVar(&s.Evacuate, "evacuate", 5*time.Minute, "how long a host takes to enter maintenance mode")
	c.Flags().DurationVar(&s.Shutdown, "shutdown", 30*time.Second, "how long a guest takes to shut down")
	c.Flags().DurationVar(&s.Boot, "boot", time.Minute, "how long a guest takes to boot")
	c.Flags().DurationVar(&s.Install, "install", 3*time.Minute, "how long packages, drivers and components take to install, on one host or guest")
	c.Flags().DurationVar(&s.Other, "other", 5*time.Second, "how long any other operation takes")
	return c
}

// A rehearsal is what a run on the twin came to. The JSON names are those of the contract.
type rehearsal struct {
	Status   string      `json:"status"`
	Hash     string      `json:"plan_hash"`
	Steps    []twin.Step `json:"steps"`
	Window   int         `json:"window_s"`
	Worst    int         `json:"worst_vm_outage_s"`
	Failed   []string    `json:"failed"`
	Rollback string      `json:"rollback"` // how the rollback on the twin ended; "" where nothing was applied
	Restored bool        `json:"restored"` // the plan is the same again after it
	Assumed  []string    `json:"assumed"`

	timeline twin.Timeline
}

func (f *rehearseFlags) run(ctx context.Context, e *console.Env, cmd *cobra.Command) error {
	a, err := (&planFlags{file: f.file}).load(e, nil)
	if err != nil {
		return err
	}
	var b *bundle.Bundle
	if f.bundle != "" {
		b, err = openBundle(f.bundle)
	} else {
		b, err = collect(ctx, e, cmd, &checkFlags{planFlags: planFlags{file: f.file}})
	}
	if err != nil {
		return err
	}
	b.Answers = a
	site, err := twin.Of(b)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rdma-setup-rehearse-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := lab.Start(ctx, lab.Options{Found: site.Found, Faults: f.faults, Dir: dir, RebootTime: time.Second, BootTime: 200 * time.Millisecond})
	if err != nil {
		return console.Usage("see: rdma-setup lab --fault help", "%v", err)
	}
	defer l.Close()
	var text bytes.Buffer
	if _, err := site.Answers(&text, l, a); err != nil {
		return err
	}
	file := filepath.Join(dir, "answers.yaml")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		return err
	}
	r := &rehearsal{Assumed: site.Assumed, Steps: []twin.Step{}, Failed: []string{}}
	code := r.play(ctx, e.Stderr, onTwin(e, l, dir), file, f.stated)
	if ctx.Err() != nil {
		return backends.Errorf(backends.KindInterrupted, "", "", "interrupted: nothing was written to the site")
	}
	if f.output == "json" {
		err = console.WriteJSON(e.Stdout, r)
	} else {
		err = r.text(e.Stdout)
	}
	if err == nil && code != 0 {
		err = &console.CodeError{Code: code}
	}
	return err
}

// onTwin is the environment of commands that run on a lab, without a terminal and with a state directory of their own.
func onTwin(e *console.Env, l *lab.Lab, dir string) func(ctx context.Context, args ...string) (code int, out, errs []byte) {
	env := map[string]string{"HOME": dir, "XDG_STATE_HOME": dir, "XDG_CONFIG_HOME": dir}
	for _, line := range l.Env() {
		key, value, _ := strings.Cut(line, "=")
		env[key] = value
	}
	return func(ctx context.Context, args ...string) (int, []byte, []byte) {
		var out, errs bytes.Buffer
		code := Run(ctx, &console.Env{
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(key string) string { return env[key] }, Now: e.Now,
			Terminal: func() bool { return false }, Executable: e.Executable,
			Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
		}, args)
		return code, out.Bytes(), errs.Bytes()
	}
}

// play plans, applies and rolls back on the twin, says so, and returns the exit code of the plan or of the run.
func (r *rehearsal) play(ctx context.Context, said io.Writer, on func(context.Context, ...string) (int, []byte, []byte), file string, s twin.Stated) int {
	fmt.Fprintln(said, "planning on the twin")
	code, out, errs := on(ctx, "plan", "-f", file, "-o", "json")
	if code != 0 {
		r.Status, r.Failed = "refused", lines(errs)
		return code
	}
	var after map[string][]string
	var err error
	if r.Hash, after, err = twin.Waits(out); err != nil {
		r.Status, r.Failed = string(engine.StatusFailed), []string{err.Error()}
		return console.ExitFailed
	}
	fmt.Fprintln(said, "applying on the twin")
	code, out, errs = on(ctx, "apply", "-f", file, "--yes", "-o", "json")
	if ctx.Err() != nil {
		return code // the caller reports the interruption
	}
	r.timeline = twin.NewTimeline(events(out), after, s)
	r.Status, r.Steps, r.Window, r.Worst = string(r.timeline.Result), r.timeline.Steps, r.timeline.Window, r.timeline.Worst()
	for _, e := range r.timeline.Failed {
		r.Failed = append(r.Failed, e.Node+": "+e.Err)
	}
	if code != 0 && len(r.Failed) == 0 {
		r.Failed = lines(errs)
	}
	if len(r.Steps) == 0 {
		return code
	}
	fmt.Fprintln(said, "rolling back on the twin")
	_, out, _ = on(ctx, "rollback", "--yes", "-o", "json")
	for _, e := range events(out) {
		if e.Type == engine.EventResult {
			r.Rollback = string(e.Status)
		}
	}
	if _, out, _ = on(ctx, "plan", "-f", file, "-o", "json"); len(out) > 0 {
		hash, _, err := twin.Waits(out)
		r.Restored = err == nil && hash == r.Hash
	}
	return code
}

// events reads what apply and rollback print with -o json; the last line of each is the result.
func events(out []byte) []engine.Event {
	var list []engine.Event
	for line := range bytes.Lines(out) {
		var e engine.Event
		if json.Unmarshal(line, &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

func lines(text []byte) []string {
	out := []string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// text is the rehearsal for people.
func (r *rehearsal) text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "SIMULATED: rehearsed on a twin of the site; nothing was written to the site\n%s", r.Status)
	if r.Hash != "" {
		fmt.Fprintf(&b, ", plan %s", r.Hash[:12])
	}
	b.WriteString("\n")
	if len(r.Steps) > 0 {
		fmt.Fprintf(&b, "window: %s; by the times stated, expect %s to %s\n", clock(r.Window), clock(r.Window*4/5), clock(r.Window*6/5))
		fmt.Fprintf(&b, "longest time that a VM is off: %s; expect %s to %s\n", clock(r.Worst), clock(r.Worst*4/5), clock(r.Worst*6/5))
		r.chart(&b)
		fmt.Fprintf(&b, "\nrollback on the twin: %s", cmp.Or(r.Rollback, "did not end"))
		if r.Restored {
			b.WriteString("; the plan is the same again\n")
		} else {
			b.WriteString("; the plan is not the same as before: changes that it marks as irreversible stay\n")
		}
	}
	for _, list := range []struct {
		title string
		rows  []string
	}{{"failed:", r.Failed}, {"assumed, because it was not collected:", r.Assumed}} {
		if len(list.rows) > 0 {
			fmt.Fprintf(&b, "\n%s\n", list.title)
		}
		for _, row := range list.rows {
			fmt.Fprintf(&b, "  %s\n", backends.Clean(row))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// chartWidth is the columns of the timeline.
const chartWidth = 50

// chart draws a row for each target: # while it is out of service, = while it is worked on, . else.
func (r *rehearsal) chart(b *strings.Builder) {
	rows, widest := map[string][]byte{}, 0
	down, since := map[string]bool{}, map[string]int{}
	column := func(s int) int { return min(chartWidth-1, s*chartWidth/max(1, r.Window)) }
	mark := func(target string, from, to int, with byte) {
		if rows[target] == nil {
			rows[target] = bytes.Repeat([]byte{'.'}, chartWidth)
			widest = max(widest, len(target))
		}
		for i := column(from); i <= column(max(from, to-1)); i++ {
			if rows[target][i] != '#' {
				rows[target][i] = with
			}
		}
	}
	for _, s := range r.Steps {
		mark(s.Target, s.Start, s.End, '=')
		switch opens := strings.HasPrefix(s.ID, "open "); {
		case s.Down() && opens && !down[s.Target]:
			down[s.Target], since[s.Target] = true, s.Start
		case s.Down() && !opens:
			mark(s.Target, since[s.Target], s.End, '#')
			down[s.Target] = strings.Contains(s.ID, "/"+string(backends.BracketReboot)) // its maintenance mode follows
			since[s.Target] = s.End
		}
	}
	for target, is := range down {
		if is && since[target] < r.Window && r.Status != string(engine.StatusDone) {
			mark(target, since[target], r.Window, '#')
		}
	}
	fmt.Fprintf(b, "\n%-*s  0%*s\n", widest, "TARGET", chartWidth-1, clock(r.Window))
	for _, target := range slices.SortedFunc(maps.Keys(rows), plain.Natural) {
		fmt.Fprintf(b, "%-*s  %s", widest, backends.Clean(target), rows[target])
		if out := r.timeline.Out[target]; out > 0 {
			fmt.Fprintf(b, "  off for %s", clock(out))
		}
		b.WriteString("\n")
	}
	b.WriteString("# out of service, = worked on\n")
}

func clock(seconds int) string { return (time.Duration(seconds) * time.Second).String() }
