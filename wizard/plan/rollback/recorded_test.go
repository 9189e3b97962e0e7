package rollback_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

const (
	unit = "/etc/systemd/system/rdma-setup-vmw_pvrdma.service"
	list = "/etc/modules-load.d/rdma-setup.conf"
)

func file(name string, state any) backends.Item {
	i := backends.Item{Kind: backends.ItemFile, Name: name}
	if v, is := state.(backends.Value); is {
		i.State = v
	} else if state != nil {
		i.State = backends.ValueOf(state)
	}
	return i
}

func kept(items ...backends.Item) backends.Kept { return backends.Kept{Items: items} }

// world returns a VM that is on, with a guest that answers and loads nothing at boot.
func world() *backends.Inventory {
	return &backends.Inventory{
		Hosts:  []backends.Host{{Name: "esx-01", State: "connected", Options: map[string]string{backends.VMKNICOption: "vmk5"}}},
		VMs:    []backends.VM{{Name: "vm-01", Host: "esx-01", Power: "poweredOn"}},
		Guests: []backends.Guest{{VM: "vm-01"}},
	}
}

var persist = backends.Setting{Target: backends.GuestRef("vm-01"), Kind: backends.KindPersist}

// The guest had no items of this program before the run, and none are read today: the record decides.
func TestRecordedItems(t *testing.T) {
	was, left := kept(file(unit, nil), file(list, nil)), kept(file(unit, "ours"), file(list, "ours"))
	for name, c := range map[string]struct {
		left     backends.Kept
		now      backends.Kept
		err      error
		on       rollback.OnConflict
		back     bool
		restores []string
		leaves   []string
		conflict string
	}{
		"as before":            {left: left, now: was},
		"as the run left it":   {left: left, now: left, restores: []string{unit, list}},
		"killed in the middle": {now: kept(file(unit, "ours"), file(list, nil)), restores: []string{unit}},
		"killed, and nobody knows the one": {left: kept(file(list, "ours")), now: kept(file(unit, "?"), file(list, "ours")),
			restores: []string{unit, list}},
		"half undone":         {left: left, now: kept(file(unit, "ours"), file(list, nil)), restores: []string{unit}},
		"half made":           {left: left, now: kept(file(unit, backends.Partial("x.tmp")), file(list, nil)), restores: []string{unit}},
		"deleted by somebody": {left: left, now: kept(file(unit, nil), file(list, nil))},
		"edited, stop": {left: left, now: kept(file(unit, "theirs"), file(list, "ours")),
			conflict: unit + " is now theirs; the run left it as ours"},
		"edited, keep": {left: left, now: kept(file(unit, "theirs"), file(list, "ours")), on: rollback.Keep,
			restores: []string{list}, leaves: []string{unit}},
		"cannot be had, keep": {left: left, now: kept(file(unit, "ours"), file(list, nil)), on: rollback.Keep, back: true,
			leaves: []string{unit}},
		"cannot be had, stop": {left: left, now: kept(file(unit, "ours"), file(list, nil)), back: true,
			conflict: "is no longer available"},
		"only edited, keep": {left: left, now: kept(file(unit, "theirs"), file(list, nil)), on: rollback.Keep, leaves: []string{unit}},
		"edited, restore": {left: left, now: kept(file(unit, "theirs"), file(list, "ours")), on: rollback.Restore,
			restores: []string{list, unit}},
		"made again after a rollback": {left: was, now: kept(file(unit, nil), file(list, "theirs")), conflict: "the run left none"},
		"cannot be read":              {left: left, err: errors.New("no answer"), conflict: "persist cannot be read: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			prior := plan.Prior{Change: plan.Change{Setting: persist, To: backends.ValueOf("x")}, Found: backends.ValueOf("x"), Kept: &was,
				Left: c.left, Back: c.back}
			p, err := rollback.Build([]plan.Prior{prior}, world(), rollback.Options{
				OnConflict: c.on, Observed: map[string]plan.Observation{persist.ID(): {Now: c.now, Err: c.err}}})
			if err != nil {
				t.Fatal(err)
			}
			var restores []string
			for _, ch := range p.Changes {
				restores = append(restores, names(ch.Restore)...)
				if ch.Yield != (c.on == rollback.Keep) {
					t.Errorf("yields: %v", ch.Yield)
				}
				if !cmp.Equal(names(ch.Leave), c.leaves) {
					t.Errorf("leaves %v, want %v", names(ch.Leave), c.leaves)
				}
			}
			if d := cmp.Diff(c.restores, restores); d != "" {
				t.Errorf("restores: %s", d)
			}
			if len(c.leaves) != len(p.Left) {
				t.Errorf("left: %v", p.Left)
			}
			if got := texts(p.Conflicts); c.conflict == "" && got != "" || !strings.Contains(got, c.conflict) {
				t.Errorf("conflicts: %q, want %q", got, c.conflict)
			}
		})
	}
}

