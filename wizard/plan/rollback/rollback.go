// Package rollback plans how to undo a run: from the current inventory to the values that the run's journal recorded before each
// change, with brackets of its own. Settings that someone else has changed since are reported and not changed.
package rollback

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Options are the facts about the run that is rolled back besides the priors, and the operator's choices.
type Options struct {
	Mode string
	// Brackets has the state of each bracket's target before the run first opened it ("poweredOff"), by bracket id. If it is
	// missing, the target is left in its current state.
	Brackets map[string]backends.Value
	Held     []string // as in plan.Options
	// Evacuated are the hosts that the run left in maintenance mode between two reboots.
	Evacuated []string
	// Canary makes one VM go first, on its own; Apart are the groups of VMs, by name, that are never off together.
	Canary bool
	Apart  map[string][]string
	// Bystanders says how to treat running VMs that are not Listed, on hosts that reboot; "": they are shut down.
	Bystanders answers.Bystanders
	Listed     []string
	// Observed is the current state of what the run recorded, by the id of the change.
	Observed map[string]plan.Observation
	// OnConflict says how to handle values that someone else has changed since; "": Stop. Decisions override it for single targets.
	OnConflict OnConflict
	Decisions  map[backends.Ref]OnConflict
	// Later returns the runs of this program that changed something after the run, the latest first; it is called only to explain
	// conflicts. nil: there are none.
	Later func() []LaterRun
}

// OnConflict is what a rollback does with settings that someone else changed after the run.
type OnConflict string

// The values of OnConflict.
const (
	Stop    OnConflict = "stop"    // its target, and what depends on it, stays unchanged; all others are rolled back
	Keep    OnConflict = "keep"    // the setting stays unchanged; the rest of its target is rolled back
	Restore OnConflict = "restore" // the setting is restored to its value before the run
)

func (o Options) decision(t backends.Ref) OnConflict {
	if d, made := o.Decisions[t]; made {
		return d
	}
	return cmp.Or(o.OnConflict, Stop)
}

// Build computes the changes from the current inventory to the values that a run's journal recorded before each change. The plan
// has its own brackets. A value that is neither the previous one nor the one that the run left is a conflict, which Options
// handle. Targets that are stopped are in the plan's Conflicts, what is kept is in Left, what cannot be undone is in Notes.
func Build(priors []plan.Prior, inv *backends.Inventory, opts Options) (*plan.Plan, error) {
	u := &undo{inv: inv, opts: opts, brackets: map[string]*plan.Bracket{}, stopped: map[backends.Ref]bool{}}
	u.plan.Mode = opts.Mode
	for _, p := range priors {
		u.look(p)
	}
	u.rest()
	u.arrange()
	if err := u.plan.Settle(); err != nil {
		return nil, err
	}
	return &u.plan, nil
}

// undo builds the rollback plan.
type undo struct {
	inv      *backends.Inventory
	opts     Options
	plan     plan.Plan
	changes  []plan.Change
	brackets map[string]*plan.Bracket
	order    []string
	stopped  map[backends.Ref]bool
}

func (u *undo) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(u.plan.Notes, s) {
		u.plan.Notes = append(u.plan.Notes, s)
	}
}

func (u *undo) conflict(t backends.Ref, remedy, format string, args ...any) {
	u.stopped[t] = true
	c := plan.Refusal{Target: t, Why: fmt.Sprintf(format, args...), Remedy: remedy}
	u.plan.Conflicts = append(slices.DeleteFunc(u.plan.Conflicts, func(o plan.Refusal) bool { return o == c }), c)
}

func (u *undo) open(t backends.Ref, remedy, format string, args ...any) {
	u.conflict(t, remedy, format, args...)
	u.plan.Conflicts[len(u.plan.Conflicts)-1].Kind = backends.KindConflict
}

// keep leaves something as someone else has changed it.
func (u *undo) keep(t backends.Ref, format string, args ...any) {
	u.plan.Left = append(u.plan.Left, plan.Refusal{Target: t, Why: fmt.Sprintf(format, args...)})
}

