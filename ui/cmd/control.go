package cmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// controlSocket is the name of the socket in the directory of a run. Each request (engine.Control) and each answer is a line of
// JSON.
const controlSocket = "control.sock"

// answerTime is how long a control waits for a run that is reading the inventory.
const answerTime = 20 * time.Second

// controlAnswer is the answer to a control.
type controlAnswer struct {
	Text string             `json:"text,omitempty"`
	Err  string             `json:"error,omitempty"`
	Hint string             `json:"hint,omitempty"`
	Kind backends.ErrorKind `json:"error_kind,omitempty"`
}

// inRunDir calls f with a path of the socket of a run.
func inRunDir(state, run string, f func(path string) error) error {
	dir, err := os.Open(journal.Dir(state, run))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return f(socketPath(dir))
}

// hearControls serves the socket of a run until end is called. Only the account of the run, and root, can connect: the directory
// is 0700 and the socket 0600. A socket left behind by a killed attempt is replaced: this process holds the run's lock.
func hearControls(state, run string, r *engine.Remote) (end func(), err error) {
	var l *net.UnixListener
	err = inRunDir(state, run, func(path string) error {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
			return err
		}
		l.SetUnlinkOnClose(false) // the path ends with the open directory
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		if l != nil {
			_ = l.Close()
		}
		return func() {}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			all.Go(func() {
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				defer stop()
				defer func() { _ = c.Close() }()
				answerControls(ctx, c, r)
			})
		}
	})
	return func() {
		cancel()
		_ = l.Close()
		all.Wait()
		_ = os.Remove(filepath.Join(journal.Dir(state, run), controlSocket))
	}, nil
}

// answerControls answers the requests of one connection. The requester is identified by the kernel, not by the request.
func answerControls(ctx context.Context, c *net.UnixConn, r *engine.Remote) {
	by := peer(c)
	in := bufio.NewScanner(c)
	in.Buffer(nil, 4096)
	out := json.NewEncoder(c)
	for in.Scan() {
		var a controlAnswer
		var ask engine.Control
		if err := json.Unmarshal(in.Bytes(), &ask); err != nil {
			a.Err, a.Kind = "this is not a control: "+err.Error(), backends.KindUsage
		} else {
			ask.By = by
			ctx, cancel := context.WithTimeout(ctx, answerTime)
			text, err := r.Ask(ctx, ask)
			cancel()
			if a.Text = text; err != nil {
				a.Err, a.Hint, a.Kind = err.Error(), backends.HintOf(err), backends.KindOf(err)
			}
		}
		if out.Encode(a) != nil {
			return
		}
	}
}

// sendControl sends a request to the process of a run, and waits for its answer.
func sendControl(ctx context.Context, state, run string, ask engine.Control) (string, error) {
	var c net.Conn
	err := inRunDir(state, run, func(path string) (err error) {
		c, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
		return err
	})
	if err != nil {
		return "", backends.Unreachablef(run,
			"To continue a run that has ended or was killed: "+journal.Summarize(state, run).Phase.Continue(run),
			"the run cannot be controlled: %w", err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(answerTime + 5*time.Second))
	var a controlAnswer
	if err = json.NewEncoder(c).Encode(ask); err == nil {
		err = json.NewDecoder(c).Decode(&a)
	}
	if err != nil {
		return "", backends.Unreachablef(run, "Look at how it ended with rdma-setup runs.", "the run has not answered: %w",
			err)
	}
	if a.Err != "" {
		return "", backends.Errorf(a.Kind, "", a.Hint, "%s", a.Err)
	}
	return a.Text, nil
}
