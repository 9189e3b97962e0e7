package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Options narrow or force what answers alone would give.
type Options struct {
	Skip     []string // check ids whose refusals the operator overrides, where a plan is possible without
	Limit    []string // host names: only these, and the VMs on them
	ForceNIC []string // HOST/vmnicN: this pNIC, even where it carries traffic
	Only     []string // ids of changes: these and no others; nil: all
	// Dockerfile gives the file that an image for PVRDMA's containers is built by, from the base of the answers.
	Dockerfile func(base string) (string, error)
	// Ourselves are the addresses of the machine that plans: a host that runs it does not reboot.
	Ourselves []string
	// Held are the VMs that an attempt before has left off and this one starts again, not before their hosts are back.
	Held []string
}

// Build works out the changes between an inventory and the answers. The error is a *Refused when the inventory does
// not allow what was asked for (every reason at once), and of kind usage when a VM's name is ambiguous.
func Build(a *answers.Answers, inv *backends.Inventory, opts Options) (*Plan, error) {
	b := newBuilder(a, inv, opts)
	b.plan.Mode = string(a.Mode)
	switch a.Mode {
	case answers.PVRDMA:
		b.recipe(b.pvrdma)
	case answers.SRIOV:
		b.recipe(b.sriov)
	case answers.GPUDirect:
		b.recipe(b.gpudirect)
	default:
		return nil, backends.Errorf(backends.KindUsage, "", "plan with mode: pvrdma, sriov or gpudirect", "there is no mode %q", a.Mode)
	}
	return b.finish()
}

func newBuilder(a *answers.Answers, inv *backends.Inventory, opts Options) *builder {
	return &builder{
		a: a, inv: inv, opts: opts, brackets: map[string]*Bracket{}, byHost: map[string]*hostPart{}, byVM: map[string]*vmPart{},
		told: map[string][]string{},
	}
}

// virtual tells whether guests get VFs of the RDMA pNIC; whole, whether they get the card itself, which is then no pNIC and
// on no switch any more.
func (b *builder) virtual() bool { return b.a.VFs() }

func (b *builder) whole() bool { return b.a.WholeCard() }

// recipe plans what every mode does: the switch with the RDMA pNIC of each host (or the card that a VM has whole), an
// adapter in each VM, the guests' side, and what that means for reboots and power. hosts plans what only this mode does on
// hosts.
func (b *builder) recipe(hosts func()) {
	b.selectHosts()
	b.selectVMs()
	if b.whole() {
		b.cards()
	} else {
		b.fabric()
	}
	hosts()
	for _, v := range b.vms {
		b.vm(v)
	}
	b.memoryFits()
	b.cpuFits()
	for _, v := range b.vms {
		b.guestOf(v)
	}
	b.waves()
	b.wait()
	b.costs()
}

// builder collects changes, brackets, notes and reasons against.
type builder struct {
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

// hostPart is a host that takes part, and its RDMA pNIC.
type hostPart struct {
	*backends.Host
	nic     *backends.NIC // nil when none could be chosen
	shell   string        // id of the bracket that has SSH open, "" when there is none
	reboots []string      // ids of its reboots, in their order
	ready   []string      // ids that its VMs wait for before they get a VF or a device
}

// vmPart is a VM that takes part.
type vmPart struct {
	*backends.VM
	asked string // its name in the answers
	nets  []answers.Adapter
	guest *backends.Guest     // nil: nobody asked it
	gpus  []*backends.GPU     // that it shall have whole
	card  *backends.PCIDevice // the RDMA card that it shall have whole, nil where it gets a VF
}

func (v *vmPart) on() bool { return v.Power == "poweredOn" }

// refuse notes a reason that no plan can go round.
func (b *builder) refuse(t backends.Ref, check, remedy, format string, args ...any) {
	b.refusals = append(b.refusals, Refusal{Target: t, Check: check, Why: fmt.Sprintf(format, args...), Remedy: remedy})
}

// object notes a reason that the operator may override by the id of its check.
func (b *builder) object(t backends.Ref, check, remedy, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	if check != "" && slices.Contains(b.opts.Skip, check) {
		b.note("%s: %s (%s skipped)", t.Name, why, check)
		return
	}
	b.refusals = append(b.refusals, Refusal{Target: t, Check: check, Why: why, Remedy: remedy})
}

// note adds a sentence for the operator, each once.
func (b *builder) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(b.plan.Notes, s) {
		b.plan.Notes = append(b.plan.Notes, s)
	}
}

