package session

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/live"
)

// esxiTries is the number of password prompts per host: ESXi locks an account after five failures.
const esxiTries = 2

// hostPasswords are the passwords of single ESXi hosts; the settings hold the common one.
type hostPasswords struct {
	byHost  map[string]string
	refused map[string]bool // by hosts: the common password is not theirs
	asked   map[string]int
	decided bool  // it was decided whether a typed password is also for the other hosts
	read    bool  // the file of --esxi-passwords
	err     error // of that file, for every host: the password of another source may lock the account
}

// secret returns a known secret or prompts for it, until the answer is empty. No time limit counts while it waits.
func (s *Session) secret(ctx context.Context, known *console.Secret, what string) (string, error) {
	s.secrets.Lock()
	defer s.secrets.Unlock()
	if err := s.readSecret(ctx, known); err != nil {
		return "", err
	}
	if known.Text != "" || s.declined[known] || !s.mayAsk() {
		return known.Text, nil
	}
	if by := s.refusedBy[known]; by != "" {
		what += " (" + by + " refused it; once more)"
	}
	answer, err := s.askPerson(ctx, what)
	if err != nil {
		return "", err
	}
	if answer == "" && ctx.Err() == nil {
		s.declined = with(s.declined, known, true)
	}
	known.Text = answer
	return answer, nil
}

// readSecret reads a secret that is given by a command. No time limit counts meanwhile: a person may have to open a safe.
func (s *Session) readSecret(ctx context.Context, known *console.Secret) error {
	if !known.Given() {
		return nil
	}
	defer s.asking()()
	err := known.Read(ctx, s.Env)
	s.Trace.Hide(known.Text)
	return err
}

// with sets a key in a map that may be nil.
func with[V any](m map[*console.Secret]V, key *console.Secret, v V) map[*console.Secret]V {
	if m == nil {
		m = map[*console.Secret]V{}
	}
	m[key] = v
	return m
}

// AskAgain makes secrets be prompted for again that were declined, or refused too often, before.
func (s *Session) AskAgain() {
	if s.pool != nil {
		s.pool.AskAgain()
	}
	s.secrets.Lock()
	defer s.secrets.Unlock()
	clear(s.declined)
}

// mayAsk reports whether someone can be prompted, on the terminal or on the screen.
func (s *Session) mayAsk() bool {
	return s.Env.Terminal() && (!s.Screen.Load() || s.onScreen() != nil)
}

// askPerson prompts for a secret, on the screen if there is one.
func (s *Session) askPerson(ctx context.Context, what string) (string, error) {
	defer s.asking()()
	if !s.Screen.Load() {
		return s.Env.Secret(what)
	}
	a := s.onScreen()(ctx, live.Question{Secret: what})
	if a.Interrupted {
		return "", console.ErrInterrupted
	}
	return a.Text, nil
}

// confirm asks for yes or no, on the screen if there is one.
func (s *Session) confirm(ctx context.Context, question string) (bool, error) {
	defer s.asking()()
	if !s.Screen.Load() {
		return s.Env.Confirm(question)
	}
	a := s.onScreen()(ctx, live.Question{Yes: question})
	if a.Interrupted {
		return false, console.ErrInterrupted
	}
	return a.Yes, nil
}

// forget drops a secret that a target has refused, if another one can be prompted for.
func (s *Session) forget(known *console.Secret, by ssh.Target, refused string) {
	s.secrets.Lock()
	defer s.secrets.Unlock()
	if known.Text == refused && s.mayAsk() {
		known.Text = ""
		s.refusedBy = with(s.refusedBy, known, by.String())
	}
}

