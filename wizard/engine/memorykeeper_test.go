package engine_test

import (
	"context"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A kept setting consists of three files: a unit, the text, and the link that enables the unit. Setting it writes one after the
// other, and the process may be killed in between. Only all three make a value: an incomplete one reads as Absent, which a prior
// may be as well.
const (
	unitPart    = "#unit"
	enabledPart = "#enabled"
)

// Part names a file of a kept setting, for PutPart: "" is its text.
func parts(s backends.Setting) []string {
	return []string{s.ID() + unitPart, s.ID(), s.ID() + enabledPart}
}

// kept returns the value of a kept setting: the text without spaces.
func (w *World) kept(s backends.Setting) backends.Value {
	_, unit := w.files[s.ID()+unitPart]
	_, enabled := w.files[s.ID()+enabledPart]
	bare := strings.ReplaceAll(w.files[s.ID()], " ", "")
	if bare == "" || unit != enabled {
		return backends.Absent
	}
	return backends.ValueOf(bare)
}

// PutPart writes or, with an empty text, removes one file of a kept setting, as another program would: "unit", "enabled", or ""
// for its text.
func (w *World) PutPart(s backends.Setting, part, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := s.ID()
	if part != "" {
		name += "#" + part
	}
	w.write(name, text)
}

func (w *World) write(name, text string) {
	if text == "" && strings.Contains(name, "#") {
		delete(w.files, name)
		return
	}
	w.files[name] = text
}

// items returns the files of a setting.
func (w *World) items(s backends.Setting) backends.Kept {
	var k backends.Kept
	for _, name := range parts(s) {
		i := backends.Item{Kind: backends.ItemFile, Name: name}
		if text := w.files[name]; text != "" {
			i.State, i.Content = backends.ValueOf(text), []byte(text)
		}
		k.Items = append(k.Items, i)
	}
	return k
}

type keeper struct{ plain }

// Set writes the files one after the other, and removes them in reverse order.
func (k *keeper) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	progress.Report(50)
	var steps []fileStep
	for i, name := range parts(s) {
		st := fileStep{name: name, text: "ours"}
		if i == 1 && !to.IsAbsent() {
			st.text = to.String()
		}
		if to.IsAbsent() {
			st.text = ""
			steps = append([]fileStep{st}, steps...)
		} else {
			steps = append(steps, st)
		}
	}
	return k.write(ctx, Call{Verb: "set", Setting: s, To: to}, steps)
}

type fileStep struct{ name, text string }

// write performs the steps of a call; the process may be killed before and after each.
func (k *keeper) write(ctx context.Context, c Call, steps []fileStep) error {
	return k.w.stepwise(ctx, c, len(steps), func(i int) error {
		if err := k.w.reachable(c.Setting); err != nil {
			return err
		}
		k.w.write(steps[i].name, steps[i].text)
		return nil
	})
}

func (k *keeper) Keep(ctx context.Context, s backends.Setting, _ backends.Value) (kept backends.Kept, err error) {
	err = k.w.call(ctx, Call{Verb: "keep", Setting: s}, nil, func() error {
		kept = k.w.items(s)
		return k.w.reachable(s)
	})
	return kept, err
}

func (k *keeper) Observe(ctx context.Context, s backends.Setting, kept backends.Kept) (now backends.Kept, err error) {
	err = k.w.call(ctx, Call{Verb: "observe", Setting: s}, nil, func() error {
		for _, i := range k.w.items(s).Items {
			if kept.Item(i.Kind, i.Name) != nil {
				now.Items = append(now.Items, i)
			}
		}
		return k.w.reachable(s)
	})
	return now.Bare(), err
}

// Restore restores the recorded files in reverse order.
func (k *keeper) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, _ backends.Progress) error {
	var steps []fileStep
	for _, i := range kept.Items {
		steps = append([]fileStep{{i.Name, string(i.Content)}}, steps...)
	}
	return k.write(ctx, Call{Verb: "restore", Setting: s}, steps)
}
