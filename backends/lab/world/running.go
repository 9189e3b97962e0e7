package world

import (
	"slices"
	"sync"
)

// commands are those that run in guests and hosts at the moment.
type commands struct {
	mu   sync.Mutex
	list []*Event
}

// Begin notes that a command runs in a guest or a host, until end is called.
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

// Running are the commands that run at this moment and take time, oldest first.
func (w *World) Running() []Event {
	w.commands.mu.Lock()
	defer w.commands.mu.Unlock()
	list := make([]Event, len(w.commands.list))
	for i, e := range w.commands.list {
		list[i] = *e
	}
	return list
}
