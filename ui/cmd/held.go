package cmd

import (
	"bytes"
	"io"
	"sync"
)

// A held writer buffers what is written while a screen uses the terminal, and prints it after the screen has ended. A line
// written into a screen would stay there until it is redrawn.
type held struct {
	mu     sync.Mutex
	to     io.Writer
	screen bool
	kept   bytes.Buffer
}

func (h *held) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.screen {
		return h.kept.Write(b)
	}
	return h.to.Write(b)
}

// hold buffers everything from now on.
func (h *held) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.screen = true
}

// release prints what was buffered, and everything afterwards immediately.
func (h *held) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.screen = false
	_, _ = h.kept.WriteTo(h.to) // if this fails, there is no other output left
}
