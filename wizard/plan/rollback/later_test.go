package rollback_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

// TestChangedByALaterRun names the run that has changed a value or a file since, and no run that did not leave its current state.
func TestChangedByALaterRun(t *testing.T) {
	// vmk5 today
	option := plan.Change{Setting: backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindOption,
		Name: backends.VMKNICOption}}
	value := func(prior, found string) plan.Prior {
		return plan.Prior{Change: option, Prior: backends.ValueOf(prior), Found: backends.ValueOf(found)}
	}
	item := func(prior, left string) plan.Prior {
		was := kept(file(list, prior))
		return plan.Prior{Change: plan.Change{Setting: persist}, Found: backends.ValueOf("x"), Kept: &was, Left: kept(file(list, left))}
	}
	undone := func(p plan.Prior) plan.Prior {
		p.Back = true
		return p
	}
	now := map[string]plan.Observation{persist.ID(): {Now: kept(file(list, "theirs"))}}
	for name, c := range map[string]struct {
		run   plan.Prior
		later []plan.Prior
		by    string
	}{
		"value, no later run": {value("vmk1", "vmk0"), nil, "so somebody else has changed it since"},
		"value, a later run":  {value("vmk1", "vmk0"), []plan.Prior{value("vmk0", "vmk5")}, "so run RUN-3 has changed it since"},
		"value, the first of two": {value("vmk1", "vmk0"), []plan.Prior{value("vmk0", "vmk5"), value("vmk5", "vmk5")},
			"so run RUN-2 has changed it since"},
		"value, changed again": {value("vmk1", "vmk0"), []plan.Prior{value("vmk0", "vmk7")}, "so somebody else has changed it since"},
		"value, the later one is undone": {value("vmk1", "vmk0"), []plan.Prior{undone(value("vmk0", "vmk5"))},
			"so somebody else has changed it since"},
		"file, no later run":           {item("before", "ours"), nil, "changed by somebody else since then"},
		"file, a later run":            {item("before", "ours"), []plan.Prior{item("ours", "theirs")}, "changed by run RUN-3 since then"},
		"file, changed again":          {item("before", "ours"), []plan.Prior{item("ours", "second")}, "changed by somebody else since then"},
		"file, found by the later one": {item("before", "ours"), []plan.Prior{item("theirs", "theirs")}, "changed by somebody else since then"},
		"another setting":              {item("before", "ours"), []plan.Prior{value("vmk0", "vmk5")}, "changed by somebody else since then"},
	} {
		t.Run(name, func(t *testing.T) {
			var later []rollback.LaterRun // the latest first
			for i, p := range c.later {
				id := "RUN-3"
				if len(c.later) > 1 {
					id = []string{"RUN-2", "RUN-3"}[i]
				}
				later = append([]rollback.LaterRun{{Run: id, Priors: []plan.Prior{p}}}, later...)
			}
			p, err := rollback.Build([]plan.Prior{c.run}, world(),
				rollback.Options{Observed: now, Later: func() []rollback.LaterRun { return later }})
			if err != nil || len(p.Conflicts) != 1 {
				t.Fatalf("%v, conflicts %v", err, p.Conflicts)
			}
			got := p.Conflicts[0]
			if !strings.HasSuffix(got.Why, c.by) {
				t.Errorf("%s, want %s", got.Why, c.by)
			}
			if hint := "rdma-setup rollback RUN-"; strings.Contains(got.Remedy, hint) != strings.Contains(c.by, "RUN-") {
				t.Errorf("remedy: %s", got.Remedy)
			}
		})
	}
}
