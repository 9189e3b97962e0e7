package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
)

// A session is one connected piece of work: a vCenter, the guests of its VMs, and the lab when it stands in for both.
type session struct {
	env    *console.Env
	set    *console.Settings
	vc     *vsphere.Client
	lab    *labProcess
	pool   *ssh.Pool
	guests *guest.Guests
	shells *esxi.Hosts

	screen atomic.Bool                                    // a screen has the terminal: nothing else may ask there
	trust  func(ctx context.Context, k live.HostKey) bool // asks there about a host key; nil: nobody
	pauses pauses

	mu        sync.Mutex
	answers   *answers.Answers  // whose guests are reached
	paths     map[string]string // inventory path by VM
	reported  map[string]string // address that Tools report, by VM
	simulated bool
	seen      *backends.Inventory // what was read last
}

// open connects to the vCenter that flags, environment and answers name. a may be nil.
func open(ctx context.Context, e *console.Env, set *console.Settings, a *answers.Answers) (*session, error) {
	s := &session{env: e, set: set, answers: a}
	if set.Lab {
		lab, err := startLab(ctx, e, set)
		if err != nil {
			return nil, err
		}
		s.lab = lab
		lab.into(set)
	}
	if err := s.connect(ctx, a); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// connect logs in to the vCenter.
func (s *session) connect(ctx context.Context, a *answers.Answers) error {
	set := s.set
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
		return console.Usage("give --url, set GOVC_URL, name it in the answers, or try everything on the lab with --lab", "no vCenter is named")
	}
	if set.Username == "" {
		return console.Usage("give --username or set GOVC_USERNAME", "no vCenter account is named")
	}
	for _, what := range set.Unverified() {
		fmt.Fprintln(s.env.Stderr, "WARNING: "+what)
	}
	cfg := vsphere.Config{
		URL: set.URL, Username: set.Username, Thumbprint: set.Thumbprint, CAFiles: caFiles(set.CACerts), Insecure: set.Insecure,
		Timeout: set.Timeout, CallLimit: s.env.CallLimit, UserAgent: "rdma-setup/" + s.env.Version, Password: s.password(),
	}
	if s.env.Terminal() && s.env.Confirm != nil {
		cfg.Confirm = func(_ context.Context, host, sha256 string) (bool, error) {
			return s.env.Confirm(fmt.Sprintf("%s shows a certificate that is not known.\nSHA-256 %s\nTrust it for this run", host, sha256))
		}
	}
	vc, err := vsphere.Dial(ctx, cfg)
	if err != nil {
		return err
	}
	s.vc = vc
	return nil
}

func caFiles(list string) []string {
	var files []string
	for _, f := range filepath.SplitList(list) {
		if f != "" {
			files = append(files, f)
		}
	}
	return files
}

// password finds the vCenter password once: environment, file, stdin, prompt.
func (s *session) password() func(context.Context) (string, error) {
	once := sync.OnceValues(func() (string, error) {
		switch set := s.set; {
		case set.Password != "":
			return set.Password, nil
		case set.PasswordFile != "":
			return firstLineOf(set.PasswordFile)
		case set.PasswordIn:
			line, err := bufio.NewReader(io.LimitReader(s.env.Stdin, 64<<10)).ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return "", err
			}
			return strings.TrimRight(line, "\r\n"), nil
		case s.env.Terminal():
			return s.env.Secret("password of " + set.Username)
		}
		return "", backends.Errorf(backends.KindAuth, "", "set RDMA_SETUP_PASSWORD or GOVC_PASSWORD, or give --password-file or --password-stdin",
			"no password for %s is known and there is no terminal to ask on", s.set.Username)
	})
	return func(context.Context) (string, error) { return once() }
}

func firstLineOf(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", console.Usage("the file's first line is the password", "password file: %v", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimRight(line, "\r"), nil
}

// close logs out and ends what belongs to the session; a lab that an unfinished run needs stays.
func (s *session) close() {
	if s.pool != nil {
		s.pool.Close()
	}
	if s.vc != nil {
		s.vc.Close()
	}
	if s.lab != nil {
		s.lab.release()
	}
}
