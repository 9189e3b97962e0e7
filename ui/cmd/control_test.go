package cmd

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// TestControlSocket serves the socket of a run in a directory with a long name, in which a killed process has left a socket. Two
// controllers send a request at the same time; the journal records the one that pauses, with its process.
func TestControlSocket(t *testing.T) {
	state := filepath.Join(t.TempDir(), strings.Repeat("long-", 25))
	j, err := journal.Create(state, journal.Header{VCenter: "vc", Mode: "pvrdma"}, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	stale := func() {
		t.Helper()
		err := inRunDir(state, j.Run(), func(path string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	stale()
	if _, err := sendControl(t.Context(), state, j.Run(),
		engine.Control{Do: engine.ControlPause}); backends.KindOf(err) != backends.KindUnreachable ||
		!strings.Contains(backends.HintOf(err), "resume") {
		t.Errorf("a stale socket: %v", err)
	}
	r := engine.NewRemote()
	end, err := hearControls(state, j.Run(), r)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(journal.Dir(state, j.Run()), controlSocket))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	over, free := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		_, err := engine.Run(t.Context(), heldJob(j, r, free))
		if err != nil {
			t.Error(err)
		}
	}()
	var paused, refused atomic.Int32
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			_, err := sendControl(t.Context(), state, j.Run(), engine.Control{Do: engine.ControlPause, By: "a liar"})
			if backends.KindOf(err) == backends.KindRefused {
				refused.Add(1)
			} else if err == nil {
				paused.Add(1)
			}
		})
	}
	both.Wait()
	if paused.Load() != 1 || refused.Load() != 1 {
		t.Errorf("%d pauses and %d refusals", paused.Load(), refused.Load())
	}
	if _, err := sendControl(t.Context(), state, j.Run(), engine.Control{Do: "shout"}); backends.KindOf(err) != backends.KindUsage {
		t.Errorf("an unknown control: %v", err)
	}
	if _, err := sendControl(t.Context(), state, j.Run(), engine.Control{Do: engine.ControlContinue}); err != nil {
		t.Error(err)
	}
	close(free)
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("the run does not end")
	}
	end()
	if _, err := sendControl(t.Context(), state, j.Run(),
		engine.Control{Do: engine.ControlPause}); backends.KindOf(err) != backends.KindUnreachable {
		t.Errorf("after the end: %v", err)
	}
	by := ""
	for _, rec := range j.State().Records {
		if rec.Type == journal.TypeControl {
			by += rec.Name + " " + rec.By + "; "
		}
	}
	if strings.Contains(by, "liar") || strings.Count(by, "uid") != 2 || !strings.HasPrefix(by, "pause attach, process") {
		t.Errorf("journal: %s", by)
	}
}

// A slowSetter blocks in Set until it is released.
type slowSetter struct {
	free chan struct{}
	set  atomic.Bool
}

func (s *slowSetter) Read(context.Context, backends.Setting) (backends.Value, error) {
	if s.set.Load() {
		return backends.ValueOf(1), nil
	}
	return backends.Absent, nil
}

func (s *slowSetter) Set(ctx context.Context, _ backends.Setting, _ backends.Value, _ backends.Progress) error {
	select {
	case <-s.free:
		s.set.Store(true)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// heldJob changes one setting after free is closed.
func heldJob(j *journal.Journal, r *engine.Remote, free chan struct{}) engine.Job {
	c := plan.Change{Setting: backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindOption, Name: "x"},
		To: backends.ValueOf(1)}
	return engine.Job{
		Plan: plan.Plan{Changes: []plan.Change{c}}, Journal: j, Remote: r,
		Setters: map[backends.Kind]backends.Setter{backends.KindOption: &slowSetter{free: free}},
	}
}