func (u *undo) look(p plan.Prior) {
	c := p.Change
	if c.State || !p.Prior.Known() || u.gone(c) || u.putBack(p) {
		return
	}
	if v := u.inv.VM(c.Target.Name); c.Kind == backends.KindNICName && v != nil && v.Hardware >= sizing.HardwareSlots {
		u.note("%s: %s stays: the VM keeps its hardware version, with which the guest would rename the interface", c.Target.Name, plan.Title(c))
		return
	}
	if p.Kept != nil {
		u.recorded(p)
		return
	}
	prior := finished(p.Prior)
	if c.Irreversible != "" {
		if c.Kind != backends.KindSwitch {
			u.note("%s: %s stays: %s", c.Target.Name, plan.Title(c), c.Irreversible)
			return
		}
		prior = u.keepVersion(c.Target.Name, prior)
		u.note("%s keeps its version: %s", c.Target.Name, c.Irreversible)
	}
	now, why := u.now(p)
	found := p.Found
	if c.Kind == backends.KindModules && why == "" {
		prior = u.stillLoaded(c.Target.Name, now, prior)
		found = among(now, found, prior)
	}
	switch {
	case c.Kind == backends.KindFirmware && !now.Known():
		u.unread(p, prior)
	case why != "":
		u.conflict(c.Target, "fix that, then roll back again", "%s", why)
	// A setting without a Keeper that reads as before is as before, even if the result of an operation is unknown: either it is
	// one task or call, which is atomic (ReconfigVM_Task, UpdatePassthruConfig, UpdateOptions and ConfigurePowerPolicy of the
	// vSphere Web Services API; one esxcli command for a VIB or for the parameters of a module), or the value contains every part
	// that is set one by one (version, uplinks, MTU and NIOC of a switch; each key of a card's firmware; the state of a build or
	// an image, which reads as partial until it is complete).
	case current.Same(c.Kind, now, prior):
	case p.Uncertain, current.Same(c.Kind, now, found), current.Same(c.Kind, now, c.To), now.IsPartial():
		u.changes = append(u.changes, plan.Change{Setting: c.Setting, From: now, To: prior, Why: "as it was before the run"})
	default:
		u.changedSince(p, now, prior)
	}
}

// changedSince handles a value that somebody else or a later run has changed.
func (u *undo) changedSince(p plan.Prior, now, prior backends.Value) {
	c := p.Change
	who := []string{u.who(c.Setting, now)}
	switch u.opts.decision(c.Target) {
	case Keep:
		u.keep(c.Target, "%s stays %s, because %s changed it after the run; before the run it was %s", subject(c), now, named(who), prior)
	case Restore:
		u.changes = append(u.changes, plan.Change{Setting: c.Setting, From: now, To: prior,
			Why: "the value from before the run, although " + named(who) + " changed it since"})
	default:
		u.open(c.Target, fmt.Sprintf("before the run it was %s; %s", prior, remedy(who)),
			"%s is %s; the run left %s, so %s has changed it since", subject(c), now, p.Found, named(who))
	}
}

const choose = "roll back again with --on-conflict keep or --on-conflict restore"

// finished returns Absent for a setting that an earlier attempt has left half done: it is not restored.
func finished(v backends.Value) backends.Value {
	if v.IsPartial() {
		return backends.Absent
	}
	return v
}

// unread plans changes of values that cannot be read at planning time: the firmware of a card. The engine must find the value that
// the run left when the change is due, otherwise someone else has changed it since; values that a rollback has restored already are
// in the journal.
func (u *undo) unread(p plan.Prior, prior backends.Value) {
	from := p.Found
	if p.Uncertain || u.opts.decision(p.Change.Target) == Restore {
		from = backends.Unknown(plan.Bracket{Kind: backends.BracketSSH, Target: p.Change.Target}.ID())
	}
	if !p.Uncertain && p.Found == prior {
		return
	}
	u.changes = append(u.changes, plan.Change{Setting: p.Change.Setting, From: from, To: prior, Why: "as it was before the run"})
}

// stillLoaded returns the modules that were loaded before and are loaded now. Modules do not stay loaded across a boot, so missing
// ones are not loaded again and are not a conflict. The driver of PVRDMA adapters counts only if the VM has one: before a second
// run it was loaded for the adapter of the first. What is built into the kernel stays: a kernel that was updated since may have
// more of it.
func (u *undo) stillLoaded(vm string, now, prior backends.Value) backends.Value {
	is, was := []string{}, []string{}
	if now.Decode(&is) != nil || !prior.IsAbsent() && prior.Decode(&was) != nil {
		return prior
	}
	adapter := slices.ContainsFunc(u.inv.VM(vm).Adapters, func(a backends.Adapter) bool { return a.Type == "pvrdma" })
	fixed := u.inv.Guest(vm).BuiltIn
	return backends.ValueOf(current.Held(is, func(m string) bool {
		return slices.Contains(fixed, m) || slices.Contains(was, m) && (m != backends.PVRDMAModule || adapter)
	}))
}

