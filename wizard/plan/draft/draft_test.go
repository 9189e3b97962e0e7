package draft_test

import (
	"slices"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// A note agrees with the number of its targets; names that look like its marks are left alone.
func TestNotesAgreeWithTheNumberOfTheirTargets(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"vm-1"}, "vm-1: is moved with its disks to x[is|are]"},
		{[]string{"vm-1", "vm-2", "vm-1"}, "vm-1, vm-2: are moved with their disks to x[is|are]"},
		{[]string{"a", "b", "c", "d", "e", "f", "g"}, "a, b, c, d, e and 2 more: are moved with their disks to x[is|are]"},
	} {
		d := draft.New(answers.Default(answers.PVRDMA), &backends.Inventory{}, plan.Options{})
		for _, name := range c.names {
			d.NoteEach(name, "[is|are] moved with [its|their] disks to %s", "x[is|are]")
		}
		p, err := d.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(p.Notes, c.want) {
			t.Errorf("%q, want %q", p.Notes, c.want)
		}
	}
}
