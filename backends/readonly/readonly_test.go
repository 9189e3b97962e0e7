package readonly_test

import (
	"context"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/readonly"
)

// world is a setting and a bracket that count what is done to them.
type world struct{ reads, writes int }

func (w *world) Read(context.Context, backends.Setting) (backends.Value, error) {
	w.reads++
	return backends.ValueOf("vmk0"), nil
}

func (w *world) Set(context.Context, backends.Setting, backends.Value, backends.Progress) error {
	w.writes++
	return nil
}

func (w *world) ReadMany(_ context.Context, ss []backends.Setting) ([]backends.Value, []error) {
	w.reads++
	return make([]backends.Value, len(ss)), make([]error, len(ss))
}

func (w *world) Parent(backends.Setting) string { return "p" }

func (w *world) SetMany(_ context.Context, as []backends.Assignment, _ backends.Progress) []error {
	w.writes++
	return make([]error, len(as))
}

func (w *world) Keep(context.Context, backends.Setting, backends.Value) (backends.Value, error) {
	return backends.Absent, nil
}

func (w *world) Restore(context.Context, backends.Setting, backends.Value, backends.Progress) error {
	w.writes++
	return nil
}

func (w *world) State(context.Context, backends.Ref) (backends.Value, error) {
	w.reads++
	return backends.ValueOf("on"), nil
}

func (w *world) Open(context.Context, backends.Ref, backends.Progress) error {
	w.writes++
	return nil
}

func (w *world) Close(context.Context, backends.Ref, backends.Value, backends.Progress) error {
	w.writes++
	return nil
}

func TestReadsPassAndWritesAreRefused(t *testing.T) {
	w := &world{}
	vm := backends.VMRef("vm-01")
	s := readonly.Setters(map[backends.Kind]backends.Setter{backends.KindOption: w})[backends.KindOption]
	b := readonly.Brackets(map[backends.BracketKind]backends.Bracket{backends.BracketVMPower: w})[backends.BracketVMPower]
	what := backends.Setting{Target: vm, Kind: backends.KindOption, Name: "x"}

	if v, err := s.Read(t.Context(), what); err != nil || v != backends.ValueOf("vmk0") {
		t.Errorf("%s, %v", v, err)
	}
	if v, err := b.State(t.Context(), vm); err != nil || v != backends.ValueOf("on") {
		t.Errorf("%s, %v", v, err)
	}
	if many, ok := s.(backends.ManyReader); !ok {
		t.Error("it reads one by one")
	} else if values, _ := many.ReadMany(t.Context(), []backends.Setting{what}); len(values) != 1 {
		t.Errorf("%v", values)
	}
	for name, err := range map[string]error{
		"set":   s.Set(t.Context(), what, backends.Absent, nil),
		"open":  b.Open(t.Context(), vm, nil),
		"close": b.Close(t.Context(), vm, backends.ValueOf("on"), nil),
	} {
		if backends.KindOf(err) != backends.KindRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, ok := s.(backends.ManySetter); ok {
		t.Error("it offers to set many")
	}
	if _, ok := s.(backends.Keeper); ok {
		t.Error("it offers to restore")
	}
	if w.writes != 0 || w.reads != 3 {
		t.Errorf("%d reads, %d writes", w.reads, w.writes)
	}
}
