package frame

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/live"
)

// A rest is the overview while it is still read: the hosts are shown by name and state meanwhile.
type rest struct {
	done   chan struct{} // closed when inv or err is there
	cancel context.CancelFunc
	inv    *backends.Inventory
	err    error
}

// A restMsg says that the rest of an overview is there.
type restMsg struct{ of *rest }

// Connect logs in and goes on as soon as the hosts can be shown.
func (w *Wizard) Connect(l live.Login, then func(w *Wizard, err error) tea.Cmd) tea.Cmd {
	old := w.rest
	if w.rest = nil; old != nil {
		old.cancel()
	}
	first := make(chan *backends.Inventory, 2) // a session that ends while it is read is read again
	names := func(inv *backends.Inventory) { first <- inv }
	if w.LookOnly {
		names = nil // the look reads for itself
	}
	all, cancel := context.WithCancel(w.ctx)
	r := &rest{done: make(chan struct{}), cancel: cancel}
	var inv *backends.Inventory
	early := false
	return w.Do("logging in and reading the inventory", func(ctx context.Context) error {
		if old != nil {
			<-old.done
		}
		defer context.AfterFunc(ctx, cancel)() // until the hosts are shown
		go func() {
			defer close(r.done)
			defer cancel()
			r.inv, r.err = w.Fabric.Connect(all, l, names)
		}()
		select {
		case inv = <-first:
			early = true
			return nil
		case <-r.done:
			inv = r.inv
			return r.err
		}
	}, func(w *Wizard, err error) tea.Cmd {
		if err != nil {
			return then(w, err)
		}
		if w.Overview = inv; !early {
			return then(w, nil)
		}
		w.rest = r
		return tea.Batch(then(w, nil), func() tea.Msg {
			<-r.done
			return restMsg{r}
		})
	})
}

// Partial reports whether names and states of the hosts are all that has been read.
func (w *Wizard) Partial() bool { return w.rest != nil }

// Await goes on when the whole overview has been read.
func (w *Wizard) Await(then func(w *Wizard) tea.Cmd) tea.Cmd {
	r := w.rest
	return w.Do("reading pNICs, switches and VMs", func(ctx context.Context) error {
		select {
		case <-r.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func(w *Wizard, err error) tea.Cmd {
		if err != nil {
			return w.Fail(err)
		}
		cmd := w.complete(r)
		if w.Overview == nil {
			return cmd
		}
		return tea.Batch(cmd, then(w))
	})
}

// complete takes the rest of the overview. Where it cannot be read, the operator has to log in anew.
func (w *Wizard) complete(r *rest) tea.Cmd {
	if w.rest != r {
		return nil // taken, or of a log-in before
	}
	w.rest = nil
	if r.err != nil {
		w.Overview = nil
		cmd := w.Show(connectAt)
		if errors.Is(r.err, context.Canceled) {
			return cmd
		}
		return tea.Batch(cmd, w.Fail(r.err))
	}
	w.Overview = r.inv
	if w.at == HostsAt {
		return w.Page().Enter(w)
	}
	return nil
}
