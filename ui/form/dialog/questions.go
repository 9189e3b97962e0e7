// Package dialog is the wizard for screen readers and dumb terminals: one question per line, the same as on the screen.
package dialog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Options are the dependencies of the questions.
type Options struct {
	Fabric  live.Fabric
	Answers *answers.Answers
	In      io.Reader
	Out     io.Writer
	Width   int                                 // columns of the terminal, 0 if unknown
	Secret  func(prompt string) (string, error) // asks for a password
	// Stop is closed when the operator requested from outside (SIGTERM) that nothing new begins.
	Stop <-chan struct{}
}

// Run runs the wizard for screen readers and dumb terminals: one question per line, Enter accepts the default in brackets. It
// asks and does the same as the screen. If the input ends, nothing is changed.
func Run(ctx context.Context, o Options) (entry.Outcome, error) {
	q := &questions{out: folding{o.Out, o.Width}, o: o, a: o.Answers, lines: make(chan string, 1), want: make(chan struct{})}
	defer close(q.want)
	go q.read(bufio.NewReader(o.In))
	o.Fabric.Asks(q.answer)
	err := q.run(ctx)
	return q.outcome, err
}

// A folding writer breaks lines between words.
type folding struct {
	io.Writer
	width int
}

func (f folding) Write(p []byte) (int, error) {
	if _, err := io.WriteString(f.Writer, theme.Fold(string(p), f.width)); err != nil {
		return 0, err
	}
	return len(p), nil
}

type questions struct {
	out      io.Writer
	o        Options
	a        *answers.Answers
	outcome  entry.Outcome
	loads    []perftest.LoadPlan // cost of loading the fabric after the changes
	surveyed *backends.Inventory // by the preflight
	login    live.Login
	lookOnly bool   // only a report is requested
	kept     bool   // the answers are those of an earlier wizard
	rough    string // edited answers with mistakes; otherwise ""
	inv      *backends.Inventory
	editable bool // :save, :edit and :back are accepted
	at       int  // the current page, in the order of pageNames; the preflight and the plan come after them
	again    int  // the page to ask again: a named page, or the first page whose answer was edited

	want  chan struct{} // a line is wanted; closed at the end
	lines chan string   // closed when the input has ended
}

// read reads a line whenever one is wanted, so that a stop is noticed while nobody types.
func (q *questions) read(in *bufio.Reader) {
	defer close(q.lines)
	for range q.want {
		line, err := in.ReadString('\n')
		if err != nil {
			return // an incomplete line is not an answer
		}
		q.lines <- line
	}
}

// errEnd is an input that ended early: no default may be used as an answer then.
func errEnd() error {
	return backends.Usagef("",
		"answer every question, or replay saved answers with: rdma-setup apply -f answers.yaml --yes",
		"the input ended before all questions were answered: nothing was changed")
}

func errStopped() error {
	return backends.Interruptedf("", "", "stopped: nothing was changed")
}

func (q *questions) say(format string, args ...any) { _ = plain.Printf(q.out, format+"\n", args...) }

// page writes a text that is ready to be read.
func (q *questions) page(text string) { fmt.Fprintln(q.out, strings.TrimRight(text, "\n")) }

func (q *questions) ask(question, def string) (string, error) {
	words := question
	if def != "" {
		words += " [" + def + "]"
	}
	fmt.Fprint(q.o.Out, theme.Wrap(backends.Clean(words)+":", q.o.Width-1)+" ")
	select {
	case q.want <- struct{}{}:
	case <-q.lines:
		return "", errEnd()
	}
	select {
	case line, ok := <-q.lines:
		line = strings.TrimSpace(line)
		switch {
		case !ok:
			return "", errEnd()
		case q.editable && line == ":save":
			if err := q.save(); err != nil {
				q.say("%s", err)
			}
			return q.ask(question, def)
		case q.editable && line == ":back":
			if q.again = q.at - 1; q.again < 0 {
				q.say("these are the first questions")
				return q.ask(question, def)
			}
			return "", errAgain
		case q.editable && line == ":edit":
			if err := q.edit(); err != nil {
				return "", err
			}
			return q.ask(question, def)
		case line != "":
			return line, nil
		}
		return def, nil
	case <-q.o.Stop:
		q.say("")
		return "", errStopped()
	}
}

