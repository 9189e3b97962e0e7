package readonly_test

import (
	"context"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/readonly"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
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

// host is a bracket that can be backed out of.
type host struct{ *world }

func (h *host) Abort(context.Context, backends.Ref, backends.Value, backends.Progress) error {
	h.writes++
	return nil
}

func TestSetterIsADecorator(t *testing.T) {
	settertest.RunDecorator(t, settertest.Decoration{ReadOnly: true, Wrap: readonly.Setter})
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
	for name, err := range map[string]error{
		"set":   s.Set(t.Context(), what, backends.Absent, nil),
		"open":  b.Open(t.Context(), vm, nil),
		"close": b.Close(t.Context(), vm, backends.ValueOf("on"), nil),
	} {
		if backends.KindOf(err) != backends.KindRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, ok := backends.As[backends.Aborter](b); ok {
		t.Error("it offers to abort what cannot be aborted")
	}
	aborter, ok := backends.As[backends.Aborter](readonly.Bracket(&host{world: w}))
	if !ok {
		t.Fatal("it has lost Abort")
	}
	if err := aborter.Abort(t.Context(), vm, backends.ValueOf("on"), nil); backends.KindOf(err) != backends.KindRefused {
		t.Errorf("abort: %v", err)
	}
	if w.writes != 0 || w.reads != 2 {
		t.Errorf("%d reads, %d writes", w.reads, w.writes)
	}
}
