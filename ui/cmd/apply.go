package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

func newApplyCmd(e *console.Env) *cobra.Command {
	var f planFlags
	var output, planFile string
	var yes, measure bool
	c := &cobra.Command{
		Use:   "apply -f answers.yaml",
		Short: "Plan the changes, ask for consent, apply them, measure and report",
		Long: `Plan the changes, ask for consent, apply them, measure and report.

Every log-in that the run needs is tested before anything is changed: log-ins to guests before the plan is shown, log-ins to ESXi
shells after you have accepted it. For these, the SSH service is started on the hosts and then restored. If one fails, all failures are
listed and nothing is changed. For hosts with different passwords see --esxi-passwords.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return resultLine(e, "apply", output, console.Signalled(cmd.Context(), e, func(ctx context.Context, stop <-chan struct{}) error {
				s, a, err := f.begin(ctx, e, cmd)
				if err != nil {
					return err
				}
				defer s.Close()
				f.ask = !yes && output != "json"
				r := &runner{env: e, s: s, a: a, flags: f, yes: yes, json: output == "json", stop: stop}
				if cmd.Flags().Changed("measure") {
					r.measure = &measure
				}
				return r.apply(ctx, planFile)
			}))
		},
	}
	f.add(c)
	operationFlag(c, &f.operation)
	console.OutputFlag(c, &output, "text", "json")
	c.Flags().StringVar(&planFile, "plan", "", "apply exactly this saved plan (from plan --out); refuse if anything has changed since")
	c.Flags().BoolVar(&measure, "measure", false, "measure without asking even if there is nothing to change; --measure=false never measures")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "accept the plan as printed, without asking")
	breakLockFlag(c, &f)
	return c
}

// A runner executes an apply from the plan to the report.
type runner struct {
	env   *console.Env
	s     *session.Session
	a     *answers.Answers
	flags planFlags
	yes   bool
	json  bool
	// measure is --measure; nil if it was not given.
	measure *bool
	said    []perftest.LoadPlan // cost of loading the fabric, as printed before the question
	loads   []perftest.LoadPlan // the same, after the question was answered with yes
	stop    <-chan struct{}
	until   time.Time // of a resume or rollback: the end of the window at the time of the command

	onConflict rollback.OnConflict                  // of a rollback: what to do with what someone else has changed since
	decisions  map[backends.Ref]rollback.OnConflict // the same for single targets
	conflicts  []plan.Refusal                       // of a rollback: targets that someone else has changed since
	left       []plan.Refusal                       // of a rollback: what stays as someone else has changed it
	earlier    []report.Outcome                     // of a resume: what earlier attempts have done
	waits      waits
	skipAway   bool  // what does not answer is not waited for
	unplanned  error // why a resume has no plan before targets answer that are waited for
	untouched  bool  // of a rollback on a twin: nothing has changed in the guests since the run ended
}

func (r *runner) apply(ctx context.Context, planFile string) error {
	var saved *planDoc
	if planFile != "" {
		var err error
		if saved, err = savedPlan(planFile); err != nil {
			return err
		}
	}
	p, err := makePlan(ctx, r.s, r.a, r.flags)
	if err != nil {
		if p == nil {
			return err
		}
		p.plan, err = r.hostsToo(err, func() (*plan.Plan, error) {
			return recipe.Build(r.a, unasked(p.inv, r.flags.barred), r.flags.options())
		})
		if err != nil {
			return err
		}
		_, err = carryOut(ctx, r.s, r.a, p, r.flags, r.stop, r.sink())
		r.stopped(err)
		return err
	}
	if saved != nil && saved.Hash != p.plan.Hash() {
		return backends.Refusedf("",
			"review the changes with rdma-setup plan -f answers.yaml, and save a new plan with --out",
			"the inventory or the answers have changed since %s was saved: a plan made now would differ", planFile)
	}
	if err := r.consentToLoad(p); err != nil {
		return err
	}
	switch {
	case !p.plan.Empty():
		if err := r.consent(p); err != nil {
			return err
		}
	default:
		if !r.json {
			fmt.Fprintln(r.env.Stderr, plain.NoChanges)
		}
		if err := r.consentToMeasure(p); err != nil {
			return err
		}
	}
	res, runErr := carryOut(ctx, r.s, r.a, p, r.flags, r.stop, r.sink())
	return r.finish(ctx, p, res, runErr)
}

// consent shows the plan and asks, unless --yes has answered already.
func (r *runner) consent(p *planned) error {
	if r.json && r.yes {
		return nil
	}
	if err := plain.Plan(r.env.Lines(r.env.Stderr, r.env.Stderr), p.plan); err != nil {
		return err
	}
	if r.yes {
		return nil
	}
	if err := confirmed(r.env, "the plan", "the plan as printed", "Apply these changes"); err != nil {
		return err
	}
	r.loads = r.said
	return nil
}

// confirmed asks a question about what was printed; anything but yes is an error.
func confirmed(e *console.Env, what, printed, question string) error {
	if !e.Terminal() {
		return console.Usage("add --yes to accept "+printed, "%s must be confirmed, and there is no terminal", what)
	}
	yes, err := e.Confirm(question)
	if err == nil && !yes {
		err = backends.Interruptedf("", "", "not confirmed: nothing was changed")
	}
	return err
}

// sink shows events; the engine's own result is delayed, because measurements and the report follow it.
func (r *runner) sink() engine.Sink {
	show := plain.Lines(r.env.Lines(r.env.Stderr, r.env.Stderr))
	if r.json {
		show = plain.JSONLines(r.env.Stdout)
	}
	return func(e engine.Event) {
		if e.Type != engine.EventResult {
			show(e)
		}
	}
}

// unproven reports whether a run stopped before its first change because a login that it needs does not work.
func unproven(err error) bool {
	_, is := errors.AsType[*engine.ProofError](err)
	return is
}

// stopped prints that such a run changed nothing.
func (r *runner) stopped(err error) bool {
	if unproven(err) && !r.json {
		fmt.Fprintln(r.env.Stderr, "Nothing was changed. Log-ins are tested before anything else is done, and these failed:")
	}
	return unproven(err)
}

// finish measures if the run was completed, saves and prints the report, and returns the exit code. A run that never began, or
// that stopped before its first change, has nothing to report.
func (r *runner) finish(ctx context.Context, p *planned, res engine.Result, runErr error) error {
	if runErr != nil && res.Run == "" || r.stopped(runErr) {
		return runErr
	}
	out := outcome{Status: res.Status, Run: res.Run, Text: strings.Join(res.Notes, "; ")}
	var err error
	if runErr == nil && (res.Status == engine.StatusDone || res.Status == engine.StatusUnchanged) {
		out.Measurements, err = r.measured(ctx, p, res)
		if err != nil {
			runErr = err
		}
	}
	after := lookAgain(ctx, r.s, r.a, p, r.flags, res, out.Measurements)
	runErr = cmp.Or(runErr, after.err)
	rep, err := reportOf(r.s, r.a, p, res, out.Measurements, after, r.earlier, runErr)
	if err != nil {
		runErr = errors.Join(runErr, err)
	}
	if runErr != nil {
		out.Err, out.Hint = runErr.Error(), backends.HintOf(runErr)
		rep.Err, rep.Hint, rep.ErrExit = out.Err, out.Hint, console.ExitCode(runErr)
	}
	v := report.Decide(rep)
	code := v.Exit
	out.LeftBehind, out.Causes = rep.LeftBehind, rep.Causes()
	out.judge(v)
	if r.json {
		if err := r.writeResult(out, code); err != nil {
			return err
		}
	} else {
		if err := render.Terminal(r.env.Stdout, rep, r.env.Theme()); err != nil {
			return err
		}
		for _, n := range res.Notes {
			_ = plain.Printf(r.env.Stderr, "note: %s\n", n)
		}
		if res.Run != "" {
			fmt.Fprintf(r.env.Stderr, "run %s; full report: rdma-setup report %s; undo: %s\n", res.Run, res.Run, r.s.Undo(res.Run, code))
		}
	}
	r.s.KeepLab(code)
	if runErr != nil {
		return &console.CodeError{Code: code, Err: runErr}
	}
	return console.Exit(code)
}

// An outcome is the last line that apply, resume and rollback print with -o json. Instead of their document, plan, discover and
// rehearse print it if they fail.
type outcome struct {
	Event        string                 `json:"event"`
	Status       engine.Status          `json:"status"`
	Exit         int                    `json:"exit"`
	Verdict      report.Name            `json:"verdict,omitempty"` // none for a rollback
	Summary      string                 `json:"summary,omitempty"`
	Cause        string                 `json:"cause,omitempty"`
	Chain        []checks.Link          `json:"chain,omitempty"`
	Run          string                 `json:"run,omitempty"`
	Text         string                 `json:"text,omitempty"`
	Measurements []perftest.Measurement `json:"measurements"`
	Receivers    []perftest.Crowd       `json:"receivers,omitempty"` // of incasts
	Err          string                 `json:"error,omitempty"`
	Hint         string                 `json:"hint,omitempty"`
	LeftBehind   *report.LeftBehind     `json:"left_behind,omitempty"`
	Causes       []report.Cause         `json:"causes,omitempty"`
	Refusals     []plan.Refusal         `json:"refusals,omitempty"` // every reason why nothing was begun
}

func (o *outcome) judge(v report.Verdict) {
	o.Verdict, o.Summary, o.Cause, o.Chain = v.Name, v.Summary, v.Cause, v.Chain
}

func (r *runner) writeResult(o outcome, code int) error {
	o.Event, o.Exit, o.Receivers = string(engine.EventResult), code, perftest.Crowds(o.Measurements)
	if o.Measurements == nil {
		o.Measurements = []perftest.Measurement{}
	}
	return plain.JSON(r.env.Stdout).Encode(o)
}

// statusRefused is the status of a result line where nothing was begun.
const statusRefused = engine.Status("refused")

// resultLine ends the output of -o json of a command that failed before it could write its document, or its run a result.
func resultLine(e *console.Env, command, output string, err error) error {
	if _, said := errors.AsType[*console.CodeError](err); said || err == nil || output != "json" {
		return err
	}
	o := outcome{Status: engine.StatusFailed, Err: err.Error(), Hint: backends.HintOf(err)}
	code := console.ExitCode(err)
	switch code {
	case console.ExitUsage, console.ExitRefused, console.ExitConnect:
		o.Status = statusRefused
	case console.ExitInterrupted:
		o.Status = engine.StatusInterrupted
	}
	switch command {
	case "rollback", "discover", "rehearse": // no verdict on a setup
	default:
		v := report.Decide(&report.Report{Command: report.Apply, Err: o.Err, Hint: o.Hint, ErrExit: code})
		o.Verdict, o.Summary, o.Cause = v.Name, v.Summary, v.Cause
	}
	if refused, ok := errors.AsType[*plan.Refused](err); ok {
		o.Refusals = refused.Refusals
	}
	if bad := (&runner{env: e}).writeResult(o, code); bad != nil {
		return errors.Join(err, bad)
	}
	return err
}