// until repeats a question until the answer is valid.
func (q *questions) until(question, def string, good func(string) error) error {
	for {
		word, err := q.ask(question, def)
		if err != nil {
			return err
		}
		if err = good(word); err == nil {
			return nil
		}
		q.say("%s", err)
		if hint := backends.HintOf(err); hint != "" {
			q.say("hint: %s", hint)
		}
	}
}

func (q *questions) run(ctx context.Context) error {
	before, cancel := backends.Stoppable(ctx, q.o.Stop) // of everything before the run
	defer cancel()
	simulated := q.o.Fabric.Simulated()
	if simulated {
		q.say("SIMULATED: this is the embedded lab")
	}
	if kept, when := q.o.Fabric.Draft(); kept != nil {
		yes, err := q.yesOr("Continue with the answers that were kept on "+when.Format("2006-01-02 15:04 MST"), "yes")
		if err != nil {
			return err
		}
		if yes {
			q.a, q.kept = kept, true
		}
	}
	q.say("For a read-only report, answer the first question with the word look. Nothing is written then.")
	inv, err := q.connect(before)
	if err != nil {
		return err
	}
	if !simulated && q.o.Fabric.Simulated() {
		q.say("SIMULATED: the system at this address is a lab")
	}
	if q.lookOnly {
		return q.look(before)
	}
	q.say("At any question, :save saves the answers, :edit opens them in your editor, and :back returns to the questions before.")
	q.inv, q.a = inv, entry.Proposed(q.o.Fabric, q.login, q.a, inv)
	var p *plan.Plan
	var found []checks.Finding
	agreed := false
	steps := []func(*backends.Inventory) error{q.hosts, q.mode, q.nics, q.network, q.vms, func(*backends.Inventory) (err error) {
		q.editable = false
		if p, found, err = q.preflight(before); err != nil {
			return q.otherwise(before, err)
		}
		q.editable = true
		agreed, err = q.consent(before, p)
		return err
	}}
	for q.at = 0; q.at < len(steps); q.at++ {
		q.editable = true
		err := steps[q.at](inv)
		if q.editable = false; errors.Is(err, errAgain) {
			q.at = min(q.at, q.again) - 1
			continue
		}
		if err != nil {
			return err
		}
		if q.at == len(steps)-1 {
			break
		}
		if err := q.o.Fabric.KeepDraft(q.a); err != nil {
			q.say("%s", err)
		}
	}
	if !agreed {
		return nil
	}
	return q.carryOut(ctx, p, found)
}

// pageNames are the pages of questions, in order.
var pageNames = []string{"hosts", "mode", "pnics", "settings", "vms"}

// otherwise asks what to do about an error before the plan: leave with it, read again, or change the answers of a page.
func (q *questions) otherwise(ctx context.Context, wrong error) error {
	if ctx.Err() != nil || backends.KindOf(wrong) == backends.KindInterrupted {
		return wrong
	}
	if _, refused := errors.AsType[*plan.Refused](wrong); !refused { // its reasons were printed
		q.say("%s", wrong)
		if hint := backends.HintOf(wrong); hint != "" {
			q.say("hint: %s", hint)
		}
	}
	q.editable = true
	word, err := q.ask("Next: leave, read to read again, or a page to change: "+strings.Join(pageNames, ", "), "leave")
	at := slices.Index(pageNames, word)
	switch {
	case backends.KindOf(err) == backends.KindInterrupted || errors.Is(err, errAgain):
		return err
	case err == nil && word == "read":
		q.again = q.at
		return errAgain
	case at >= 0:
		q.again = at
		return errAgain
	}
	return wrong
}

