package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A draft collects changes, brackets, notes and reasons against.
type draft struct {
	a    *answers.Answers
	inv  *backends.Inventory
	opts Options

	hosts  []*hostPart
	byHost map[string]*hostPart
	oldest *backends.Host
	vms    []*vmPart
	byVM   map[string]*vmPart

	plan     Plan
	order    []string // bracket ids in the order of their making
	brackets map[string]*Bracket
	refusals []Refusal
	usage    []string
	told     map[string][]string // note -> targets
	tales    []string            // keys of told, in order
}

// newDraft gives a draft that nothing is planned in yet.
func newDraft(a *answers.Answers, inv *backends.Inventory, opts Options) *draft {
	return &draft{
		a: a, inv: inv, opts: opts, brackets: map[string]*Bracket{}, byHost: map[string]*hostPart{}, byVM: map[string]*vmPart{},
		told: map[string][]string{},
	}
}

// virtual tells whether guests get VFs of the RDMA pNIC. Where they get the card itself it is no pNIC and
// on no switch any more.
func (d *draft) virtual() bool { return d.a.VFs() }

// whole tells whether guests get the card itself.
func (d *draft) whole() bool { return d.a.WholeCard() }

// refuse notes a reason that no plan can go round.
func (d *draft) refuse(t backends.Ref, check, remedy, format string, args ...any) {
	d.refusals = append(d.refusals, Refusal{Target: t, Check: check, Why: fmt.Sprintf(format, args...), Remedy: remedy})
}

// object notes a reason that the operator may override by the id of its check.
func (d *draft) object(t backends.Ref, check, remedy, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	if check != "" && slices.Contains(d.opts.Skip, check) {
		d.note("%s: %s (%s skipped)", t.Name, why, check)
		return
	}
	d.refusals = append(d.refusals, Refusal{Target: t, Check: check, Why: why, Remedy: remedy})
}

// note adds a sentence for the operator, each once.
func (d *draft) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(d.plan.Notes, s) {
		d.plan.Notes = append(d.plan.Notes, s)
	}
}

// each adds a sentence that may hold for many targets: they are told together.
func (d *draft) each(name, format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if _, there := d.told[s]; !there {
		d.tales = append(d.tales, s)
	}
	if !slices.Contains(d.told[s], name) {
		d.told[s] = append(d.told[s], name)
	}
}

// tell turns what each collected into notes.
func (d *draft) tell() {
	const most = 5
	for _, s := range d.tales {
		names := d.told[s]
		more := ""
		if len(names) > most {
			more = fmt.Sprintf(" and %d more", len(names)-most)
			names = names[:most]
		}
		d.note("%s%s: %s", strings.Join(names, ", "), more, s)
	}
}

// add plans a change unless it is one in name only.
func (d *draft) add(c Change) bool {
	if c.From == c.To && c.From.Known() {
		return false
	}
	d.plan.Changes = append(d.plan.Changes, c)
	return true
}

// finish orders what was collected, or says why there is no plan.
func (d *draft) finish() (*Plan, error) {
	if len(d.usage) > 0 {
		return nil, backends.Errorf(backends.KindUsage, "", "write the inventory path in the answers", "%s", strings.Join(d.usage, "; "))
	}
	if len(d.refusals) > 0 {
		return nil, &Refused{Refusals: d.refusals}
	}
	d.tell()
	for _, id := range d.order {
		d.plan.Brackets = append(d.plan.Brackets, *d.brackets[id])
	}
	settle := d.plan.settle
	if d.opts.Only != nil {
		settle = func() error { return d.plan.Narrow(d.opts.Only) }
	}
	if err := settle(); err != nil {
		return nil, err
	}
	return &d.plan, nil
}
