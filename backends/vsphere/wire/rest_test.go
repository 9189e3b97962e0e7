package wire

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A task that is still running after the limit is not a lost connection, and an interruption is not a timeout.
func TestTaskThatIsNotWaitedFor(t *testing.T) {
	late, cancel := context.WithTimeoutCause(t.Context(), 0, errEndless)
	defer cancel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx  context.Context
		kind backends.ErrorKind
		says string
	}{
		"late":        {late, backends.KindUnreachable, "its task 52 is still running in vCenter after 15m0s"},
		"interrupted": {stopped, backends.KindInterrupted, "interrupted"},
	} {
		<-c.ctx.Done()
		err := Explain(unended(c.ctx, "52", 15*time.Minute), "esx-01", "remediate the host")
		if backends.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "did not answer") {
			t.Errorf("%s: %s, %v", name, backends.KindOf(err), err)
		}
	}
}