func names(ds []backends.Difference) []string {
	var out []string
	for _, d := range ds {
		out = append(out, d.Name)
	}
	return out
}

func texts(rs []plan.Refusal) string {
	var out []string
	for _, r := range rs {
		out = append(out, r.String())
	}
	return strings.Join(out, "\n")
}

// A VM that was off before is off again: its guest cannot be surveyed, and need not be if the journal shows that everything was
// restored.
func TestRecordedItemsOfAGuestThatIsOff(t *testing.T) {
	was := kept(file(unit, nil))
	for name, c := range map[string]struct {
		left     backends.Kept
		conflict bool
	}{"put back": {was, false}, "as the run left it": {kept(file(unit, "ours")), true}, "nobody knows": {kept(), true}} {
		t.Run(name, func(t *testing.T) {
			inv := world()
			inv.VMs[0].Power, inv.Guests = "poweredOff", nil
			prior := plan.Prior{Change: plan.Change{Setting: persist}, Kept: &was, Left: c.left}
			p, err := rollback.Build([]plan.Prior{prior}, inv, rollback.Options{})
			if err != nil || len(p.Conflicts) > 0 != c.conflict || !p.Empty() {
				t.Errorf("%v, conflicts %v, changes %v", err, p.Conflicts, p.Changes)
			}
		})
	}
}

// Somebody else has set a value of vCenter since: stop names it, keep leaves it, restore sets the earlier value.
func TestValueChangedBySomebodySince(t *testing.T) {
	option := backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindOption, Name: backends.VMKNICOption}
	prior := plan.Prior{Change: plan.Change{Setting: option, To: backends.ValueOf("vmk0")}, Prior: backends.ValueOf("vmk1"),
		Found: backends.ValueOf("vmk0")}
	for on, want := range map[rollback.OnConflict]struct {
		to              any
		conflicts, left int
	}{"": {nil, 1, 0}, rollback.Stop: {nil, 1, 0}, rollback.Keep: {nil, 0, 1}, rollback.Restore: {"vmk1", 0, 0}} {
		p, err := rollback.Build([]plan.Prior{prior}, world(), rollback.Options{OnConflict: on})
		if err != nil || len(p.Conflicts) != want.conflicts || len(p.Left) != want.left || p.Empty() != (want.to == nil) {
			t.Fatalf("%q: %v, %+v", on, err, p)
		}
		if want.to != nil && (p.Changes[0].To != backends.ValueOf(want.to) || p.Changes[0].From != backends.ValueOf("vmk5")) {
			t.Errorf("%q: %+v", on, p.Changes[0])
		}
	}
	one := rollback.Options{Decisions: map[backends.Ref]rollback.OnConflict{option.Target: rollback.Keep}}
	if p, err := rollback.Build([]plan.Prior{prior}, world(), one); err != nil || len(p.Left) != 1 || len(p.Conflicts) != 0 {
		t.Errorf("decided for one target: %v, %+v", err, p)
	}
}
