package frame

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/live"
)

// A rest is an overview that is still being read; meanwhile the hosts are shown by name and state.
type rest struct {
	done   chan struct{} // closed when inv or err is set
	cancel context.CancelFunc
	inv    *backends.Inventory
	err    error
}

// A restMsg reports that the rest of an overview has been read.
type restMsg struct{ of *rest }

// Connect logs in and shows the next page as soon as the hosts can be listed.
func (w *Wizard) Connect(l live.Login, then func(w *Wizard, err error) tea.Cmd) tea.Cmd {
	old := w.leaveRest()
	first := make(chan *backends.Inventory, 2) // if the session ends during the read, the overview is read again
	names := func(inv *backends.Inventory) { first <- inv }
	if w.LookOnly {
		names = nil // the check-only page reads its own data
	}
	all, cancel := context.WithCancel(w.ctx)
	r := &rest{done: make(chan struct{}), cancel: cancel}
	w.begun = r
	go func() {
		defer close(r.done)
		defer cancel()
		if old != nil {
			<-old.done
		}
		r.inv, r.err = w.Fabric.Connect(all, l, names)
	}()
	var inv *backends.Inventory
	early := false
	return w.Do("logging in and reading the inventory", func(ctx context.Context) error {
		defer context.AfterFunc(ctx, cancel)() // until the hosts can be shown
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

// leaveRest cancels the last read of an overview, if any, and returns it without waiting for its end.
func (w *Wizard) leaveRest() *rest {
	if w.rest = nil; w.begun != nil {
		w.begun.cancel()
	}
	return w.begun
}

// Partial reports whether only the names and states of the hosts have been read.
func (w *Wizard) Partial() bool { return w.rest != nil }

// Await continues when the whole overview has been read.
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

// complete stores the rest of the overview. If it could not be read, the operator has to log in again.
func (w *Wizard) complete(r *rest) tea.Cmd {
	if w.rest != r {
		return nil // already stored, or from an earlier login
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
