package frame

import (
	"context"
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// A keyMsg is the host key of an SSH server that is met for the first time, and waits for the operator's word.
type keyMsg struct {
	ctx    context.Context // done when nobody waits for the answer any more
	key    live.HostKey
	answer chan bool
}

// trust puts the question on the screen, over whatever page is shown; without a screen the answer is no.
func (w *Wizard) trust(ctx context.Context, k live.HostKey) bool {
	m := keyMsg{ctx, k, make(chan bool, 1)}
	w.Send(m)
	select {
	case yes := <-m.answer:
		return yes
	case <-ctx.Done():
	case <-w.gone:
	}
	return false
}

// question is the host key that the operator is asked about now; nil: none.
func (w *Wizard) question() *keyMsg {
	for len(w.unknown) > 0 && w.unknown[0].ctx.Err() != nil {
		w.unknown = w.unknown[1:]
	}
	if len(w.unknown) == 0 {
		return nil
	}
	return &w.unknown[0]
}

// decide takes a key for the question; only a plain word counts.
func (w *Wizard) decide(key string) {
	q := w.question()
	switch key {
	case "y", "n", "esc":
		q.answer <- key == "y"
		w.unknown = w.unknown[1:]
		w.glass.cover() // the next question is another one
	}
}

func (w *Wizard) questionView(q *keyMsg, width int) string {
	return theme.Wrap(fmt.Sprintf("%s, at %s, shows an SSH host key that this machine does not know.\n\n%s, SHA-256 fingerprint\n%s\n\n"+
		"Compare it with what ssh-keygen -lf prints for its key on the machine's console. y trusts it and keeps it in %s, n does not log in there.",
		backends.Clean(q.key.Who), backends.Clean(q.key.Address), backends.Clean(q.key.Type), w.Theme.Accent.Render(backends.Clean(q.key.Fingerprint)), backends.Clean(q.key.KeptIn)), width)
}
