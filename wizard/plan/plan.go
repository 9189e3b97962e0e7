// Package plan defines a plan: an ordered graph of changes with the brackets around them, its texts for display, and the
// operator's consent. It is plain data; package recipe makes a plan from answers and inventory, package rollback from a journal,
// and neither does I/O.
package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Plan is the ordered graph of changes between an inventory and the answers. Changes are in an order in which they could be
// made one by one.
type Plan struct {
	Mode     string    `json:"mode"`
	Changes  []Change  `json:"changes"`
	Brackets []Bracket `json:"brackets"`
	// Notes are sentences that the operator should read before consenting: costs, what a rollback keeps, errors in a guide.
	Notes []string `json:"notes,omitempty"`
	// Whole are those of them that hold only for all changes together: how many VMs are off, which host is first.
	Whole []string `json:"-"`
	// Conflicts are targets of a rollback that are not changed, because someone else has changed them since.
	Conflicts []Refusal `json:"conflicts,omitempty"`
	// Left names the targets of a rollback that keep someone else's change, because the operator decided so.
	Left []Refusal `json:"left,omitempty"`
	// Stages counts how often the engine has to read and plan again before everything is known (0: everything is known now).
	Stages int `json:"stages,omitempty"`
}

// Hash identifies the plan's content: changes and brackets, not the notes. Saving and reading a plan does not change its hash.
func (p Plan) Hash() string {
	b, err := json.Marshal(struct {
		Mode     string
		Changes  []Change
		Brackets []Bracket
	}{p.Mode, append([]Change(nil), p.Changes...), append([]Bracket(nil), p.Brackets...)})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Changes) == 0 }

// Change returns a change by id; nil if there is none.
func (p *Plan) Change(id string) *Change {
	for i := range p.Changes {
		if p.Changes[i].ID() == id {
			return &p.Changes[i]
		}
	}
	return nil
}

// A Ceiling is what the operator consents to: anything beyond it needs another consent.
type Ceiling struct {
	Changes     map[string]bool `json:"changes"` // ids
	HostReboots int             `json:"host_reboots"`
	PowerCycles int             `json:"power_cycles"`
}

// Ceiling returns what the plan may do.
func (p Plan) Ceiling() Ceiling {
	c := Ceiling{Changes: map[string]bool{}}
	for _, ch := range p.Changes {
		c.Changes[ch.ID()] = true
	}
	for _, b := range p.Brackets {
		switch b.Kind {
		case backends.BracketReboot:
			c.HostReboots++
		case backends.BracketVMPower:
			c.PowerCycles++
		}
	}
	return c
}

// With returns a ceiling that covers both.
func (c Ceiling) With(more Ceiling) Ceiling {
	if c.Changes == nil && more.Changes == nil {
		return c
	}
	both := Ceiling{
		Changes:     map[string]bool{},
		HostReboots: max(c.HostReboots, more.HostReboots), PowerCycles: max(c.PowerCycles, more.PowerCycles),
	}
	maps.Copy(both.Changes, c.Changes)
	maps.Copy(both.Changes, more.Changes)
	return both
}

// Exceeds returns the first thing in p that the ceiling does not cover, "" if everything is covered.
func (c Ceiling) Exceeds(p Plan) string {
	for _, ch := range p.Changes {
		if !c.Changes[ch.ID()] && !(ch.Kind == backends.KindRestart && c.powersOff(ch.Target.Name)) {
			return ch.ID()
		}
	}
	n := p.Ceiling()
	if n.HostReboots > c.HostReboots {
		return fmt.Sprintf("%d host reboots instead of %d", n.HostReboots, c.HostReboots)
	}
	if n.PowerCycles > c.PowerCycles {
		return fmt.Sprintf("%d VM power cycles instead of %d", n.PowerCycles, c.PowerCycles)
	}
	return ""
}

// powersOff reports whether the ceiling covers a change of a VM, for which the VM is powered off: its guest may be restarted too, if a
// resume finds that it is the first one now.
func (c Ceiling) powersOff(vm string) bool {
	for id := range c.Changes {
		if strings.HasPrefix(id, backends.VMRef(vm).String()+"/") {
			return true
		}
	}
	return false
}

// A Refusal is one reason why no plan is possible for a target: what, where, why, and the remedy.
type Refusal struct {
	Target backends.Ref `json:"target"`
	Check  string       `json:"check,omitempty"` // id of the catalogue row for the same fact, "" if there is none
	Why    string       `json:"why"`
	Remedy string       `json:"remedy"`
	// Kind is that of an underlying error (unreachable, auth), KindConflict if the operator of a rollback can keep or restore
	// what someone else changed, "" if the inventory itself is the reason.
	Kind backends.ErrorKind `json:"kind,omitempty"`
	// Await is how long a resume or rollback waits for a target of KindUnreachable while it continues with all others, because an
	// earlier attempt has rebooted it, for example; 0: not at all.
	Await time.Duration `json:"-"`
}

