// Package settertest is the contract of backends.Setter as a test that every implementation must pass.
package settertest

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Case is one setting of one setter to run through the contract.
type Case struct {
	Setter  backends.Setter
	Setting backends.Setting

	// Values are set one after another; at least two, all different.
	Values []backends.Value
	// Removes means that setting Absent removes the thing.
	Removes bool
	// OneWay means that a value cannot be reverted (a hardware version); the first value is then not set again.
	OneWay bool
	// Same compares the value read with the value set if the setter completes values; nil compares with ==.
	Same func(got, want backends.Value) bool
	// Missing is a setting of a target that does not exist; the zero Setting skips that part of the contract.
	Missing backends.Setting
	// Writes returns the number of writes that reached the target, if it can be counted: setting an equal value must not write.
	// Nil if the setter relies on repeated writes to be safe.
	Writes func() int
}

// Run runs a case through the contract.
func Run(t *testing.T, c Case) {
	t.Helper()
	if len(c.Values) < 2 && !c.OneWay {
		t.Fatal("a contract needs two values that differ")
	}
	prior := c.read(t)
	t.Run("reading changes nothing", func(t *testing.T) {
		if again := c.read(t); again != prior {
			t.Errorf("read %s, then %s", prior, again)
		}
	})
	t.Run("reading together", func(t *testing.T) { c.together(t, prior) })
	t.Run("cancelled", func(t *testing.T) { c.cancelled(t, prior) })
	if c.Missing.Target.Name != "" {
		t.Run("no such target", func(t *testing.T) { c.missing(t) })
	}
	for i, v := range c.Values {
		t.Run("set "+v.String(), func(t *testing.T) { c.set(t, v) })
		if c.OneWay && i == len(c.Values)-1 {
			return
		}
	}
	if many, ok := backends.As[backends.ManySetter](c.Setter); ok {
		t.Run("set many", func(t *testing.T) { c.many(t, many) })
	}
	if c.Removes {
		t.Run("remove", func(t *testing.T) { c.remove(t) })
	}
	t.Run("back to the prior value", func(t *testing.T) {
		if prior.IsAbsent() && !c.Removes {
			return // nothing to restore
		}
		c.set(t, prior)
	})
}

func (c Case) read(t *testing.T) backends.Value {
	t.Helper()
	v, err := c.Setter.Read(t.Context(), c.Setting)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if !v.Known() {
		t.Fatalf("read gives %s: a setter knows or fails", v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("the value does not go into a journal: %v", err)
	}
	var back backends.Value
	if err := json.Unmarshal(b, &back); err != nil || back != v {
		t.Fatalf("the value does not survive a journal: %s became %s (%v)", v, back, err)
	}
	return v
}

func (c Case) same(got, want backends.Value) bool {
	return got == want || c.Same != nil && c.Same(got, want)
}

// set sets a value twice: the second call must do nothing.
func (c Case) set(t *testing.T, v backends.Value) {
	t.Helper()
	var marks progress
	if err := c.Setter.Set(t.Context(), c.Setting, v, marks.see); err != nil {
		t.Fatalf("set: %v", err)
	}
	marks.check(t)
	first := c.read(t)
	if !c.same(first, v) {
		t.Fatalf("set %s, read %s", v, first)
	}
	before := c.writes()
	if err := c.Setter.Set(t.Context(), c.Setting, v, nil); err != nil {
		t.Fatalf("set again, without anybody watching: %v", err)
	}
	if again := c.read(t); again != first {
		t.Errorf("set again reads %s, before %s", again, first)
	}
	if n := c.writes() - before; n != 0 {
		t.Errorf("set again wrote %d times", n)
	}
}

func (c Case) writes() int {
	if c.Writes == nil {
		return 0
	}
	return c.Writes()
}

func (c Case) remove(t *testing.T) {
	for range 2 {
		if err := c.Setter.Set(t.Context(), c.Setting, backends.Absent, nil); err != nil {
			t.Fatalf("remove: %v", err)
		}
		if v := c.read(t); !v.IsAbsent() {
			t.Fatalf("removed, but reads %s", v)
		}
	}
	c.set(t, c.Values[0])
	if err := c.Setter.Set(t.Context(), c.Setting, backends.Absent, nil); err != nil {
		t.Fatalf("remove once more: %v", err)
	}
}

func (c Case) many(t *testing.T, many backends.ManySetter) {
	if many.Parent(c.Setting) == "" {
		t.Error("no parent to merge under")
	}
	v := c.Values[0]
	errs := many.SetMany(t.Context(), []backends.Assignment{{Setting: c.Setting, To: v}}, nil)
	if len(errs) != 1 {
		t.Fatalf("%d errors for one assignment", len(errs))
	}
	if errs[0] != nil {
		t.Fatalf("set: %v", errs[0])
	}
	if got := c.read(t); !c.same(got, v) {
		t.Errorf("set %s, read %s", v, got)
	}
}

// cancelled checks that an ended context ends the call, and that nothing was set.
func (c Case) cancelled(t *testing.T, prior backends.Value) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan error, 2)
	go func() {
		_, err := c.Setter.Read(ctx, c.Setting)
		done <- err
		done <- c.Setter.Set(ctx, c.Setting, c.Values[0], nil)
	}()
	limit := time.After(10 * time.Second)
	for _, what := range []string{"read", "set"} {
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s with an ended context succeeded", what)
			}
		case <-limit:
			t.Fatalf("%s did not respect its context", what)
		}
	}
	if v := c.read(t); v != prior {
		t.Errorf("a cancelled set changed %s to %s", prior, v)
	}
}

func (c Case) missing(t *testing.T) {
	if v, err := c.Setter.Read(t.Context(), c.Missing); err == nil {
		t.Errorf("read %s", v)
	} else if backends.KindOf(err) == "" {
		t.Errorf("the error has no kind: %v", err)
	}
	if err := c.Setter.Set(t.Context(), c.Missing, c.Values[0], nil); err == nil {
		t.Error("set without an error")
	} else if backends.KindOf(err) == "" {
		t.Errorf("the error has no kind: %v", err)
	}
}

// together reads from many goroutines, as the engine does.
func (c Case) together(t *testing.T, prior backends.Value) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			v, err := c.Setter.Read(t.Context(), c.Setting)
			if err != nil || v != prior {
				t.Errorf("read %s (%v), alone %s", v, err, prior)
			}
		})
	}
	wg.Wait()
}

// progress records what a setter reports.
type progress struct {
	mu   sync.Mutex
	seen []int
}

func (p *progress) see(percent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, percent)
}

func (p *progress) check(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.seen {
		if n < 0 || n > 100 {
			t.Errorf("progress of %d percent", n)
		}
	}
}
