package engine_test

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Kinds that exist only in this world.
const (
	// KindFirmware becomes active with the next reboot of its host: Read returns the value for the next boot.
	KindFirmware backends.Kind = "firmware"
)

// Setters returns the setters of the world: members merge by DVS and are read together, memory and adapters merge by VM,
// persist and address are Keepers.
func (w *World) Setters() map[backends.Kind]backends.Setter {
	one := &plain{w}
	dvs := &many{plain{w}, func(s backends.Setting) string { return s.Name }}
	vm := &many{plain{w}, func(s backends.Setting) string { return s.Target.String() }}
	file := &keeper{plain{w}}
	return map[backends.Kind]backends.Setter{
		backends.KindSwitch: one, backends.KindPortGroup: one, backends.KindOption: one, backends.KindFirewall: one,
		backends.KindModules: one, backends.KindPort: one, KindFirmware: one,
		backends.KindMember: &manyReader{many: *dvs}, backends.KindMemory: vm, backends.KindAdapter: vm,
		backends.KindPersist: file, backends.KindAddress: file,
	}
}

type plain struct{ w *World }

func (p *plain) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	var v backends.Value
	err := p.w.call(ctx, Call{Verb: "read", Setting: s}, nil, func() error {
		if err := p.w.reachable(s); err != nil {
			return err
		}
		v = p.w.value(s)
		return nil
	})
	return v, err
}

func (p *plain) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	progress.Report(50)
	return p.w.call(ctx, Call{Verb: "set", Setting: s, To: to}, []backends.Ref{s.Target}, func() error { return p.w.set(s, to) })
}

func (w *World) value(s backends.Setting) backends.Value {
	if _, ok := w.files[s.ID()]; ok {
		return w.kept(s)
	}
	if v, ok := w.pending[s.ID()]; ok {
		return v
	}
	return w.values[s.ID()]
}

func (w *World) reachable(s backends.Setting) error {
	if s.Target.Type == backends.TypeGuest && w.power[backends.VMRef(s.Target.Name)] == "off" {
		return backends.Errorf(backends.KindUnreachable, s.Target.Name, "", "the guest does not answer")
	}
	return nil
}

func (w *World) set(s backends.Setting, to backends.Value) error {
	if err := w.reachable(s); err != nil {
		return err
	}
	if s.Target.Type == backends.TypeVM && w.power[s.Target] != "off" {
		return backends.Errorf(backends.KindPermanent, s.Target.Name, "", "the VM is powered on")
	}
	if s.Kind == KindFirmware {
		w.pending[s.ID()] = to
		return nil
	}
	w.put(s, to)
	return nil
}

type many struct {
	plain
	parent func(backends.Setting) string
}

func (m *many) Parent(s backends.Setting) string { return m.parent(s) }

func (m *many) SetMany(ctx context.Context, as []backends.Assignment, progress backends.Progress) []error {
	errs := make([]error, len(as))
	var targets []backends.Ref
	for _, a := range as {
		known := false
		for _, t := range targets {
			known = known || t == a.Target
		}
		if !known {
			targets = append(targets, a.Target)
		}
	}
	progress.Report(50)
	err := m.w.call(ctx, Call{Verb: "setmany", Setting: as[0].Setting, Batch: len(as)}, targets, func() error {
		for i, a := range as {
			if m.w.Fault != nil {
				if errs[i] = m.w.Fault(Call{Verb: "setmany part", Setting: a.Setting, To: a.To}); errs[i] != nil {
					continue
				}
			}
			errs[i] = m.w.set(a.Setting, a.To)
		}
		return nil
	})
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

type manyReader struct{ many }

func (m *manyReader) ReadMany(ctx context.Context, ss []backends.Setting) ([]backends.Value, []error) {
	values, errs := make([]backends.Value, len(ss)), make([]error, len(ss))
	err := m.w.call(ctx, Call{Verb: "readmany", Setting: ss[0], Batch: len(ss)}, nil, func() error {
		for i, s := range ss {
			values[i], errs[i] = m.w.value(s), m.w.reachable(s)
		}
		return nil
	})
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return values, errs
}
