package frame

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/live"
)

func TestNobodyThereTrustsNoHostKey(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	w := &Wizard{Send: func(tea.Msg) {}, gone: gone}
	if w.trust(t.Context(), live.HostKey{Who: "guest vm-01", Address: "10.0.0.11:22", Type: "ssh-ed25519", Fingerprint: "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGSLDnUmcL1u2SsVNgQ"}) {
		t.Error("a host key was trusted without a screen")
	}
}
