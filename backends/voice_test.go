package backends_test

import (
	"context"
	"errors"
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
		_, host := v.Waiting(t.Context(), "restart", "esx-01", 30*time.Minute)
		_, guest := v.Waiting(t.Context(), "read the guest", "vm-01", 40*time.Second)
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

// TestPoll: a poll ends when its look says so or fails, with its limit, or with its context; and it is told, on the same target and with
// its own limit, instead of the wait that it is a part of.
func TestPoll(t *testing.T) {
	failed := errors.New("failed")
	for name, tt := range map[string]struct {
		poll  backends.Poll
		look  func(look int, ctx context.Context) (bool, error)
		want  error
		looks int
		after time.Duration
		most  string
	}{
		"over at once": {backends.Poll{Limit: time.Hour}, func(int, context.Context) (bool, error) { return true, nil }, nil, 1, 0, ""},
		"over later": {backends.Poll{Limit: time.Hour}, func(n int, _ context.Context) (bool, error) { return n == 30, nil }, nil, 30,
			29 * time.Second, "1h"},
		"fails": {backends.Poll{Limit: time.Hour}, func(int, context.Context) (bool, error) { return false, failed }, failed, 1, 0,
			""},
		"late": {backends.Poll{Limit: 179 * time.Second / 2}, func(int, context.Context) (bool, error) { return false, nil },
			backends.ErrLate, 90, 179 * time.Second / 2, "1m30s"},
		"longer pauses": {backends.Poll{Limit: 90 * time.Second, Most: 16 * time.Second},
			func(int, context.Context) (bool, error) { return false, nil }, backends.ErrLate, 9, 90 * time.Second, "1m30s"},
		"its context ends": {backends.Poll{}, func(int, context.Context) (bool, error) { return false, nil }, context.DeadlineExceeded, 7200,
			2*time.Hour - time.Second/2, "2h"},
		"a look is cut off": {backends.Poll{Limit: time.Minute}, func(_ int, ctx context.Context) (bool, error) {
			<-ctx.Done()
			return false, nil
		}, backends.ErrLate, 1, time.Minute, "1m"},
		"and says so": {backends.Poll{Limit: time.Minute}, func(_ int, ctx context.Context) (bool, error) {
			<-ctx.Done()
			return false, ctx.Err()
		}, backends.ErrLate, 1, time.Minute, "1m"},
		"its context ends in a look": {backends.Poll{Limit: 3 * time.Hour}, func(_ int, ctx context.Context) (bool, error) {
			<-ctx.Done()
			return false, failed
		}, failed, 1, 2*time.Hour - time.Second/2, "2h"},
		"or not": {backends.Poll{Limit: time.Minute, Whole: true}, func(_ int, ctx context.Context) (bool, error) {
			return backends.Sleep(ctx, time.Hour), nil
		}, nil, 1, time.Hour, "1m"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour-time.Second/2)
			defer cancel()
			var said []string
			v := backends.NewVoice(10*time.Second, nil, func(w backends.Wait) {
				what, most, _ := strings.Cut(w.String(), ": since")
				_, most, _ = strings.Cut(most, ", ")
				said = append(said, what+", "+most)
			})
			ctx, over := (*backends.Voice)(nil).Waiting(backends.WithVoice(ctx, v), "set the address", "vm-01", 0)
			open, installed := v.Waiting(backends.WithVoice(t.Context(), v), "install", "vm-02", 0)
			_, end := v.Waiting(open, "part of a wait without a limit", "", time.Hour)
			whole, restarted := v.Waiting(backends.WithVoice(t.Context(), v), "restart", "esx-01", time.Hour)
			_, answers := v.Waiting(whole, "part of one with a limit", "", time.Minute)
			if got := strings.Join(v.Waits(), "\n"); len(v.Waits()) != 3 ||
				!strings.Contains(got, "vm-02: install, part of a wait without a limit (") || !strings.Contains(got, "esx-01: restart (") {
				t.Errorf("%s: a stop waits for %s", name, got)
			}
			answers()
			restarted()
			end()
			installed()
			began, looks := time.Now(), 0
			tt.poll.What, tt.poll.Every = "reach it", time.Second
			err := tt.poll.Until(ctx, func(ctx context.Context) (bool, error) {
				looks++
				return tt.look(looks, ctx)
			})
			if took := time.Since(began); err != tt.want || looks != tt.looks || took != tt.after {
				t.Errorf("%s: %v after %s and %d looks", name, err, took, looks)
			}
			over()
			v.Close() // nothing is said any more
			if want := "vm-01: set the address, reach it, at most " + tt.most; tt.after > 15*time.Second && !slices.Contains(said, want) ||
				slices.Contains(said, "vm-01: set the address, at most 2h") {
				t.Errorf("%s: said %q, not %q", name, slices.Compact(said), want)
			}
		})
	}
}
