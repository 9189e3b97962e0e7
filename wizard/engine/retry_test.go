package engine_test

import (
	"context"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

func TestRetryIsADecorator(t *testing.T) {
	settertest.RunDecorator(t, settertest.Decoration{Retries: true, Wrap: func(s backends.Setter) backends.Setter {
		const kind = backends.KindOption
		return engine.Retry(map[backends.Kind]backends.Setter{kind: s}, engine.Backoff{First: 1, Most: 1})[kind]
	}})
}

// short returns fewer errors than it should.
type short struct{ backends.Setter }

func (short) Parent(backends.Setting) string { return "dvs-01" }

func (short) SetMany(context.Context, []backends.Assignment, backends.Progress) []error { return nil }

func TestRetryDoesNotTakeSilenceForSuccess(t *testing.T) {
	const kind = backends.KindOption
	many, _ := backends.As[backends.ManySetter](engine.Retry(map[backends.Kind]backends.Setter{kind: &short{}}, engine.Backoff{})[kind])
	for i, err := range many.SetMany(t.Context(), make([]backends.Assignment, 2), nil) {
		if err == nil {
			t.Errorf("assignment %d has no answer and no error", i)
		}
	}
}
