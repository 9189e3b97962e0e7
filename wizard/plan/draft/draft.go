// Package draft holds an unfinished plan: the hosts and VMs that take part, the changes, brackets and notes so far, and the
// reasons against it. Recipes add to it one after the other; Finish orders the result.
package draft

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Draft collects changes, brackets, notes and reasons against.
type Draft struct {
	Answers   *answers.Answers
	Rails     []answers.Rail
	Inventory *backends.Inventory
	Options   plan.Options

	Hosts  []*Host
	ByHost map[string]*Host
	Oldest *backends.Host // by version
	VMs    []*VM
	ByVM   map[string]*VM

	Plan     plan.Plan
	Order    []string // bracket ids in the order of creation
	Brackets map[string]*plan.Bracket
	Refusals []plan.Refusal
	Usage    []string            // names that are ambiguous
	groups   []string            // port groups that the VMs need
	told     map[string][]string // note -> targets
	tales    []string            // keys of told, in order
}

// New returns an empty draft.
func New(a *answers.Answers, inv *backends.Inventory, opts plan.Options) *Draft {
	return &Draft{
		Answers: a, Inventory: inv, Options: opts, Brackets: map[string]*plan.Bracket{}, ByHost: map[string]*Host{}, ByVM: map[string]*VM{},
		told: map[string][]string{}, Rails: a.AllRails(), groups: a.PortGroups(),
	}
}

// Virtual reports whether guests get VFs of the RDMA pNIC.
func (d *Draft) Virtual() bool { return d.Answers.VFs() }

// WholeCard reports whether guests get the card itself, which is then no longer a pNIC and on no switch.
func (d *Draft) WholeCard() bool { return d.Answers.WholeCard() }

// Refuse records a reason that cannot be overridden, once: several hosts of a cluster may give the same one for the cluster.
func (d *Draft) Refuse(t backends.Ref, check, remedy, format string, args ...any) {
	if r := (plan.Refusal{Target: t, Check: check, Why: fmt.Sprintf(format, args...), Remedy: remedy}); !slices.Contains(d.Refusals, r) {
		d.Refusals = append(d.Refusals, r)
	}
}

// Object records a reason that the operator may override by the id of its check.
func (d *Draft) Object(t backends.Ref, check, remedy, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	if check != "" && slices.Contains(d.Options.Skip, check) {
		d.Note("%s: %s (%s skipped)", t.Name, why, check)
		return
	}
	d.Refusals = append(d.Refusals, plan.Refusal{Target: t, Check: check, Why: why, Remedy: remedy})
}

// Note adds a sentence for the operator, once.
func (d *Draft) Note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(d.Plan.Notes, s) {
		d.Plan.Notes = append(d.Plan.Notes, s)
	}
}

// NoteEach adds a sentence that may apply to many targets: they are combined.
func (d *Draft) NoteEach(name, format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if _, there := d.told[s]; !there {
		d.tales = append(d.tales, s)
	}
	if !slices.Contains(d.told[s], name) {
		d.told[s] = append(d.told[s], name)
	}
}

// tell converts what NoteEach collected to notes.
func (d *Draft) tell() {
	const most = 5
	for _, s := range d.tales {
		names := d.told[s]
		more := ""
		if len(names) > most {
			more = fmt.Sprintf(" and %d more", len(names)-most)
			names = names[:most]
		}
		d.Note("%s%s: %s", strings.Join(names, ", "), more, s)
	}
}

// Add adds a change unless it changes nothing.
func (d *Draft) Add(c plan.Change) bool {
	if c.From == c.To && c.From.Known() {
		return false
	}
	d.Plan.Changes = append(d.Plan.Changes, c)
	return true
}

// Finish orders the collected changes, or returns why there is no plan.
func (d *Draft) Finish() (*plan.Plan, error) {
	if len(d.Usage) > 0 {
		return nil, backends.Errorf(backends.KindUsage, "", "write the inventory path in the answers", "%s", strings.Join(d.Usage, "; "))
	}
	if len(d.Refusals) > 0 {
		return nil, &plan.Refused{Refusals: d.Refusals}
	}
	d.tell()
	for _, id := range d.Order {
		d.Plan.Brackets = append(d.Plan.Brackets, *d.Brackets[id])
	}
	settle := d.Plan.Settle
	if d.Options.Only != nil {
		settle = func() error { return d.Plan.Narrow(d.Options.Only) }
	}
	if err := settle(); err != nil {
		return nil, err
	}
	return &d.Plan, nil
}
