// Package draft holds an unfinished plan: the hosts and VMs that take part, the changes, brackets and notes so far, and the
// reasons to refuse it. Recipes add to it one after the other; Finish orders the result.
package draft

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
)

// A Draft collects changes, brackets, notes and reasons to refuse the plan.
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
	Usage    []string         // names that are ambiguous
	groups   []string         // port groups that the VMs need
	told     map[string]*tale // by format and arguments
	tales    []*tale
}

// New returns an empty draft.
func New(a *answers.Answers, inv *backends.Inventory, opts plan.Options) *Draft {
	return &Draft{
		Answers: a, Inventory: inv, Options: opts, Brackets: map[string]*plan.Bracket{}, ByHost: map[string]*Host{}, ByVM: map[string]*VM{},
		told: map[string]*tale{}, Rails: a.AllRails(), groups: a.PortGroups(),
	}
}

// Virtual reports whether guests get VFs of the RDMA pNIC.
func (d *Draft) Virtual() bool { return d.Answers.VFs() }

// WholeCard reports whether guests get the card itself, which is then no longer a pNIC and on no switch.
func (d *Draft) WholeCard() bool { return d.Answers.WholeCard() }

// Now returns the value of a setting in the inventory; see current.Value.
func (d *Draft) Now(s backends.Setting) backends.Value { return current.Value(d.Inventory, s) }

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

// A tale is a note that may apply to many targets, as it reads for one of them and for several.
type tale struct {
	one, many string
	names     []string
}

// numbered finds the words of a note that depend on the number of its targets: [is|are].
var numbered = regexp.MustCompile(`\[([^][|]+)\|([^][|]+)\]`)

// NoteEach adds a sentence that may apply to many targets: they are combined. In the format, [is|are] stands for one of the two,
// according to the number of targets.
func (d *Draft) NoteEach(name, format string, args ...any) {
	key := fmt.Sprintf(format, args...)
	t := d.told[key]
	if t == nil {
		t = &tale{one: fmt.Sprintf(numbered.ReplaceAllString(format, "$1"), args...), many: fmt.Sprintf(numbered.ReplaceAllString(format, "$2"),
			args...)}
		d.told[key], d.tales = t, append(d.tales, t)
	}
	if !slices.Contains(t.names, name) {
		t.names = append(t.names, name)
	}
}

func (d *Draft) tell() {
	const most = 5
	for _, t := range d.tales {
		names, text, more := t.names, t.many, ""
		if len(names) == 1 {
			text = t.one
		}
		if len(names) > most {
			more = fmt.Sprintf(" and %d more", len(names)-most)
			names = names[:most]
		}
		d.Note("%s%s: %s", strings.Join(names, ", "), more, text)
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
		return nil, backends.Usagef("", "write the inventory path in the answers", "%s", strings.Join(d.Usage, "; "))
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
