package backends_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// TestEveryLongWaitIsTold: each wait of ten seconds is told once even if there is always something else to say, again and again while
// there is not, and never after its end.
func TestEveryLongWaitIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		said := map[string][]time.Duration{}
		v := backends.NewVoice(10*time.Second, nil, func(w backends.Wait) {
			_, most, _ := strings.Cut(w.Text, ",")
			what := w.Target + ": " + w.What + ":" + most
			said[what] = append(said[what], time.Since(begin))
		})
		host := v.Waiting(t.Context(), "restart", "esx-01", 30*time.Minute)
		guest := v.Waiting(t.Context(), "read the guest", "vm-01", 40*time.Second)
		time.Sleep(time.Second / 2) // between two looks of the voice
		for range 25 {
			v.Spoke()
			time.Sleep(time.Second)
		}
		guest()
		time.Sleep(26 * time.Second)
		host()
		time.Sleep(time.Minute)
		v.Close() // nothing is said any more
		if got := said["vm-01: read the guest: at most 40s"]; len(got) != 1 || got[0] > 12*time.Second {
			t.Errorf("the guest: %v", said)
		}
		got := said["esx-01: restart: at most 30m"]
		if len(got) != 3 || slices.Max(got) > 52*time.Second {
			t.Errorf("the host: %v", said)
		}
	})
}
