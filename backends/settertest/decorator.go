package settertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Decoration is the contract of a decorator.
type Decoration struct {
	Wrap    func(backends.Setter) backends.Setter
	Retries bool // errors of KindTransient are retried
}

// RunDecorator tests a decorator around setters with every combination of optional interfaces, and around itself.
func RunDecorator(t *testing.T, d Decoration) {
	t.Helper()
	for mask := range 8 {
		c := combination{many: mask&1 != 0, reader: mask&2 != 0, keeper: mask&4 != 0}
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			for _, depth := range []int{1, 2} {
				f := &far{}
				s := f.with(c)
				for range depth {
					s = d.Wrap(s)
				}
				d.offers(t, c, s)
				for _, call := range calls() {
					if call.offered(c) {
						d.call(t, f, s, call, depth)
					}
				}
				d.unasked(t, c, s)
			}
		})
	}
}

type combination struct{ many, reader, keeper bool }

// offers checks that the decorator has exactly the interfaces of the wrapped setter.
func (d Decoration) offers(t *testing.T, c combination, s backends.Setter) {
	t.Helper()
	if _, ok := backends.As[backends.ManySetter](s); ok != c.many {
		t.Errorf("ManySetter: %v", ok)
	}
	if _, ok := backends.As[backends.ManyReader](s); ok != c.reader {
		t.Errorf("ManyReader: %v", ok)
	}
	if _, ok := backends.As[backends.Keeper](s); ok != c.keeper {
		t.Errorf("Keeper: %v", ok)
	}
	if many, ok := backends.As[backends.ManySetter](s); ok && many.Parent(setting()) != parent {
		t.Errorf("parent %q", many.Parent(setting()))
	}
}

// call makes one call that succeeds, one that fails twice with a transient error and one that fails permanently.
func (d Decoration) call(t *testing.T, f *far, s backends.Setter, c call, depth int) {
	t.Helper()
	transient := backends.Errorf(backends.KindTransient, Target, "", "injected")
	permanent := backends.Errorf(backends.KindPermanent, Target, "", "injected")
	for _, test := range []struct {
		name  string
		fails []error
		err   error
		tries int
	}{
		{name: "succeeds", tries: 1},
		{name: "fails twice as transient", fails: []error{transient, transient}, tries: 3},
		{name: "fails for good", fails: []error{permanent}, err: permanent, tries: 1},
	} {
		want, tries := test.err, test.tries
		if !d.Retries && len(test.fails) > 0 {
			want, tries = test.fails[0], 1
		}
		f.fails, f.calls = slices.Clone(test.fails), nil
		v, err := c.do(t.Context(), s)
		if !errors.Is(err, want) {
			t.Errorf("%s that %s: %v", c.name, test.name, err)
		}
		if err == nil && c.gives && v != value {
			t.Errorf("%s that %s gives %s", c.name, test.name, v)
		}
		if len(f.calls) != tries || slices.ContainsFunc(f.calls, func(got string) bool { return got != c.name }) {
			t.Errorf("%s that %s, decorated %d times: the setter saw %v, want it %d times", c.name, test.name, depth, f.calls, tries)
		}
	}
}

// unasked calls on the decorator what the wrapped setter lacks: it must return an error and not panic or succeed.
func (d Decoration) unasked(t *testing.T, c combination, s backends.Setter) {
	t.Helper()
	wrapped, ok := s.(backends.Decorator)
	if !ok {
		t.Fatal("the decorator does not have every optional interface")
	}
	_ = wrapped.Parent(setting())
	for _, call := range calls() {
		if call.offered(c) {
			continue
		}
		if _, err := call.do(t.Context(), wrapped); err == nil {
			t.Errorf("%s succeeded, though the setter has no such method", call.name)
		}
	}
}

// A call is one method of a setter or of its optional interfaces.
type call struct {
	name    string
	gives   bool // it returns a value
	offered func(combination) bool
	do      func(context.Context, backends.Setter) (backends.Value, error)
}

