// Package session is one connected piece of work: it logs in to the vCenter that settings or answers name, starts the lab
// that may stand in for it, reaches guests and ESXi shells, and reads what plans and checks need.
package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/esxi"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Session is one connected piece of work: a vCenter, the guests of its VMs, and the lab when it stands in for both.
type Session struct {
	Env    *console.Env
	Set    *console.Settings
	Trace  *console.Trace
	VC     *vsphere.Client
	Lab    *Lab // nil: a real vCenter, or a lab that somebody else has started
	pool   *ssh.Pool
	Guests *guest.Guests // nil until guests are reached
	Shells *esxi.Hosts

	Wide   bool        // surveys read hosts and VMs in detail that the answers do not name, too
	Screen atomic.Bool // a screen has the terminal: nothing else may ask there
	person live.Ask    // asks there; nil: nobody
	pauses pauses

	secrets       sync.Mutex // one question at a time, and what they told
	hostPasswords hostPasswords
	declined      map[*string]bool   // secrets that somebody was asked for and does not have
	refusedBy     map[*string]string // who has refused what was typed last

	mu        sync.Mutex
	answers   *answers.Answers    // whose guests are reached
	paths     map[string]string   // inventory path by VM
	reported  map[string]string   // address that Tools report, by VM
	simulated atomic.Bool         // the screen asks while another goroutine reads
	seen      *backends.Inventory // what was read last
}

// Simulated says that what was read comes from a lab, whoever started it.
func (s *Session) Simulated() bool { return s.simulated.Load() }

