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

// What sudo can refuse.
var (
	ErrSudoPassword = errors.New("sudo did not accept the password")
	ErrSudoAsks     = errors.New("sudo wants a password and none was given")
	ErrNotSudoer    = errors.New("sudo does not let this user run commands as root")
	ErrSudoTTY      = errors.New("sudo insists on a terminal")
	ErrNoSudo       = errors.New("there is no sudo")
)

type sudoState struct {
	mode     string // "": not known yet
	password string
	err      error // why mode is none
}

// Sudo tells how root is reached on the target: SudoRoot, SudoNoPassword, SudoPassword or SudoNone. With SudoPassword
// the error is nil only where there is a password to give.
func (c *Conn) Sudo(ctx context.Context) (string, error) {
	s, err := c.sudoState(ctx)
	return s.mode, err
}

func (c *Conn) sudoState(ctx context.Context) (sudoState, error) {
	l := c.link
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
	if s.mode == SudoPassword && s.password == "" {
		var err error
		if s.password, err = c.askSudo(ctx); err != nil {
			return s, err
		}
	}
	l.mu.Lock()
	l.sudo = s
	l.mu.Unlock()
	return s, s.err
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
	if ask := c.link.pool.config.SudoPassword; ask != nil {
		c.link.pool.prompts.Lock()
		password, err = ask(ctx, c.target)
		c.link.pool.prompts.Unlock()
	}
	if err == nil && (password == "" || strings.ContainsAny(password, "\n\x00")) {
		err = ErrSudoAsks
	}
	c.link.mu.Lock()
	if err == nil && password == c.link.wrong {
		err = ErrSudoPassword
	}
	c.link.mu.Unlock()
	if err != nil {
		return "", backends.Errorf(backends.KindAuth, c.target.String(), hintSudoPassword, "become root as %s: %w", c.User(), err)
	}
	return password, nil
}

// forgetSudo makes the next command ask afresh after a refusal.
func (c *Conn) forgetSudo(err error) {
	if errors.Is(err, ErrSudoPassword) || errors.Is(err, ErrSudoAsks) {
		c.link.mu.Lock()
		if errors.Is(err, ErrSudoPassword) {
			c.link.wrong = c.link.sudo.password
		}
		c.link.sudo = sudoState{}
		c.link.mu.Unlock()
	}
}

const hintSudoPassword = "Set RDMA_SETUP_SUDO_PASSWORD, answer the prompt, or give the user NOPASSWD in sudoers."

var (
	saysAgain = regexp.MustCompile(`(?i)try again|incorrect password|incorrect authentication|authentication failed`)
	saysAsks  = regexp.MustCompile(`(?i)a password is required|authentication is required|no password was provided`)
	saysNever = regexp.MustCompile(`(?i)not in the sudoers|not allowed to (execute|run)|may not run sudo|not permitted|i'm sorry`)
	saysTTY   = regexp.MustCompile(`(?i)must have a tty|must be run from a terminal`)
	saysNone  = regexp.MustCompile(`(?i)sudo: (command )?not found|sudo: no such file|can't exec.*sudo`)
)

func wrongPassword(said string) bool { return saysAgain.MatchString(said) }

// sudoError says in the operator's words why sudo ran nothing.
func sudoError(t Target, said string) error {
	fail := func(kind backends.ErrorKind, hint string, err error) error {
		return backends.Errorf(kind, t.String(), hint, "become root: %w", err)
	}
	switch {
	case saysTTY.MatchString(said):
		return fail(backends.KindPermission, "Remove requiretty from sudoers for this user, or log in as root.", ErrSudoTTY)
	case saysNever.MatchString(said):
		return fail(backends.KindPermission, "Add the user to sudoers, or log in as another one.", ErrNotSudoer)
	case saysAgain.MatchString(said):
		return fail(backends.KindAuth, hintSudoPassword, ErrSudoPassword)
	case saysAsks.MatchString(said):
		return fail(backends.KindAuth, hintSudoPassword, ErrSudoAsks)
	case saysNone.MatchString(said):
		return fail(backends.KindPermission, "Install sudo there, or log in as root.", ErrNoSudo)
	}
	return backends.Errorf(backends.KindPermission, t.String(), "", "become root: sudo said: %s", Clean(said))
}