func calls() []call {
	always := func(combination) bool { return true }
	return []call{
		{"Read", true, always, func(ctx context.Context, s backends.Setter) (backends.Value, error) { return s.Read(ctx, setting()) }},
		{"Set", false, always, func(ctx context.Context, s backends.Setter) (backends.Value, error) {
			return backends.Absent, s.Set(ctx, setting(), value, nil)
		}},
		{"SetMany", false, func(c combination) bool { return c.many }, func(ctx context.Context, s backends.Setter) (backends.Value, error) {
			errs := find[backends.ManySetter](s).SetMany(ctx, []backends.Assignment{{Setting: setting(), To: value}}, nil)
			return backends.Absent, only(errs)
		}},
		{"ReadMany", true, func(c combination) bool { return c.reader }, func(ctx context.Context, s backends.Setter) (backends.Value, error) {
			values, errs := find[backends.ManyReader](s).ReadMany(ctx, []backends.Setting{setting()})
			if err := only(errs); err != nil || len(values) != 1 {
				return backends.Absent, errors.Join(err)
			}
			return values[0], nil
		}},
		{"Keep", true, func(c combination) bool { return c.keeper }, func(ctx context.Context, s backends.Setter) (backends.Value, error) {
			return held(find[backends.Keeper](s).Keep(ctx, setting(), value))
		}},
		{"Observe", true, func(c combination) bool { return c.keeper }, func(ctx context.Context, s backends.Setter) (backends.Value, error) {
			return held(find[backends.Keeper](s).Observe(ctx, setting(), kept))
		}},
		{"Restore", false, func(c combination) bool { return c.keeper }, func(ctx context.Context, s backends.Setter) (backends.Value, error) {
			return backends.Absent, find[backends.Keeper](s).Restore(ctx, setting(), kept, nil)
		}},
	}
}

// find returns the optional interface as As does, or else that of the decorator itself.
func find[T any](s backends.Setter) T {
	if own, ok := backends.As[T](s); ok {
		return own
	}
	return s.(T)
}

func only(errs []error) error {
	if len(errs) != 1 {
		return fmt.Errorf("%d errors for one setting", len(errs))
	}
	return errs[0]
}

// Target is the name of the target that RunDecorator sets.
const Target = "esx-01"

const parent = "dvs-01"

var value = backends.ValueOf("vmk1")

var kept = backends.Kept{Items: []backends.Item{{Kind: backends.ItemFile, Name: "/etc/x", State: value}}}

// held returns the value in kept.
func held(k backends.Kept, err error) (backends.Value, error) {
	if err != nil || len(k.Items) != 1 {
		return backends.Absent, err
	}
	return k.Items[0].State, nil
}

func setting() backends.Setting {
	return backends.Setting{Target: backends.HostRef(Target), Kind: backends.KindOption, Name: "Net.PVRDMAVmknic"}
}

// far is a setter with every optional interface that records its calls and fails as configured.
type far struct {
	calls []string
	fails []error
}

func (f *far) see(name string) error {
	f.calls = append(f.calls, name)
	if len(f.fails) == 0 {
		return nil
	}
	err := f.fails[0]
	f.fails = f.fails[1:]
	return err
}

func (f *far) with(c combination) backends.Setter {
	one, m, r, k := farSetter{f}, farMany{f}, farReader{f}, farKeeper{f}
	switch c {
	case combination{many: true}:
		return &struct {
			farSetter
			farMany
		}{one, m}
	case combination{reader: true}:
		return &struct {
			farSetter
			farReader
		}{one, r}
	case combination{keeper: true}:
		return &struct {
			farSetter
			farKeeper
		}{one, k}
	case combination{many: true, reader: true}:
		return &struct {
			farSetter
			farMany
			farReader
		}{one, m, r}
	case combination{many: true, keeper: true}:
		return &struct {
			farSetter
			farMany
			farKeeper
		}{one, m, k}
	case combination{reader: true, keeper: true}:
		return &struct {
			farSetter
			farReader
			farKeeper
		}{one, r, k}
	case combination{many: true, reader: true, keeper: true}:
		return &struct {
			farSetter
			farMany
			farReader
			farKeeper
		}{one, m, r, k}
	}
	return &one
}

type (
	farSetter struct{ far *far }
	farMany   struct{ far *far }
	farReader struct{ far *far }
	farKeeper struct{ far *far }
)

func (s farSetter) Read(context.Context, backends.Setting) (backends.Value, error) {
	return value, s.far.see("Read")
}

func (s farSetter) Set(context.Context, backends.Setting, backends.Value, backends.Progress) error {
	return s.far.see("Set")
}

func (s farMany) Parent(backends.Setting) string { return parent }

func (s farMany) SetMany(_ context.Context, as []backends.Assignment, _ backends.Progress) []error {
	return slices.Repeat([]error{s.far.see("SetMany")}, len(as))
}

func (s farReader) ReadMany(_ context.Context, ss []backends.Setting) ([]backends.Value, []error) {
	return slices.Repeat([]backends.Value{value}, len(ss)), slices.Repeat([]error{s.far.see("ReadMany")}, len(ss))
}

func (s farKeeper) Keep(context.Context, backends.Setting, backends.Value) (backends.Kept, error) {
	return kept, s.far.see("Keep")
}

func (s farKeeper) Observe(context.Context, backends.Setting, backends.Kept) (backends.Kept, error) {
	return kept, s.far.see("Observe")
}

func (s farKeeper) Restore(context.Context, backends.Setting, backends.Kept, backends.Progress) error {
	return s.far.see("Restore")
}
