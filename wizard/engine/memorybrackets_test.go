package engine_test

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Brackets returns the brackets of the world. Those of hosts can be aborted.
func (w *World) Brackets() map[backends.BracketKind]backends.Bracket {
	return map[backends.BracketKind]backends.Bracket{
		backends.BracketVMPower:     &vmPower{w},
		backends.BracketMaintenance: &hostBracket{w, false},
		backends.BracketReboot:      &hostBracket{w, true},
	}
}

func bracketSetting(t backends.Ref, kind backends.BracketKind) backends.Setting {
	return backends.Setting{Target: t, Kind: backends.Kind(kind)}
}

type vmPower struct{ w *World }

func (p *vmPower) State(ctx context.Context, t backends.Ref) (backends.Value, error) {
	v := backends.ValueOf("on")
	err := p.w.call(ctx, Call{Verb: "state", Setting: bracketSetting(t, backends.BracketVMPower)}, nil, func() error {
		if p.w.power[t] == "off" {
			v = backends.ValueOf("off")
		}
		return nil
	})
	return v, err
}

func (p *vmPower) Open(ctx context.Context, t backends.Ref, progress backends.Progress) error {
	progress.Report(10)
	return p.w.call(ctx, Call{Verb: "open", Setting: bracketSetting(t, backends.BracketVMPower)}, []backends.Ref{t}, func() error {
		p.w.power[t] = "off"
		off := 0
		for _, state := range p.w.power {
			if state == "off" {
				off++
			}
		}
		p.w.mostOff = max(p.w.mostOff, off)
		return nil
	})
}

func (p *vmPower) Close(ctx context.Context, t backends.Ref, leave backends.Value, progress backends.Progress) error {
	progress.Report(90)
	return p.w.call(ctx, Call{Verb: "close", Setting: bracketSetting(t, backends.BracketVMPower), To: leave}, []backends.Ref{t}, func() error {
		var state string
		err := leave.Decode(&state)
		p.w.power[t] = state
		return err
	})
}

type hostBracket struct {
	w      *World
	reboot bool
}

func (h *hostBracket) kind() backends.BracketKind {
	if h.reboot {
		return backends.BracketReboot
	}
	return backends.BracketMaintenance
}

func (h *hostBracket) State(ctx context.Context, t backends.Ref) (backends.Value, error) {
	var v backends.Value
	err := h.w.call(ctx, Call{Verb: "state", Setting: bracketSetting(t, h.kind())}, nil, func() error {
		v = backends.ValueOf(map[string]bool{"maintenance": h.w.maint[t]})
		return nil
	})
	return v, err
}

func (h *hostBracket) Open(ctx context.Context, t backends.Ref, _ backends.Progress) error {
	return h.w.call(ctx, Call{Verb: "open", Setting: bracketSetting(t, h.kind())}, []backends.Ref{t}, func() error {
		h.w.maint[t] = true
		down := 0
		for _, in := range h.w.maint {
			if in {
				down++
			}
		}
		h.w.most = max(h.w.most, down)
		return nil
	})
}

func (h *hostBracket) Close(ctx context.Context, t backends.Ref, leave backends.Value, _ backends.Progress) error {
	return h.w.call(ctx, Call{Verb: "close", Setting: bracketSetting(t, h.kind()), To: leave}, []backends.Ref{t}, func() error {
		if h.reboot {
			h.w.boot(t)
		}
		var before map[string]bool
		if leave.Known() && !leave.IsAbsent() {
			if err := leave.Decode(&before); err != nil {
				return err
			}
		}
		h.w.maint[t] = before["maintenance"]
		return nil
	})
}

// Abort ends maintenance mode without the reboot.
func (h *hostBracket) Abort(ctx context.Context, t backends.Ref, found backends.Value, _ backends.Progress) error {
	return h.w.call(ctx, Call{Verb: "abort", Setting: bracketSetting(t, h.kind()), To: found}, []backends.Ref{t}, func() error {
		var before map[string]bool
		err := found.Decode(&before)
		h.w.maint[t] = before["maintenance"]
		return err
	})
}

// boot activates the pending values of a host.
func (w *World) boot(t backends.Ref) {
	prefix := t.String() + "/"
	for id, v := range w.pending {
		if len(id) > len(prefix) && id[:len(prefix)] == prefix {
			if v.IsAbsent() {
				delete(w.values, id)
			} else {
				w.values[id] = v
			}
			delete(w.pending, id)
		}
	}
}