// esxiPassword returns the password of one host: from the file, the common one, or by prompt. What is typed for the first host is
// used for the others only if the operator agrees.
func (s *Session) esxiPassword(ctx context.Context, host string) (string, error) {
	s.secrets.Lock()
	defer s.secrets.Unlock()
	h := &s.hostPasswords
	if !h.read {
		h.read = true
		h.byHost, h.refused, h.asked = map[string]string{}, map[string]bool{}, map[string]int{}
		h.err = h.readFile(s.Set.ESXiPasswords)
	}
	if h.err != nil {
		return "", h.err
	}
	if p := h.byHost[host]; p != "" {
		return p, nil
	}
	if err := s.readSecret(ctx, &s.Set.ESXiPassword); err != nil {
		return "", err
	}
	if p := s.Set.ESXiPassword.Text; p != "" && !(h.refused[host] && s.mayAsk()) {
		return p, nil
	}
	if !s.mayAsk() || h.asked[host] == esxiTries {
		return "", nil
	}
	h.asked[host]++
	what := "password of the ESXi host " + host
	if h.refused[host] {
		what += " (refused; once more)"
	}
	p, err := s.askPerson(ctx, what)
	if err != nil || p == "" {
		return "", err
	}
	h.byHost[host] = p
	if !h.decided && s.Set.ESXiPassword.Text == "" && (s.Screen.Load() || s.Env.Confirm != nil) {
		h.decided = true
		same, err := s.confirm(ctx, "Use this password for the other ESXi hosts too")
		if err != nil {
			return "", err
		}
		if same {
			s.Set.ESXiPassword.Text = p
		}
	}
	return p, nil
}

// forgetESXi makes the next login to a host prompt again.
func (s *Session) forgetESXi(host string) {
	s.secrets.Lock()
	defer s.secrets.Unlock()
	if s.mayAsk() && s.hostPasswords.read {
		delete(s.hostPasswords.byHost, host)
		s.hostPasswords.refused[host] = true
	}
}

// readFile reads lines with a host name and its password; empty lines and lines that begin with # are ignored.
func (h *hostPasswords) readFile(path string) error {
	if path == "" {
		return nil
	}
	text, err := backends.InputPassword.ReadFile(path)
	if backends.KindOf(err) == backends.KindUsage {
		return err
	}
	if err != nil {
		return console.Usage("Write a host name, a space and its password on each line.", "passwords of the ESXi hosts: %v", err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		host, password, ok := strings.Cut(line, " ")
		if !ok || host == "" || password == "" {
			return console.Usage("Write a host name, a space and its password on each line.", "passwords of the ESXi hosts: %s",
				fmt.Sprintf("line %d of %s has no password", n, path))
		}
		h.byHost[host] = password
	}
	return nil
}

// pauses measures the time of prompts to the operator, so that time limits do not count it.
type pauses struct {
	mu    sync.Mutex
	open  int
	since time.Time
	spent time.Duration
}

// now reports whether somebody is prompted.
func (p *pauses) now() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open > 0
}

// asking starts a prompt and returns the function that ends it.
func (s *Session) asking() (answered func()) {
	p := &s.pauses
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open++; p.open == 1 {
		p.since = time.Now()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open--; p.open == 0 {
			p.spent += time.Since(p.since)
		}
	}
}

// total returns the total time of prompts so far.
func (p *pauses) total() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open > 0 {
		return p.spent + time.Since(p.since)
	}
	return p.spent
}

// within returns a context with a limit that excludes the time of prompts.
func (s *Session) within(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	began, before := time.Now(), s.pauses.total()
	var look func()
	look = func() {
		left := limit + s.pauses.total() - before - time.Since(began)
		if left <= 0 {
			cancel(cause)
			return
		}
		timer := time.AfterFunc(max(left, 10*time.Millisecond), look)
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	look()
	return ctx, func() { cancel(context.Canceled) }
}

// Asks sets the function that prompts while a screen uses the terminal.
func (s *Session) Asks(ask live.Ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.person = ask
}

// onScreen returns the function that prompts on the screen; nil if there is no screen.
func (s *Session) onScreen() live.Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.person
}

// trusted asks on the screen about a host key, which is added to the first file if the answer is yes.
func (s *Session) trusted(ctx context.Context, k ssh.HostKey, files []string) bool {
	ask := s.onScreen()
	if ask == nil || len(files) == 0 {
		return false
	}
	return ask(ctx, live.Question{Key: &live.HostKey{Who: k.Target.String(), Address: k.Address, Type: k.Type, Fingerprint: k.Fingerprint,
		KeptIn: files[0]}}).Yes
}
