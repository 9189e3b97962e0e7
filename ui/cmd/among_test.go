package cmd

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// On a twin the tasks of a target are read only if an earlier attempt may still work on it.
func TestTasksAreReadOfUnsettledTargetsOnly(t *testing.T) {
	a, b, c := backends.VMRef("a"), backends.VMRef("b"), backends.HostRef("b")
	inUse := errors.New("in use")
	for _, x := range []struct{ unsettled, targets, asked []backends.Ref }{
		{nil, []backends.Ref{a, b}, nil},
		{[]backends.Ref{a}, []backends.Ref{c, a, b}, []backends.Ref{a}},
		{[]backends.Ref{b}, []backends.Ref{a, c}, nil},
		{[]backends.Ref{a, b, c}, []backends.Ref{a, b}, []backends.Ref{a, b}},
	} {
		given := slices.Clone(x.targets)
		var asked []backends.Ref
		found, err := among(x.unsettled, func(_ context.Context, targets []backends.Ref) (map[backends.Ref]error, error) {
			asked = targets
			return map[backends.Ref]error{targets[0]: inUse}, nil
		})(t.Context(), given)
		if !slices.Equal(asked, x.asked) || err != nil || !slices.Equal(given, x.targets) {
			t.Errorf("unsettled %v, targets %v: asked for %v, want %v (%v)", x.unsettled, x.targets, asked, x.asked, err)
		}
		if len(asked) > 0 && found[asked[0]] != inUse {
			t.Errorf("what was found is lost: %v", found)
		}
	}
}