// among returns those modules of now that the run left or found. A missing module is no conflict, whoever unloaded it: after another
// boot, for example, the driver of an adapter that was removed is not loaded. A module that neither has was loaded by somebody else.
func among(now, left, prior backends.Value) backends.Value {
	is, ours, before := []string{}, []string{}, []string{}
	if now.Decode(&is) != nil || !left.Known() || left.IsAbsent() || left.Decode(&ours) != nil ||
		prior.Known() && !prior.IsAbsent() && prior.Decode(&before) != nil {
		return left
	}
	return backends.ValueOf(current.Held(is, func(m string) bool { return slices.Contains(ours, m) || slices.Contains(before, m) }))
}

func subject(c plan.Change) string {
	if c.Name != "" {
		return string(c.Kind) + " " + c.Name
	}
	return string(c.Kind)
}

// gone reports whether the target no longer exists, so that there is nothing to undo.
func (u *undo) gone(c plan.Change) bool {
	missing := false
	switch c.Target.Type {
	case backends.TypeHost:
		missing = u.inv.Host(c.Target.Name) == nil
	case backends.TypeVM, backends.TypeGuest:
		missing = u.inv.VM(c.Target.Name) == nil
	}
	if missing {
		u.note("%s is no longer in the inventory, so there is nothing to roll back", c.Target.Name)
	}
	return missing
}

// putBack reports whether a guest whose VM is off, as the run found it, has its prior value already: according to the journal, if
// an earlier attempt restored it; modules in any case, because they do not stay loaded across a boot.
func (u *undo) putBack(p plan.Prior) bool {
	c := p.Change
	if c.Target.Type != backends.TypeGuest || u.inv.VM(c.Target.Name).Power == "poweredOn" {
		return false
	}
	if p.Kept != nil {
		return p.PutBack()
	}
	return c.Kind == backends.KindModules || !p.Uncertain && current.Same(c.Kind, p.Found, p.Prior)
}

// keepVersion returns the prior spec of a switch with the current version.
func (u *undo) keepVersion(name string, prior backends.Value) backends.Value {
	var spec backends.SwitchSpec
	sw := u.inv.Switch(name)
	if sw == nil || prior.IsAbsent() || prior.Decode(&spec) != nil {
		return prior
	}
	spec.Version = sw.Version
	return backends.ValueOf(spec)
}

func (u *undo) silent(t backends.Ref) string {
	switch t.Type {
	case backends.TypeHost:
		if h := u.inv.Host(t.Name); h.State != "connected" {
			return "vCenter is not connected to it (" + h.State + ")"
		}
	case backends.TypeGuest:
		g := u.inv.Guest(t.Name)
		switch v := u.inv.VM(t.Name); {
		case v.Power != "poweredOn":
			return "its VM is off, so its guest cannot be restored"
		case g == nil:
			return "its guest was not read"
		case g.Error != "":
			return "its guest cannot be read: " + g.Error
		}
	}
	return ""
}

// now returns a setting's current value, or why it cannot be read.
func (u *undo) now(p plan.Prior) (backends.Value, string) {
	c := p.Change
	if why := u.silent(c.Target); why != "" {
		return backends.Absent, why
	}
	if c.Kind == backends.KindModules || c.Kind == backends.KindPackages {
		return current.Members(u.inv.Guest(c.Target.Name), c.Kind, names(c.Kind, p.Found, c.To, p.Prior)), ""
	}
	now := current.Value(u.inv, c.Setting)
	if c.Kind == backends.KindAddress {
		now = u.address(c, p)
	}
	if !now.Known() && c.Kind != backends.KindFirmware {
		return now, subject(c) + " could not be read"
	}
	return now, ""
}

// address returns the interface's address, the one that the run set if it is one of several.
func (u *undo) address(c plan.Change, p plan.Prior) backends.Value {
	v, g := u.inv.VM(c.Target.Name), u.inv.Guest(c.Target.Name)
	mac := current.RDMAMAC(v, g, c.Name)
	if mac == "" {
		return backends.Absent
	}
	var found, set backends.AddressSpec
	wasThere, isSet := p.Found.Decode(&found) == nil, c.To.Decode(&set) == nil
	var want backends.AddressSpec
	switch {
	case isSet && (set.CIDR == backends.DHCP || !wasThere): // a different address from DHCP is not a change by someone else
		want = set
	case wasThere:
		want = found
	}
	return g.Interface(mac).Address(want)
}

// names returns the packages or modules that a change was about.
func names(kind backends.Kind, values ...backends.Value) []string {
	var all []string
	for _, v := range values {
		var list []string
		var spec backends.PackageSpec
		switch {
		case !v.Known() || v.IsAbsent():
		case kind == backends.KindModules && v.Decode(&list) == nil:
		case kind == backends.KindPackages && v.Decode(&spec) == nil:
			list = spec.Installed
		}
		for _, n := range list {
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}
