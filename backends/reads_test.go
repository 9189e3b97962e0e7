package backends_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

func TestReads(t *testing.T) {
	t.Parallel()
	asked := 0
	ask := func(ctx context.Context, question string, err error) int {
		n, _ := backends.Again(ctx, question, func() (int, error) { asked++; return asked, err })
		return n
	}
	ctx := backends.WithReads(t.Context())
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		also func()
		want int
	}{
		{"first", ctx, nil, nil, 1},
		{"repeated", ctx, nil, nil, 1},
		{"after a change", ctx, nil, backends.ReadsOf(ctx).Forget, 2},
		{"in another operation", backends.WithReads(t.Context()), nil, nil, 3},
		{"outside operations", t.Context(), nil, nil, 4},
		{"after a change, failed", ctx, errors.New("late"), backends.ReadsOf(ctx).Forget, 5},
		{"after a failure", ctx, nil, nil, 6},
		{"outside operations nothing is forgotten", ctx, nil, backends.ReadsOf(t.Context()).Forget, 6},
	}
	for _, tt := range tests {
		if tt.also != nil {
			tt.also()
		}
		if got := ask(tt.ctx, "packages", tt.err); got != tt.want {
			t.Errorf("%s: the answer is number %d, not %d", tt.name, got, tt.want)
		}
	}
}