// each adds a sentence that may hold for many targets: they are told together.
func (b *builder) each(name, format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if _, there := b.told[s]; !there {
		b.tales = append(b.tales, s)
	}
	if !slices.Contains(b.told[s], name) {
		b.told[s] = append(b.told[s], name)
	}
}

// tell turns what each collected into notes.
func (b *builder) tell() {
	const most = 5
	for _, s := range b.tales {
		names := b.told[s]
		more := ""
		if len(names) > most {
			more = fmt.Sprintf(" and %d more", len(names)-most)
			names = names[:most]
		}
		b.note("%s%s: %s", strings.Join(names, ", "), more, s)
	}
}

// add plans a change unless it is one in name only.
func (b *builder) add(c Change) bool {
	if c.From == c.To && c.From.Known() {
		return false
	}
	b.plan.Changes = append(b.plan.Changes, c)
	return true
}

// power asks for the VM's power cycle and gives its id.
func (b *builder) power(v *backends.VM, why string) string {
	br := Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(v.Name), Why: why, Leave: backends.ValueOf("poweredOn")}
	if v.Power == "poweredOn" {
		br.Effect = VMPowerCycle
	}
	id := br.ID()
	if _, there := b.brackets[id]; !there {
		b.brackets[id] = &br
		b.order = append(b.order, id)
	}
	return id
}

func (b *builder) powered(v *backends.VM) (string, bool) {
	id := Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(v.Name)}.ID()
	_, there := b.brackets[id]
	return id, there
}

// finish orders what was collected, or says why there is no plan.
func (b *builder) finish() (*Plan, error) {
	if len(b.usage) > 0 {
		return nil, backends.Errorf(backends.KindUsage, "", "write the inventory path in the answers", "%s", strings.Join(b.usage, "; "))
	}
	if len(b.refusals) > 0 {
		return nil, &Refused{Refusals: b.refusals}
	}
	b.tell()
	for _, id := range b.order {
		b.plan.Brackets = append(b.plan.Brackets, *b.brackets[id])
	}
	if b.opts.Only != nil {
		b.plan.narrow(b.opts.Only)
	}
	if err := b.plan.settle(); err != nil {
		return nil, err
	}
	return &b.plan, nil
}

// Narrow leaves out what is not named, as Options.Only does.
func (p *Plan) Narrow(only []string) error {
	p.narrow(only)
	return p.settle()
}

// narrow leaves the named changes and the brackets that they need: those they are made in, and those that bring up by
// themselves (a VM that is off) what a change waits for. Notes speak of the whole and go; what a change costs stands by it.
func (p *Plan) narrow(only []string) {
	p.Notes = nil
	needed, body := map[string]bool{}, map[string]bool{}
	for _, c := range p.Changes {
		for _, id := range c.Within {
			body[id] = true
		}
	}
	p.Changes = slices.DeleteFunc(p.Changes, func(c Change) bool { return !slices.Contains(only, c.ID()) })
	for _, c := range p.Changes {
		for _, id := range c.Within {
			needed[id] = true
		}
		for _, id := range c.After {
			needed[id] = needed[id] || !body[id]
		}
	}
	p.Brackets = slices.DeleteFunc(p.Brackets, func(br Bracket) bool { return !needed[br.ID()] })
}

// settle drops names of what is not in the plan from every After, puts changes into an order in which they could be
// made one by one, and counts the stages.
func (p *Plan) settle() error {
	known := map[string]bool{}
	for _, c := range p.Changes {
		known[c.ID()] = true
	}
	for _, br := range p.Brackets {
		known[br.ID()], known[OpenID(br.ID())] = true, true
	}
	keep := func(ids []string) []string {
		var out []string
		seen := make(map[string]bool, len(ids))
		for _, id := range ids {
			if known[id] && !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
		return out
	}
	for i := range p.Changes {
		p.Changes[i].After, p.Changes[i].Within = keep(p.Changes[i].After), keep(p.Changes[i].Within)
	}
	for i := range p.Brackets {
		p.Brackets[i].After, p.Brackets[i].Around = keep(p.Brackets[i].After), keep(p.Brackets[i].Around)
	}
	g, err := p.Graph()
	if err != nil {
		return err
	}
	at := map[string]int{}
	for i, id := range g.Order {
		at[id] = i
	}
	slices.SortStableFunc(p.Changes, func(x, y Change) int { return at[x.ID()] - at[y.ID()] })
	p.Stages = 0
	for _, c := range p.Changes {
		if !c.From.Known() || !c.To.Known() {
			p.Stages = 1
		}
	}
	return nil
}
