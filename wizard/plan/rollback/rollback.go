// Package rollback plans the way back: from today's inventory to what a run's journal says was there before, with brackets
// of its own. What somebody else has changed since is left alone, and said.
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

// Options say what besides the priors is known of the run that is taken back.
type Options struct {
	Mode string
	// Brackets returns the state in which the run found each bracket's target before it first opened it ("poweredOff"),
	// by bracket id. Where it is missing the target is left as it is found now.
	Brackets map[string]backends.Value
	Held     []string // as in Options
	// Evacuated are the hosts that the run left in maintenance mode between two reboots.
	Evacuated []string
	// Canary powers one VM off first and alone; Apart are the groups of VMs, by name, that are never off together.
	Canary bool
	Apart  map[string][]string
	// Bystanders says what becomes of running VMs that are not Listed, on hosts that reboot; "": they are shut down.
	Bystanders answers.Bystanders
	Listed     []string
	// Observed is what Keepers observe today of what the run recorded, by the id of the change.
	Observed map[string]plan.Observation
	// OnConflict says what becomes of what somebody else has changed since; "": Stop. Decisions say it of single targets.
	OnConflict OnConflict
	Decisions  map[backends.Ref]OnConflict
}

// OnConflict says what a rollback does with settings that somebody else changed after the run.
type OnConflict string

// The values of OnConflict.
const (
	Stop    OnConflict = "stop"    // its target, and what rests on it, stays as it is; all others go on
	Keep    OnConflict = "keep"    // it stays as it is; all else of its target goes on
	Restore OnConflict = "restore" // it becomes what it was before the run
)

// decision is what becomes of a conflict on a target.
func (o Options) decision(t backends.Ref) OnConflict {
	if d, made := o.Decisions[t]; made {
		return d
	}
	return cmp.Or(o.OnConflict, Stop)
}

// Build works out the changes from today's inventory to the values that a run's journal says were there before. It
// has its own brackets. A value that is neither what was there before nor what the run left is a conflict: Options say what
// becomes of it. What stops its target stands in the plan's Conflicts, what is kept in Left, what cannot be taken back in
// Notes.
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

// undo collects the way back.
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
	u.plan.Conflicts = append(u.plan.Conflicts, plan.Refusal{Target: t, Why: fmt.Sprintf(format, args...), Remedy: remedy})
}

// open is a conflict that the operator can decide.
func (u *undo) open(t backends.Ref, remedy, format string, args ...any) {
	u.conflict(t, remedy, format, args...)
	u.plan.Conflicts[len(u.plan.Conflicts)-1].Kind = backends.KindConflict
}

// keep leaves something as somebody else has made it.
func (u *undo) keep(t backends.Ref, format string, args ...any) {
	u.plan.Left = append(u.plan.Left, plan.Refusal{Target: t, Why: fmt.Sprintf(format, args...)})
}

// look decides what one prior asks for today.
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
	if c.Kind == backends.KindModules && why == "" {
		prior = u.stillLoaded(c.Target.Name, now, prior)
	}
	switch {
	case c.Kind == backends.KindFirmware && !now.Known():
		u.unread(p, prior)
	case why != "":
		u.conflict(c.Target, "fix that, then roll back again", "%s", why)
	// What has no Keeper and reads as before is as before, also where nobody knows how an operation ended: either it is one
	// task or call, which makes all or nothing (ReconfigVM_Task, UpdatePassthruConfig, UpdateOptions and ConfigurePowerPolicy
	// of the vSphere Web Services API; one esxcli command for a VIB or for the parameters of a module), or the value holds
	// every part that is set one by one (version, uplinks, MTU and NIOC of a switch; each key of a card's firmware; the state
	// of a build or an image, which reads as partial until it is whole).
	case current.Same(c.Kind, now, prior):
	case p.Uncertain, current.Same(c.Kind, now, p.Found), current.Same(c.Kind, now, c.To), now.IsPartial():
		u.changes = append(u.changes, plan.Change{Setting: c.Setting, From: now, To: prior, Why: "as it was before the run"})
	case u.opts.decision(c.Target) == Keep:
		u.keep(c.Target, "%s stays %s, because somebody else changed it after the run; before the run it was %s", subject(c), now, prior)
	case u.opts.decision(c.Target) == Restore:
		u.changes = append(u.changes, plan.Change{Setting: c.Setting, From: now, To: prior, Why: "the value from before the run, although somebody else changed it since"})
	default:
		u.open(c.Target, fmt.Sprintf("before the run it was %s; %s", prior, choose),
			"%s is %s; the run left %s, so somebody has changed it since", subject(c), now, p.Found)
	}
}

const choose = "roll back again with --on-conflict keep or --on-conflict restore"

// finished returns Absent for what an attempt of ours before the run has left half done: nothing makes that again, and
// nobody wants it.
func finished(v backends.Value) backends.Value {
	if v.IsPartial() {
		return backends.Absent
	}
	return v
}

// unread takes back what no plan can read: the firmware of a card. What the run left is what the engine must find when the
// change is due, else somebody has changed it since; what a rollback has put back already is in the journal.
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

// stillLoaded returns the modules that were loaded before and are loaded now. Loaded modules do not outlive a boot, so fewer are
// no reason to load any, and nobody need have changed them. The driver of PVRDMA adapters counts only where the VM has one: before
// a second run of somebody else it was loaded for the adapter of the first.
func (u *undo) stillLoaded(vm string, now, prior backends.Value) backends.Value {
	is, was := []string{}, []string{}
	if now.Decode(&is) != nil || !prior.IsAbsent() && prior.Decode(&was) != nil {
		return prior
	}
	adapter := slices.ContainsFunc(u.inv.VM(vm).Adapters, func(a backends.Adapter) bool { return a.Type == "pvrdma" })
	return backends.ValueOf(slices.DeleteFunc(was, func(m string) bool {
		return !slices.Contains(is, m) || m == backends.PVRDMAModule && !adapter
	}))
}

func subject(c plan.Change) string {
	if c.Name != "" {
		return string(c.Kind) + " " + c.Name
	}
	return string(c.Kind)
}

// gone reports whether the target does not exist any more, so that there is nothing to take back.
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

// putBack tells that a guest whose VM is off, as the run found it, has its prior already: by the journal, where an attempt
// before put it back; modules by themselves, because they do not outlive a boot.
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

// keepVersion returns the prior spec of a switch with today's version.
func (u *undo) keepVersion(name string, prior backends.Value) backends.Value {
	var spec backends.SwitchSpec
	sw := u.inv.Switch(name)
	if sw == nil || prior.IsAbsent() || prior.Decode(&spec) != nil {
		return prior
	}
	spec.Version = sw.Version
	return backends.ValueOf(spec)
}

// silent says why a target cannot be read, "" when it can.
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

// now reads a setting's value, or says why it cannot be read.
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

// address reads the interface's address, the one that the run set where it is one of several.
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
	case isSet && (set.CIDR == backends.DHCP || !wasThere): // the address that DHCP has given is no drift
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