func (r Refusal) String() string { return r.Target.Name + ": " + r.Why }

// UnreadGuest is the refusal of a guest that runs and could not be read.
func UnreadGuest(g *backends.Guest) Refusal {
	return Refusal{Target: backends.GuestRef(g.VM), Kind: g.ErrKind,
		Why:    "the guest is running but cannot be read: " + strings.TrimPrefix(g.Error, "guest "+g.VM+": "),
		Remedy: cmp.Or(g.Hint, "check address, port, user and key under vms of the answers")}
}

// Refused is the error of an inventory that does not allow the requested state. Nothing was written.
type Refused struct{ Refusals []Refusal }

func (e *Refused) Error() string {
	if len(e.Refusals) == 1 {
		return e.Refusals[0].String()
	}
	return fmt.Sprintf("%s (and %d more)", e.Refusals[0], len(e.Refusals)-1)
}

// OwnBackup says how to save the configuration of a host before a run, which does not: it contains password hashes (KB 2042141).
const OwnBackup = "a run does not save the configuration of hosts; to do so, run vim-cmd hostsvc/firmware/backup_config in the shell of " +
	"a host before it"

// TryFirst begins the note that names a pair of hosts to try before the others. It is of no use after the run.
const TryFirst = "to try one pair of hosts first: --limit "

// Options restrict or override the answers.
type Options struct {
	Skip     []string // check ids whose refusals the operator overrides if a plan is possible
	Limit    []string // host names: only these hosts, and the VMs on them
	ForceNIC []string // HOST/vmnicN: this pNIC, even if it carries traffic
	Only     []string // ids of changes: these and no others; nil: all
	// Dockerfile returns the file for building an image for PVRDMA's containers, from the base in the answers.
	Dockerfile func(base string) (string, error)
	// Ourselves are the addresses of this machine: the host that runs it must not reboot.
	Ourselves []string
	// Held lists VMs that an earlier attempt left powered off and that this plan powers on, once their hosts are back.
	Held []string
	// Down are the hosts that an earlier attempt has left out of service. Evacuated are those of them that it keeps in
	// maintenance mode for several reboots.
	Down, Evacuated []string
	// Flashed is the firmware that attempts before have written and a reboot should have loaded, by the ids of its settings.
	Flashed map[string]backends.FirmwareImage
	Until   time.Time // the end of the window; zero: none
	Boots   Boots     // of the stages and attempts before
}

// Boots is what a run has done so far that a boot of a guest proves (run.power.canary_reboot).
type Boots struct {
	Cycled []string // VMs that it has powered off
	SetUp  []string // VMs of which it has set up the guest's network
	Proven bool     // the guest of one of them was restarted after that, and came back as before
}

// A Diff is the difference between two plans. Lists are never nil.
type Diff struct {
	Added    []Change  `json:"added"`   // only in the later plan
	Removed  []Change  `json:"removed"` // only in the earlier plan
	Changed  []Changed `json:"changed"` // in both, with different values or consequences
	Brackets struct {
		Added   []Bracket `json:"added"`
		Removed []Bracket `json:"removed"`
	} `json:"brackets"`
}

// Changed is one setting that two plans change differently.
type Changed struct {
	ID     string `json:"id"`
	Before Change `json:"before"`
	After  Change `json:"after"`
}

// Compare returns how a plan differs from an earlier one, in the order of the plans. Order and reasons of changes are not
// compared.
func Compare(before, after *Plan) Diff {
	d := Diff{Changed: []Changed{}}
	changeID, bracketID := Change.ID, Bracket.ID
	d.Added, d.Removed = without(after.Changes, before.Changes, changeID), without(before.Changes, after.Changes, changeID)
	d.Brackets.Added = without(after.Brackets, before.Brackets, bracketID)
	d.Brackets.Removed = without(before.Brackets, after.Brackets, bracketID)
	was := map[string]Change{}
	for _, c := range before.Changes {
		was[c.ID()] = c
	}
	for _, c := range after.Changes {
		old, both := was[c.ID()]
		if both &&
			(old.From != c.From || old.To != c.To || old.Late != c.Late || old.Irreversible != c.Irreversible ||
				!slices.Equal(old.Disrupts, c.Disrupts)) {
			d.Changed = append(d.Changed, Changed{c.ID(), old, c})
		}
	}
	return d
}

// Empty reports whether both plans change the same settings in the same way, under the same brackets.
func (d Diff) Empty() bool {
	return len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.Brackets.Added)+len(d.Brackets.Removed) == 0
}

// without returns the items whose id is not in the other list.
func without[T any](list, other []T, id func(T) string) []T {
	known := map[string]bool{}
	for _, x := range other {
		known[id(x)] = true
	}
	return slices.DeleteFunc(append([]T{}, list...), func(x T) bool { return known[id(x)] })
}