// preflight shows blockers, or returns the plan if there are none.
func (q *questions) preflight(ctx context.Context) (*plan.Plan, []checks.Finding, error) {
	q.say("reading hosts and guests")
	f := q.o.Fabric
	inv, err := f.Survey(ctx, q.a)
	if err != nil {
		return nil, nil, err
	}
	found := f.Preflight(ctx, q.a, inv)
	if err := plain.Findings(q.out, found); err != nil {
		return nil, nil, err
	}
	p, err := f.Plan(q.a, inv)
	q.loads, q.surveyed = f.Loads(q.a, inv), inv
	if refused, ok := errors.AsType[*plan.Refused](err); ok {
		var b strings.Builder
		entry.Refusals(&b, refused)
		q.page(strings.TrimSpace(b.String()))
	}
	if err != nil {
		return nil, nil, err
	}
	if n := checks.Count(found)[checks.Fail]; n > 0 {
		return nil, nil, backends.Refusedf("", "fix the problems named above and start again",
			"%s failed: nothing was changed", plain.Counted(n, "check"))
	}
	return p, found, nil
}

// consent shows the plan, saves the answers and asks; without changes it only asks whether to load the fabric.
func (q *questions) consent(ctx context.Context, p *plan.Plan) (bool, error) {
	err := plain.Changes(q.out, p)
	if err != nil {
		return false, err
	}
	if err = q.save(); err != nil {
		return false, err
	}
	q.outcome.Answers = q.a
	if p.Empty() {
		for _, l := range q.loads {
			q.say("afterwards the fabric is loaded: %s", plain.LoadLine(l))
		}
		return q.yesOr("There is nothing to change. Measuring loads the fabric. Measure now", "no")
	}
	if q.o.Fabric.Rehearsable(q.login) {
		if err := q.rehearse(ctx); err != nil {
			return false, err
		}
	}
	for _, l := range plain.CostLines(p, q.a, q.surveyed, q.loads, q.o.Fabric.Expected(q.a, p)) {
		q.say("cost: %s", l)
	}
	word, err := q.ask("Apply these changes? yes or no", "no")
	if err == nil && strings.ToLower(word) != "yes" {
		q.say("nothing was changed")
		return false, nil
	}
	return err == nil, err
}

// rehearse asks whether to rehearse the plan first. A failed rehearsal is reported and does not end the wizard.
func (q *questions) rehearse(ctx context.Context) error {
	yes, err := q.yesOr("Rehearse first", "no")
	if err != nil || !yes {
		return err
	}
	q.say("reading the site and rehearsing on a simulated copy: nothing is written")
	text, err := q.o.Fabric.Rehearse(ctx, q.a)
	switch {
	case ctx.Err() != nil:
		return errStopped()
	case err != nil:
		q.say("the rehearsal could not be made: %s", err)
	default:
		q.page(text)
	}
	return nil
}

func (q *questions) carryOut(ctx context.Context, p *plan.Plan, found []checks.Finding) error {
	f := q.o.Fabric
	var measured []perftest.Measurement
	_ = f.KeepDraft(nil) // the journal has the answers from now on
	q.outcome.Result, q.outcome.Err = f.Apply(ctx, q.a, p, q.o.Stop, nil, plain.Lines(q.out))
	if s := q.outcome.Result.Status; q.outcome.Err == nil && (s == engine.StatusDone || s == engine.StatusUnchanged) {
		measured, q.outcome.Err = f.Measure(ctx, q.a, q.o.Stop, func(t perftest.Progress) {
			switch {
			case t.Load != "":
				q.say("%s", plain.LoadRound(t))
			case t.Result != nil:
				q.say("measured %d of %d: %s %s: %s", t.Done, t.Total, t.Test, t.Pair.String(), t.Result.Verdict)
			}
		})
	}
	rep, err := f.Report(ctx, q.a, q.outcome.Result, found, measured)
	if err != nil {
		return err
	}
	q.outcome.Report = rep
	_ = render.Terminal(q.out, rep, theme.Plain())                            // the run counts, not the reader
	_ = plain.Printf(q.o.Out, "again: %s\n", f.ReplayCommand(q.outcome.Path)) // in one line, to be copied
	return nil
}
