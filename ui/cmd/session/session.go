// Package session is a connected session: it logs in to the vCenter that settings or answers name, starts the lab that may
// replace it, connects to guests and ESXi shells, and reads what plans and checks need.
package session

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/esxi"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Session is a connection to a vCenter and the guests of its VMs, and the lab if it replaces both.
type Session struct {
	Env    *console.Env
	Set    *console.Settings
	Trace  *console.Trace
	VC     *vsphere.Client
	Lab    *Lab // nil: a real vCenter, or a lab that was started separately
	pool   *ssh.Pool
	Guests *guest.Guests // nil until guests are connected
	Shells *esxi.Hosts

	Wide    bool        // surveys also read details of hosts and VMs that the answers do not name
	InRun   atomic.Bool // Notices are read
	Notices chan string
	// Patience is the longest wait for other runs that measure, 0 for the default; it ends when Stop is closed.
	Patience time.Duration
	Stop     <-chan struct{}
	Screen   atomic.Bool // a screen uses the terminal: nothing else may prompt there
	person   live.Ask    // prompts on the screen; nil: none
	pauses   pauses
	voice    *backends.Voice // tells what is waited for outside runs

	secrets       sync.Mutex // one prompt at a time, and the answers
	hostPasswords hostPasswords
	declined      map[*console.Secret]bool   // secrets that the operator does not have
	refusedBy     map[*console.Secret]string // targets that refused the secret typed last

	mu        sync.Mutex
	answers   *answers.Answers    // those whose guests are connected
	paths     map[string]string   // inventory path by VM
	reported  map[string]string   // address reported by VMware Tools, by VM
	simulated atomic.Bool         // the screen asks while another goroutine reads
	seen      *backends.Inventory // the inventory that was read last
	gpuPairs  []string            // results between the GPUs of one VM, for the report
	remarks   []string            // on the conditions of the measurement, for the report
}

// Simulated reports whether the data comes from a lab, whoever started it.
func (s *Session) Simulated() bool { return s.simulated.Load() }

// Open connects to the vCenter in flags, environment and answers. a may be nil.
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

