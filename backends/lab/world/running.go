package world

import (
	"slices"
	"sync"
)

// commands records the commands that are running in guests and hosts.
type commands struct {
	mu   sync.Mutex
	list []*Event
}

// Begin records that a command is running in a guest or a host until end is called.
func (w *World) Begin(host, vm, argv string) (end func()) {
	e := &Event{What: Process, Host: host, VM: vm, Detail: argv}
	w.commands.mu.Lock()
	defer w.commands.mu.Unlock()
	w.commands.list = append(w.commands.list, e)
	return func() {
		w.commands.mu.Lock()
		defer w.commands.mu.Unlock()
		w.commands.list = slices.DeleteFunc(w.commands.list, func(x *Event) bool { return x == e })
	}
}

// Running returns the running commands that take time, oldest first.
func (w *World) Running() []Event {
	w.commands.mu.Lock()
	defer w.commands.mu.Unlock()
	list := make([]Event, len(w.commands.list))
	for i, e := range w.commands.list {
		list[i] = *e
	}
	return list
}