// Open connects to the vCenter that flags, environment and answers name. a may be nil.
func Open(ctx context.Context, e *console.Env, set *console.Settings, a *answers.Answers) (*Session, error) {
	s, err := New(ctx, e, set)
	if err != nil {
		return nil, err
	}
	s.answers = a
	if err := s.connect(ctx, a); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// New is a session that is not connected yet; its lab has been started where the settings ask for one.
func New(ctx context.Context, e *console.Env, set *console.Settings) (*Session, error) {
	trace, err := console.OpenTrace(e, set)
	if err != nil {
		return nil, err
	}
	s := &Session{Env: e, Set: set, Trace: trace}
	trace.Covered(s.Screen.Load)
	if set.Lab {
		lab, err := startLab(ctx, e, set)
		if err != nil {
			trace.Close()
			return nil, err
		}
		s.Lab = lab
		lab.into(set)
		trace.Hide(set.Password, set.ESXiPassword, set.GuestPassword, set.SudoPassword)
	}
	return s, nil
}

// connect logs in to the vCenter.
func (s *Session) connect(ctx context.Context, a *answers.Answers) error {
	set := s.Set
	if a != nil {
		if set.URL == "" {
			set.URL = a.VCenter.URL
		}
		if set.Username == "" {
			set.Username = a.VCenter.Username
		}
		if set.Thumbprint == "" {
			set.Thumbprint = a.VCenter.Thumbprint
		}
	}
	if set.URL == "" {
		return console.Usage("use --url, set GOVC_URL, set vcenter.url in the answers, or try everything on the lab with --lab", "no vCenter address is set")
	}
	if set.Username == "" {
		return console.Usage("use --username or set GOVC_USERNAME", "no vCenter account is set")
	}
	for _, what := range set.Unverified() {
		fmt.Fprintln(s.Env.Stderr, "WARNING: "+what)
	}
	cfg := vsphere.Config{
		URL: set.URL, Username: set.Username, Thumbprint: set.Thumbprint, CAFiles: CAFiles(set.CACerts), Insecure: set.Insecure,
		Timeout: set.Timeout, CallLimit: s.Env.CallLimit, UserAgent: "rdma-setup/" + s.Env.Version, Password: s.password(), Trace: s.Trace.Call,
	}
	if s.Env.Terminal() && s.Env.Confirm != nil {
		cfg.Confirm = func(_ context.Context, host, sha256 string) (bool, error) {
			return s.Env.Confirm(fmt.Sprintf("%s presents an unknown certificate.\nSHA-256 %s\nTrust it for this run", host, sha256))
		}
	}
	for try := 1; ; try++ {
		vc, err := vsphere.Dial(ctx, cfg)
		if err == nil {
			s.VC = vc
			return nil
		}
		if try == loginTries || backends.KindOf(err) != backends.KindAuth || !s.typed() {
			return err
		}
		console.PrintError(s.Env.Stderr, err.Error(), "")
		cfg.Password = s.password() // asks again
	}
}

// loginTries is how often a person is asked for the vCenter password: vCenter Single Sign-On locks an account after five
// failures within three minutes (vSphere Authentication, "Edit the vCenter Single Sign-On Lockout Policy").
const loginTries = 3

// typed tells that the vCenter password comes from a person.
func (s *Session) typed() bool {
	return s.Set.Password == "" && s.Set.PasswordFile == "" && !s.Set.PasswordIn && s.Env.Terminal()
}

// CAFiles are the files of a list like that of PATH.
func CAFiles(list string) []string {
	var files []string
	for _, f := range filepath.SplitList(list) {
		if f != "" {
			files = append(files, f)
		}
	}
	return files
}

// password finds the vCenter password once: environment, file, stdin, prompt.
func (s *Session) password() func(context.Context) (string, error) {
	once := sync.OnceValues(func() (string, error) {
		switch set := s.Set; {
		case set.Password != "":
			return set.Password, nil
		case set.PasswordFile != "":
			return firstLineOf(set.PasswordFile)
		case set.PasswordIn:
			return firstLine(s.Env.Stdin)
		case s.Env.Terminal():
			return s.Env.Secret("password of " + set.Username)
		}
		return "", backends.Errorf(backends.KindAuth, "", "set RDMA_SETUP_PASSWORD or GOVC_PASSWORD, or use --password-file or --password-stdin",
			"no password for %s is known, and there is no terminal for a prompt", s.Set.Username)
	})
	return func(context.Context) (string, error) {
		word, err := once()
		s.Trace.Hide(word)
		return word, err
	}
}

func firstLineOf(path string) (string, error) {
	b, err := backends.InputPassword.ReadFile(path)
	if backends.KindOf(err) == backends.KindUsage {
		return "", err
	}
	if err != nil {
		return "", console.Usage("Write the password on the first line.", "password file: %v", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimRight(line, "\r"), nil
}

// firstLine reads a password from a stream that may stay open after it.
func firstLine(r io.Reader) (string, error) {
	most := backends.InputPassword.Limit
	line, err := bufio.NewReader(io.LimitReader(r, most)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if int64(len(line)) == most {
		return "", console.Usage("Write the password on the first line.", "the first line of stdin is longer than %s", backends.SizeText(most))
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// Close logs out and ends what belongs to the session; a lab that an unfinished run needs stays.
func (s *Session) Close() {
	if s.pool != nil {
		s.pool.Close()
	}
	if s.VC != nil {
		s.VC.Close()
	}
	if s.Lab != nil {
		s.Lab.release()
	}
	s.Trace.Close()
}

// Last is what was read last: after a measurement, the state that was measured.
func (s *Session) Last(otherwise *backends.Inventory) *backends.Inventory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		return otherwise
	}
	return s.seen
}

// Want tells the guests what a plan asks for: a set of packages or modules is read by the names that are wanted.
func (s *Session) Want(p *plan.Plan) {
	for _, c := range p.Changes {
		if c.Target.Type == backends.TypeGuest {
			s.Guests.Want(c.Setting, c.To)
		}
	}
}

// Change puts another vCenter in the place of the one before, whose guests are let go.
func (s *Session) Change(vc *vsphere.Client) {
	if s.VC != nil {
		s.VC.Close()
	}
	s.VC = vc
	s.Leave()
}

// Leave lets the guests go: the next survey reaches those of its own answers.
func (s *Session) Leave() {
	if s.pool != nil {
		s.pool.Close()
	}
	s.Guests, s.pool = nil, nil
}