// New returns a session that is not connected yet; its lab has been started if the settings request one.
func New(ctx context.Context, e *console.Env, set *console.Settings) (*Session, error) {
	trace, err := console.OpenTrace(e, set)
	if err != nil {
		return nil, err
	}
	s := &Session{Env: e, Set: set, Trace: trace, Notices: make(chan string, 16)}
	trace.Covered(s.Screen.Load)
	s.voice = backends.NewVoice(10*time.Second, nil, func(w backends.Wait) {
		if !s.Screen.Load() && !s.pauses.now() {
			fmt.Fprintln(s.Env.Stderr, "waiting: "+w.String())
		}
	})
	if set.Lab {
		_, over := s.Waiting(ctx, "start the lab", "", labStart)
		lab, err := startLab(ctx, e, set)
		over()
		if err != nil {
			s.Close()
			return nil, err
		}
		s.Lab = lab
		lab.into(set)
	}
	err = set.Usable(e)
	if err == nil {
		err = set.Password.Read(ctx, e)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	trace.Hide(set.Secrets()...)
	return s, nil
}

func (s *Session) connect(ctx context.Context, a *answers.Answers) error {
	set := s.Set
	if a != nil {
		set.URL, set.Username = cmp.Or(set.URL, a.VCenter.URL), cmp.Or(set.Username, a.VCenter.Username)
		set.Thumbprint = cmp.Or(set.Thumbprint, a.VCenter.Thumbprint)
	}
	if set.URL == "" {
		return console.Usage("use --url, set GOVC_URL, set vcenter.url in the answers, or try everything on the lab with --lab",
			"no vCenter address is set")
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
		Notice: s.notice,
	}
	if s.Env.Twin != nil {
		cfg.Dial = s.Env.Twin.Dial
	}
	if s.Env.Terminal() && s.Env.Confirm != nil {
		cfg.Confirm = func(_ context.Context, host, sha256 string) (bool, error) {
			return s.Env.Confirm(fmt.Sprintf("%s presents an unknown certificate.\nSHA-256 %s\nTrust it for this run", host, sha256))
		}
	}
	for try := 1; ; try++ {
		_, over := s.Waiting(ctx, "connect and log in", set.URL, 2*cmp.Or(set.Timeout, wire.DefaultTimeout))
		vc, err := vsphere.Dial(ctx, cfg)
		over()
		if err == nil {
			s.VC = vc
			return nil
		}
		if try == loginTries || backends.KindOf(err) != backends.KindAuth || !s.typed() {
			return err
		}
		console.PrintError(s.Env.Stderr, err.Error(), "")
		cfg.Password = s.password() // prompts again
	}
}

// Waiting notes that something is waited for until the returned function is called; see backends.Voice.
func (s *Session) Waiting(ctx context.Context, what, target string, limit time.Duration) (within context.Context, over func()) {
	return s.voice.Waiting(ctx, what, target, limit)
}

// Voiced returns a context whose waits are told.
func (s *Session) Voiced(ctx context.Context) context.Context {
	return backends.WithVoice(ctx, s.voice)
}

// notice passes on a sentence for the operator: to the events of a run if there is one, else to the terminal.
func (s *Session) notice(text string) {
	if s.InRun.Load() {
		select {
		case s.Notices <- text:
		default: // nobody reads them any more
		}
	} else if !s.Screen.Load() {
		fmt.Fprintln(s.Env.Stderr, "note: "+backends.Clean(text))
	}
}

// loginTries is the number of prompts for the vCenter password: vCenter Single Sign-On locks an account after five failures
// within three minutes (vSphere Authentication, "Edit the vCenter Single Sign-On Lockout Policy").
const loginTries = 3

func (s *Session) typed() bool {
	return !s.Set.Password.Known() && s.Env.Terminal()
}

// CAFiles splits a list in the form of PATH.
func CAFiles(list string) []string {
	return slices.DeleteFunc(filepath.SplitList(list), func(f string) bool { return f == "" })
}

// password returns the vCenter password of the settings, or prompts for it once.
func (s *Session) password() func(context.Context) (string, error) {
	once := sync.OnceValues(func() (string, error) {
		switch set := s.Set; {
		case set.Password.Known():
			return set.Password.Text, nil
		case s.Env.Terminal():
			return s.Env.Secret("password of " + set.Username)
		}
		return "",
			backends.Authf("",
				"set RDMA_SETUP_PASSWORD or GOVC_PASSWORD, or use --password-file, --password-stdin or --password-command",
				"no password for %s is known, and there is no terminal for a prompt", s.Set.Username)
	})
	return func(context.Context) (string, error) {
		word, err := once()
		s.Trace.Hide(word)
		return word, err
	}
}

// Close logs out and closes the session; a lab that an unfinished run needs stays.
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
	s.voice.Close()
	s.Trace.Close()
}

// Last returns the inventory that was read last: after a measurement, the state that was measured.
func (s *Session) Last(otherwise *backends.Inventory) *backends.Inventory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		return otherwise
	}
	return s.seen
}

// Want announces the requested values of a plan to the guests, where a set of packages or modules is read by its requested names, and to
// the shells of hosts.
func (s *Session) Want(p *plan.Plan) {
	for _, c := range p.Changes {
		if c.Target.Type == backends.TypeGuest {
			s.Guests.Want(c.Setting, c.To)
		}
		if s.Shells != nil {
			s.Shells.Want(c.Setting)
		}
	}
}

// Change replaces the vCenter, and disconnects the guests of the previous one.
func (s *Session) Change(vc *vsphere.Client) {
	if s.VC != nil {
		s.VC.Close()
	}
	s.VC = vc
	s.Leave()
}

// Leave disconnects the guests: the next survey connects to those of its own answers.
func (s *Session) Leave() {
	if s.pool != nil {
		s.pool.Close()
	}
	s.Guests, s.pool = nil, nil
}
