package cmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// rehearseFlags are the flags of rehearse.
type rehearseFlags struct {
	file, bundle, output, scenario string
	faults                         []string
	rules                          []fault.Rule // faults, parsed
	stated                         twin.Stated
	given                          func(flag string) bool // whether the operator states a time
}

func newRehearseCmd(e *console.Env) *cobra.Command {
	var f rehearseFlags
	c := &cobra.Command{
		Use:   "rehearse -f answers.yaml [--bundle site.tgz]",
		Short: "Apply the answers on a simulated copy of the site, and roll back there",
		Long: `rehearse reads the site as collect does, or takes a file that collect wrote, builds a simulated copy of it (a twin),
applies the answers there with the ordinary engine, and rolls back. It prints when each step happens,
who is out of service and for how long, what failed, and what the twin assumes. Nothing is written to the site.

The twin does not know how long your hosts reboot. The time of a reboot, of maintenance mode and of a guest shutdown is the one that
you state, else the median in vCenter's history of the last 30 days, else a default.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The machines of a twin allocate 300 MB a second. A collection beside them keeps all that they allocate meanwhile, half
			// of the heap: one that stops them takes a seventh less CPU.
			if e.Restart != nil {
				e.Restart("gcstoptheworld=1")
			}
			return resultLine(e, "rehearse", f.output,
				console.Interruptible(cmd.Context(), e, func(ctx context.Context) error { return f.run(ctx, e, cmd) }))
		},
	}
	c.Flags().StringVarP(&f.file, "file", "f", "", "answers file with the wanted settings")
	c.Flags().StringVar(&f.bundle, "bundle", "", "the site as collect wrote it to this file (default: read it now)")
	console.OutputFlag(c, &f.output, "text", "json", "html")
	c.Flags().StringArrayVar(&f.faults, "fault", nil,
		"a fault rule for the twin, as in rdma-setup lab; host=esx-02,do=reboot-never: esx-02 does not come back from its reboot")
	c.Flags().StringVar(&f.scenario, "scenario", "", "a defect of the twin: a broken-... scenario of rdma-setup lab")
	usual, s := usualTimes(), &f.stated
	c.Flags().DurationVar(&s.Reboot, "reboot", usual.Reboot, "how long a host reboots")
	c.Flags().DurationVar(&s.Evacuate, "evacuate", usual.Evacuate, "how long a host takes to enter maintenance mode")
	c.Flags().DurationVar(&s.Shutdown, "shutdown", usual.Shutdown, "how long a guest takes to shut down")
	c.Flags().DurationVar(&s.Boot, "boot", usual.Boot, "how long a guest takes to boot")
	c.Flags().DurationVar(&s.Install, "install", usual.Install,
		"how long packages, drivers and components take to install, on one host or guest")
	c.Flags().DurationVar(&s.Other, "other", usual.Other, "how long any other operation takes")
	return c
}

func usualTimes() twin.Stated {
	return twin.Stated{Reboot: 10 * time.Minute, Evacuate: 5 * time.Minute, Shutdown: 30 * time.Second, Boot: time.Minute,
		Install: 3 * time.Minute, Other: 5 * time.Second}
}

func (f *rehearseFlags) run(ctx context.Context, e *console.Env, cmd *cobra.Command) error {
	f.given = cmd.Flags().Changed
	if err := f.check(); err != nil {
		return err
	}
	a, err := (&planFlags{file: f.file}).load(e, nil)
	if err != nil {
		return err
	}
	interrupted := backends.Interruptedf("", "", "interrupted: nothing was written to the site")
	var b *bundle.Bundle
	if f.bundle != "" {
		b, err = openBundle(f.bundle)
	} else {
		b, err = collect(ctx, e, cmd, &checkFlags{planFlags: planFlags{file: f.file}})
	}
	if ctx.Err() != nil {
		return interrupted
	}
	if err == nil {
		err = f.knownTargets(b)
	}
	if err != nil {
		return err
	}
	b.Answers = a
	r, code, err := f.play(ctx, e, e.Stderr, b)
	if ctx.Err() != nil {
		return interrupted
	}
	if err != nil {
		return err
	}
	switch f.output {
	case "json":
		err = plain.WriteJSON(e.Stdout, r)
	case "html":
		err = r.HTML(e.Stdout)
	default:
		err = r.Text(e.Lines(e.Stdout, e.Stdout))
	}
	if err == nil && code != 0 {
		err = &console.CodeError{Code: code}
	}
	return err
}

// play rehearses the answers of a bundle on a twin of it, reports its steps to said, and returns the exit code of the run there.
func (f *rehearseFlags) play(ctx context.Context, e *console.Env, said io.Writer, b *bundle.Bundle) (*twin.Rehearsal, int, error) {
	a := b.Answers
	site, err := twin.Of(b)
	if err != nil {
		return nil, 0, err
	}
	// Most of what the twin allocates lives for one command, so the garbage collector waits for the memory limit: that takes a
	// quarter less CPU than at 200 percent.
	defer e.Collect(1500, memoryOfTwins)()
	dir, err := twinDir()
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(dir)
	o := lab.Options{Found: site.Found, Faults: f.faults, Dir: dir, RebootTime: 50 * time.Millisecond, BootTime: 10 * time.Millisecond,
		Shutdown: 10 * time.Millisecond, TaskTime: 4 * time.Millisecond, Commands: timing.Clock{SleepScale: 0.05}, Private: true, Unlogged: true}
	if f.scenario != "" {
		o.Found = func(s *world.State) error {
			if err := site.Found(s); err != nil {
				return err
			}
			if err := scenario.Break(s, f.scenario); err != nil {
				return console.Usage("use another scenario: rdma-setup lab --scenario help lists them", "%w", err)
			}
			return nil
		}
	}
	l, err := lab.Start(ctx, o)
	if err != nil {
		return nil, 0, fmt.Errorf("start the twin: %w", err)
	}
	defer l.Close()
	f.stated.Measure(b.Facts.Inventory.Took, f.given)
	f.stated.RebootLimit, f.stated.BootLimit = a.Run.Reboot.Limit(), guest.DefaultBootTime
	r, share := twin.NewRehearsal(site.Assumed, f.stated.Sources()), &console.Twin{Dial: l.Dial, Wait: waitOnTwins}
	p := &play{Rehearsal: r, said: said, on: onTwin(e, l, dir, share), share: share, stated: f.stated, state: filepath.Join(dir, "rdma-setup"),
		limits: engine.Limits{Parallel: a.Run.Parallel, HostsDown: a.Run.Reboot.MaxUnavailable, VMsOff: a.Run.Power.Limit(len(a.VMs))}}
	if p.file, err = answersIn(dir, site, l, a); err != nil {
		return nil, 0, err
	}
	code, err := p.run(ctx)
	r.Warnings = unused(l.World().Faults.Unused())
	return r, code, err
}

const (
	// memoryOfTwins is the soft limit of a process with a twin in it, bytes.
	memoryOfTwins = 430 << 20
	// parallelOnTwins is run.parallel on a twin, where nothing is waited for: more would take memory only.
	parallelOnTwins = 4
	// guestsOnTwins bounds the guests that are read or changed at the same time: all of them run in this process.
	guestsOnTwins = 8
	// waitOnTwins bounds the wait for a host or a guest that has to come back: there that takes less than a second.
	waitOnTwins = 30 * time.Second
	// waitInVain does so in the rollback of a run in which something has not come back: it will not.
	waitInVain = 10 * time.Second
	// connectionsOnTwins bounds the idle SSH connections; both ends of one, which this process has, take 100 KB.
	connectionsOnTwins = 48
)

// answersIn writes answers for a twin into a file.
func answersIn(dir string, site *twin.Twin, l *lab.Lab, a *answers.Answers) (string, error) {
	var text bytes.Buffer
	if _, err := site.Answers(&text, l, a); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "answers.yaml")
	return file, os.WriteFile(file, text.Bytes(), 0o600)
}

// onTwin is the environment of commands that run on a lab, without a terminal and with a state directory of their own.
func onTwin(e *console.Env, l *lab.Lab, dir string,
	share *console.Twin) func(ctx context.Context, args ...string) (code int, out *events, errs []byte) {
	env := map[string]string{"HOME": dir, "XDG_STATE_HOME": dir, "XDG_CONFIG_HOME": dir}
	for _, line := range l.Env() {
		key, value, _ := strings.Cut(line, "=")
		env[key] = value
	}
	return func(ctx context.Context, args ...string) (int, *events, []byte) {
		out := &events{}
		var errs bytes.Buffer
		code := Run(ctx, &console.Env{
			Stdin: strings.NewReader(""), Stdout: out, Stderr: &errs, Getenv: func(key string) string { return env[key] }, Now: e.Now,
			Terminal: func() bool { return false }, Executable: e.Executable,
			Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
			Apart:      guestsOnTwins, Connections: connectionsOnTwins,
			Twin:        share,
			JournalFile: func(f journal.File) journal.File { return volatile{f} },
		}, args)
		return code, out, errs.Bytes()
	}
}

// A volatile file is not flushed to the disk: the journal of a twin ends with the process.
type volatile struct{ journal.File }

func (volatile) Sync() error { return nil }

// A play is a running rehearsal.
type play struct {
	*twin.Rehearsal
	said   io.Writer
	on     func(context.Context, ...string) (int, *events, []byte)
	share  *console.Twin
	file   string // answers
	state  string // directory of the runs
	limits engine.Limits
	stated twin.Stated
}

// run applies and rolls back on the twin, reports it, and returns the exit code of the run, or of the plan if it is refused.
func (p *play) run(ctx context.Context) (int, error) {
	fmt.Fprintln(p.said, "planning and applying on the twin")
	code, out, errs := p.on(ctx, "apply", "-f", p.file, "--yes", "-o", "json", "--parallel",
		strconv.Itoa(min(p.limits.Parallel, parallelOnTwins)))
	if ctx.Err() != nil {
		return code, nil // the caller reports the interruption
	}
	run := ""
	for _, e := range out.list {
		run = cmp.Or(run, e.Run)
	}
	st := &journal.State{}
	if run != "" {
		var err error
		if st, err = journal.Read(p.state, run); err != nil {
			return code, err
		}
	}
	if !st.Changed() {
		before, refused, why := p.planned(ctx)
		if before == nil {
			p.Status, p.Failed = string(statusRefused), lines(why)
			return refused, nil
		}
		return code, p.told(run, before, out.list, st, code, errs)
	}
	text, err := journal.ReadFile(p.state, run, "plan.json")
	if err != nil {
		return code, err
	}
	if code != 0 && !failures(out.list) { // such as a run that stopped before a change that its plan did not have
		if left, _, why := p.planned(ctx); left == nil {
			p.Failed = append(p.Failed, lines(why)...)
		} else {
			for _, c := range left.changes {
				p.Failed = append(p.Failed, "not done: "+c.title)
			}
		}
	}
	var before *planLines
	var work errgroup.Group
	work.Go(func() (err error) { // beside the rollback, which begins with work for one CPU, too
		if before, err = plannedIn(text); err != nil {
			return err
		}
		return p.told(run, before, out.list, st, code, errs)
	})
	fmt.Fprintln(p.said, "rolling back on the twin")
	// A run that has ended has read everything after its last change, and nobody else changes the twin.
	p.share.Guests = code == 0
	if slices.ContainsFunc(out.list, func(e engine.Event) bool {
		return e.Type == engine.EventFailed && e.ErrKind == backends.KindUnreachable
	}) {
		p.share.Wait = waitInVain
	}
	_, back, said := p.on(ctx, "rollback", run, "--yes", "-o", "json")
	if err := work.Wait(); err != nil {
		return code, err
	}
	p.rolledBack(back.list, said)
	p.share.Guests, p.share.Keep = false, p.Rollback == string(engine.StatusDone)
	if after, _, why := p.planned(ctx); after != nil {
		p.Restored = after.hash == p.Hash
		p.Differs, p.Stay = differing(before.changes, after.changes)
	} else {
		p.Differs = append([]string{"the plan could not be made again:"}, lines(why)...)
	}
	return code, nil
}

// told reports what the run on the twin has done: its plan before, its events, its journal, and its report. run may be "".
func (p *play) told(run string, before *planLines, list []engine.Event, st *journal.State, code int, errs []byte) error {
	p.Hash = before.hash
	for _, c := range before.changes {
		p.Plan = append(p.Plan, c.title)
	}
	if err := p.timeline(list, st); err != nil {
		return err
	}
	defer func() {
		if code != 0 && len(p.Failed) == 0 {
			p.Failed = lines(errs)
		}
	}()
	if run == "" || len(p.Steps) == 0 {
		return nil
	}
	var done report.Report
	if text, err := journal.ReadFile(p.state, run, "report.json"); err == nil && json.Unmarshal(text, &done) == nil {
		p.Judged(done.Checks, done.NotApplicable)
		p.Measurements = append(p.Measurements, done.Measurements...)
		if code != 0 && !failures(list) {
			p.Failed = append(ownNotes(done.Notes), p.Failed...)
		}
	}
	return nil
}
