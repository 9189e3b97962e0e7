package guest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// workDir contains root's working files while a step runs: a directory in a file system that only root can write to.
const workDir = "/run/rdma-setup"

// lockDir is the directory that a step locks: it always exists and only root can open it.
const lockDir = "/root"

func script(name string, args ...string) string { return ssh.Script(name, args...) }

// patterned returns a script of assets/scripts whose arguments are patterns of file names of this program, which the shell
// expands.
func patterned(name, patterns string) string {
	return "set -- " + patterns + "\n" + assets.Script(name)
}

// A step is one remote command that changes something as root. It runs under assets/scripts/guard.sh: alone in its guest, with
// its name and start time recorded. A step that outlives its connection (sshd does not end the commands of a killed client) is
// found by the next one, which waits for its end.
type step struct {
	what string // for display: "renew the initial RAM disk"
	keep bool   // must not be interrupted: a package manager, an initial RAM disk, an installer
	undo bool   // a change of an address that an earlier process has not confirmed is undone, not waited for
	ssh.Command
}

// stepLimit is the default limit of a step.
const stepLimit = 2 * time.Minute

// Exit codes before a step begins.
const (
	exitUntrusted = 70 // step.sh: the working directory is not to be trusted, or the script did not arrive whole
	exitBusy      = 75 // guard.sh: another step did not end within its own limit
	exitWatched   = 76 // step.sh: systemd does not stop the watch over an earlier change of an address
)

func guarded(s step) string {
	limit := s.Limit
	if limit <= 0 {
		limit = stepLimit
	}
	body, sum := s.Script, ""
	if body == "" && len(s.Argv) > 0 {
		body = ssh.QuoteAll(s.Argv...)
	}
	if body != "" {
		hash := sha256.Sum256([]byte(body + "\n"))
		sum = hex.EncodeToString(hash[:])
	}
	keep := "no"
	switch {
	case s.keep:
		keep = "yes"
	case s.undo:
		keep = "undo"
	}
	return script("guard.sh", workDir, lockDir, s.what, strconv.Itoa(max(1, int(limit/time.Second))), keep, sum, body,
		assets.Script("step.sh"))
}

// waiting is how long a step waits for another one at most: as long as an installation of MLNX_OFED may take.
const waiting = ofedLimit + 5*time.Minute

// step runs a step. Its result is that of the script; a script that exits with an error is not an error of step.
func (g *Guests) step(ctx context.Context, vm string, s step) (ssh.Result, error) {
	cmd := s.Command
	cmd.Script, cmd.Argv, cmd.Sudo, cmd.What = guarded(s), nil, true, s.what
	if s.Limit > 0 {
		cmd.Limit = s.Limit + time.Minute
	} else {
		cmd.Limit = stepLimit + time.Minute
	}
	// The limit counts from the start of the step, without the time it waits for another.
	limit := cmd.Limit
	cmd.Limit = limit + waiting
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(limit, func() { cancel(ssh.ErrTooSlow) })
	defer timer.Stop()
	cmd.OnLine = func(line string) {
		switch note, _ := strings.CutPrefix(line, mark); {
		case note == line:
			return
		case note == "begins":
			timer.Reset(limit)
		case strings.HasPrefix(note, "waiting "):
			began, what := waitsFor(note)
			timer.Reset(waiting)
			g.mu.Lock()
			if g.waits == nil {
				g.waits = map[string]int{}
			}
			g.waits[vm]++
			g.mu.Unlock()
			if g.options.Waiting != nil {
				g.options.Waiting(vm, what, began)
			}
		}
	}
	r, err := g.Run(ctx, vm, cmd)
	var begun bool
	r.Stdout, begun = withoutNotes(r.Stdout)
	switch {
	case err != nil:
		g.unsettle(vm)
		if s.keep {
			err = fmt.Errorf("%w (the step %q may still be running in the guest; the next run, resume or rollback waits for it)", err, s.what)
		}
	case begun:
	case r.ExitCode == exitBusy:
		return r, backends.Transientf(label(vm),
			"Check what is still running (ps ax in the guest), then run rdma-setup resume.",
			"%s: another step of rdma-setup is still running in the guest", s.what)
	case r.ExitCode == exitWatched:
		return r, backends.Transientf(label(vm),
			"Find out in the guest why systemd does not stop it (systemctl list-units 'rdma-setup-watch-*'), then run rdma-setup resume.",
			"%s: systemd does not stop the watch over an earlier change of an address", s.what)
	case r.ExitCode == exitUntrusted:
		return r, backends.Permanentf(label(vm), "Find out who created it, then remove it.", "%s: %s", s.what,
			lastLines(r.Stderr, 1))
	}
	return r, err
}

// heard counts how often a step in a guest has waited for another.
func (g *Guests) heard(vm string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waits[vm]
}

// waitsFor parses a message of guard.sh: "waiting BEGAN LIMIT STEP".
func waitsFor(note string) (began time.Time, what string) {
	w := strings.SplitN(note, " ", 4)
	if len(w) < 4 {
		return time.Time{}, ""
	}
	n, _ := strconv.ParseInt(w[1], 10, 64)
	return time.Unix(n, 0), ssh.Excerpt(w[3])
}

// withoutNotes removes the messages of guard.sh and step.sh, and reports whether the step began.
func withoutNotes(out string) (_ string, begun bool) {
	for strings.HasPrefix(out, mark+"waiting ") {
		_, out, _ = strings.Cut(out, "\n")
	}
	return strings.CutPrefix(out, mark+"begins\n")
}

// change runs a step and fails unless it succeeds.
func (g *Guests) change(ctx context.Context, vm string, s step) (string, error) {
	r, err := g.step(ctx, vm, s)
	if err != nil {
		return r.Stdout, fmt.Errorf("%s: %w", s.what, err)
	}
	if r.ExitCode != 0 {
		return r.Stdout, failed(vm, s.what, r)
	}
	return r.Stdout, nil
}

// settle waits, once for each guest, for a step that an earlier process has left running, because facts read meanwhile are soon
// outdated. It does not wait in guests without root access.
func (g *Guests) settle(ctx context.Context, vm string) error { return g.ended(ctx, vm, false) }

func (g *Guests) ended(ctx context.Context, vm string, undo bool) error {
	g.mu.Lock()
	idle, known := g.idle[vm]
	g.mu.Unlock()
	if idle || !known && g.options.Alone {
		return nil
	}
	c, err := g.conn(ctx, vm)
	if err != nil {
		return err
	}
	if _, err := c.Sudo(ctx); err == nil {
		if _, err := g.step(ctx, vm, step{what: "wait for an earlier step", undo: undo}); err != nil {
			return err
		}
	}
	g.mu.Lock()
	g.idle[vm] = true
	g.mu.Unlock()
	return nil
}

// Settle waits for a step that an earlier process left running in a guest, such as a package manager that outlives the
// connection and changes what a survey reads. It returns at once if no step is running. A change of an address that the earlier process
// did not confirm is undone, because only that process could compare the guest's other interfaces with before: it must have ended.
func (g *Guests) Settle(ctx context.Context, vm string) error {
	g.unsettle(vm)
	return g.ended(ctx, vm, true)
}

// unsettle makes the next read wait again: a step may be running whose end was not reported.
func (g *Guests) unsettle(vm string) {
	g.mu.Lock()
	g.idle[vm] = false
	g.mu.Unlock()
}
