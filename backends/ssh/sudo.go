package ssh

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// The ways to become root on a target.
const (
	SudoRoot       = "root"     // logged in as root
	SudoNoPassword = "nopasswd" // sudo without a password
	SudoPassword   = "password" // sudo with one
	SudoNone       = "none"     // not at all
)

// Why sudo can fail.
var (
	ErrSudoPassword = errors.New("sudo did not accept the password")
	ErrSudoAsks     = errors.New("sudo needs a password and none is known")
	ErrNotSudoer    = errors.New("sudo does not let this user run commands as root")
	ErrSudoTTY      = errors.New("sudo requires a terminal")
	ErrNoSudo       = errors.New("sudo is not installed")
)

type sudoState struct {
	mode     string // "": not determined yet
	password string // the password that sudo accepted
	err      error  // why mode is none
}

// sudoTries is the number of passwords tried per target: sudo itself allows three per call (sudoers(5), passwd_tries).
const sudoTries = 3

// Sudo returns how to become root on the target: SudoRoot, SudoNoPassword, SudoPassword or SudoNone. With SudoPassword the error
// is nil only if a password is available.
func (c *Conn) Sudo(ctx context.Context) (string, error) {
	s, err := c.sudoState(ctx)
	return s.mode, err
}

// sudoState determines once how to become root: concurrent commands wait, so that a wrong password is tried once and not by each
// of them.
func (c *Conn) sudoState(ctx context.Context) (sudoState, error) {
	l := c.link
	select {
	case l.sudoTurn <- struct{}{}:
		defer func() { <-l.sudoTurn }()
	case <-ctx.Done():
		return sudoState{}, c.ended(ctx)
	}
	l.mu.Lock()
	s := l.sudo
	l.mu.Unlock()
	if s.mode == "" {
		r, err := c.exchange(ctx, Command{Script: `[ "$(id -u)" = 0 ] && exit 100; sudo -n true`}, newFrame(), "")
		if err != nil {
			return s, err
		}
		s = judgeSudo(c.target, r)
	}
	for s.mode == SudoPassword && s.password == "" && s.err == nil {
		password, err := c.askSudo(ctx)
		if err == nil {
			if err = c.trySudo(ctx, password); err == nil {
				s.password = password
			}
		}
		if errors.Is(err, ErrSudoPassword) && c.mayAskAgain(password) {
			continue
		}
		if errors.Is(err, ErrNotSudoer) {
			s.err = err // another password would not help
			break
		}
		if err != nil {
			return s, err
		}
	}
	l.mu.Lock()
	l.sudo = s
	l.mu.Unlock()
	return s, s.err
}

// trySudo runs nothing with sudo, to test a password.
func (c *Conn) trySudo(ctx context.Context, password string) error {
	f := newFrame()
	f.sudo, f.password = true, true
	_, err := c.exchange(ctx, Command{Script: "true"}, f, password)
	return err
}

// mayAskAgain remembers a password that was refused and reports whether the program may prompt for another one.
func (c *Conn) mayAskAgain(refused string) bool {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if refused == "" {
		return false // askSudo got the same password again
	}
	l.refuse(refused)
	l.wrongs++
	if said := l.pool.config.SudoRefused; said != nil {
		said(c.target, refused)
	}
	return l.wrongs < sudoTries
}

// refuse remembers a password under l.mu.
func (l *link) refuse(password string) {
	if l.wrong == nil {
		l.wrong = map[string]bool{}
	}
	l.wrong[password] = true
}

func judgeSudo(t Target, r Result) sudoState {
	switch r.ExitCode {
	case 100:
		return sudoState{mode: SudoRoot}
	case 0:
		return sudoState{mode: SudoNoPassword}
	}
	err := sudoError(t, r.Stderr)
	if errors.Is(err, ErrSudoAsks) {
		return sudoState{mode: SudoPassword}
	}
	return sudoState{mode: SudoNone, err: err}
}

func (c *Conn) askSudo(ctx context.Context) (string, error) {
	var password string
	var err error
	if ask := c.link.pool.config.SudoPassword; ask != nil && !c.sudoSpent() {
		c.link.pool.prompts.Lock()
		password, err = ask(ctx, c.target)
		c.link.pool.prompts.Unlock()
	}
	if err == nil && (password == "" || strings.ContainsAny(password, "\n\x00")) {
		err = ErrSudoAsks
	}
	c.link.mu.Lock()
	if err == nil && c.link.wrong[password] {
		err = ErrSudoPassword
	}
	c.link.mu.Unlock()
	if backends.KindOf(err) == backends.KindInterrupted {
		return "", err
	}
	if err != nil {
		return "", backends.Authf(c.target.String(), hintSudoPassword, "become root as %s: %w", c.User(), err)
	}
	return password, nil
}

// sudoSpent reports whether the maximum number of passwords was refused.
func (c *Conn) sudoSpent() bool {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return c.link.wrongs >= sudoTries
}

// forgetSudo makes the next command ask again after a refusal.
func (c *Conn) forgetSudo(err error) {
	if errors.Is(err, ErrSudoPassword) || errors.Is(err, ErrSudoAsks) {
		c.link.mu.Lock()
		if errors.Is(err, ErrSudoPassword) {
			c.link.refuse(c.link.sudo.password)
		}
		c.link.sudo = sudoState{}
		c.link.mu.Unlock()
	}
}

const hintSudoPassword = "Set RDMA_SETUP_SUDO_PASSWORD, answer the prompt, or set NOPASSWD for the user in sudoers."

var (
	saysAgain = regexp.MustCompile(`(?i)try again|incorrect password|incorrect authentication|authentication failed`)
	saysAsks  = regexp.MustCompile(`(?i)a password is required|authentication is required|no password was provided`)
	saysNever = regexp.MustCompile(`(?i)not in the sudoers|not allowed to (execute|run)|may not run sudo|not permitted|i'm sorry`)
	saysTTY   = regexp.MustCompile(`(?i)must have a tty|must be run from a terminal`)
	saysNone  = regexp.MustCompile(`(?i)sudo: (command )?not found|sudo: no such file|can't exec.*sudo`)
)

func wrongPassword(said string) bool { return saysAgain.MatchString(said) }

func sudoError(t Target, said string) error {
	fail := func(kind backends.ErrorKind, hint string, err error) error {
		return backends.Errorf(kind, t.String(), hint, "become root: %w", err)
	}
	switch {
	case saysTTY.MatchString(said):
		return fail(backends.KindPermission, "Remove requiretty from sudoers for this user, or log in as root.", ErrSudoTTY)
	case saysNever.MatchString(said):
		return fail(backends.KindPermission, "Add the user to sudoers, or log in as another user.", ErrNotSudoer)
	case saysAgain.MatchString(said):
		return fail(backends.KindAuth, hintSudoPassword, ErrSudoPassword)
	case saysAsks.MatchString(said):
		return fail(backends.KindAuth, hintSudoPassword, ErrSudoAsks)
	case saysNone.MatchString(said):
		return fail(backends.KindPermission, "Install sudo on the server, or log in as root.", ErrNoSudo)
	}
	return backends.Errorf(backends.KindPermission, t.String(), "", "become root: sudo said: %s", Excerpt(said))
}
