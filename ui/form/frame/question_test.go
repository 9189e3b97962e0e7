package frame

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/live"
)

func TestQuestionsAfterTheEndAreUnanswered(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	w := &Wizard{Send: func(tea.Msg) {}, gone: gone}
	for _, q := range []live.Question{
		{Key: &live.HostKey{Who: "guest vm-01", Address: "10.0.0.11:22", Type: "ssh-ed25519",
			Fingerprint: "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGSLDnUmcL1u2SsVNgQ"}},
		{Secret: "sudo password in the guests"}, {Yes: "Use it for all"},
	} {
		if a := w.ask(t.Context(), q); a != (live.Answer{}) {
			t.Errorf("%+v was answered without a screen: %+v", q, a)
		}
	}
}
