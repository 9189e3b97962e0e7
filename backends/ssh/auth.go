package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A login is one login attempt: it collects the available methods and the refused ones.
type login struct {
	pool     *Pool
	ctx      context.Context
	target   Target
	endpoint endpoint
	clock    *attemptTimer

	agent    net.Conn
	refused  error    // more specific than the library's error
	tried    []string // for display
	password bool     // a password was sent to the server, or withheld because it was refused before
	given    string   // the last password sent
	spent    error    // why no password is left; nil: one may be
	asked    bool     // an earlier answer came too late and was requested again, so it is known now
	late     bool     // a person took so long to answer that the server may have disconnected: nothing was sent
	locked   bool     // a key that the server accepts could not be decrypted
}

// passwordTries is the number of password prompts per login; the same as in OpenSSH (ssh_config(5), NumberOfPasswordPrompts).
const passwordTries = 3

func (l *login) config() (*ssh.ClientConfig, error) {
	c := &ssh.ClientConfig{User: l.endpoint.user, HostKeyCallback: l.verify}
	known, err := l.pool.knownAlgorithms(l.endpoint)
	if err != nil {
		return nil, err
	}
	l.pool.algorithms(c, known)
	c.Auth = []ssh.AuthMethod{ssh.PublicKeysCallback(l.signers)}
	if l.pool.config.Password != nil {
		c.Auth = append(c.Auth, ssh.RetryableAuthMethod(ssh.PasswordCallback(l.askPassword), passwordTries),
			ssh.RetryableAuthMethod(ssh.KeyboardInteractive(l.interact), passwordTries))
	}
	return c, nil
}

func (l *login) done() {
	if l.agent != nil {
		l.agent.Close()
	}
}

// signers returns the keys to offer: those of ssh_config for this host, those configured, then the agent's.
func (l *login) signers() ([]ssh.Signer, error) {
	var list []ssh.Signer
	files := append(strings.Split(l.endpoint.keys, "\n"), l.pool.config.Keys...)
	seen := map[string]bool{"": true}
	for _, name := range files {
		if seen[name] {
			continue
		}
		seen[name] = true
		s, err := l.signer(name)
		if err != nil {
			if slices.Contains(l.pool.config.Keys, name) {
				l.tried = append(l.tried, "key "+name+" ("+err.Error()+")")
			}
			continue
		}
		l.tried = append(l.tried, "key "+name)
		list = append(list, s)
	}
	if sock := l.pool.config.AgentSocket; sock != "" {
		conn, err := net.Dial("unix", sock)
		if err != nil {
			l.tried = append(l.tried, "agent (no answer)")
			return list, nil
		}
		l.agent = conn
		if keys, err := agent.NewClient(conn).Signers(); err == nil && len(keys) > 0 {
			l.tried = append(l.tried, "agent")
			list = append(list, keys...)
		}
	}
	return list, nil
}

// ask serializes prompts and stops the clock meanwhile.
func (l *login) ask(question func()) {
	l.clock.pause(func() {
		l.pool.prompts.Lock()
		defer l.pool.prompts.Unlock()
		question()
	})
}

// ErrLogin is in the error chain of refused logins.
var ErrLogin = errors.New("was refused")

var errNoPassword = errors.New("no password is known")

// askPassword returns the password to send. If it is called again, the previous one was refused: no password is sent twice to one
// machine, because failed attempts lock accounts.
func (l *login) askPassword() (string, error) {
	if l.given != "" {
		l.pool.refuse(l.target, l.endpoint, l.given)
	}
	switch {
	case l.spent != nil:
		return "", l.spent
	case l.late:
		return "", errLate
	}
	var answer string
	var err error
	began := time.Now()
	l.ask(func() { answer, err = l.pool.config.Password(l.ctx, l.target) })
	if err == nil && answer == "" {
		err = errNoPassword
	}
	if err == nil && l.pool.wasRefused(l.endpoint, answer) {
		if !l.password {
			l.tried = append(l.tried, "the password that was rejected before (not sent again)")
		}
		l.password, l.spent = true, errors.New("the password was rejected before")
		return "", l.spent
	}
	if backends.KindOf(err) == backends.KindInterrupted {
		l.refused = err
	}
	switch {
	case err != nil:
		l.spent = err
	case !l.asked && time.Since(began) > l.pool.config.DialTimeout:
		l.late = true
		return "", errLate
	default:
		if !l.password {
			l.tried = append(l.tried, "password")
		}
		l.password, l.given = true, answer
	}
	return answer, err
}

func (l *login) interact(_, _ string, questions []string, echos []bool) ([]string, error) {
	answers := make([]string, len(questions))
	for i := range questions {
		if echos[i] {
			return nil, errors.New("the server asks for more than a password: " + Excerpt(questions[i]))
		}
		var err error
		if answers[i], err = l.askPassword(); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// explain describes a refused login; other errors are returned unchanged.
func (l *login) explain(err error) error {
	text := err.Error()
	refused := l.password || l.locked || l.spent == errNoPassword ||
		strings.Contains(text, "unable to authenticate") || strings.Contains(text, "authentication failures")
	if !refused || hungUp(err) {
		return err
	}
	if l.given != "" {
		l.pool.refuse(l.target, l.endpoint, l.given)
	}
	tried := "neither a key nor a password was given"
	if len(l.tried) > 0 {
		tried = "tried " + strings.Join(l.tried, ", ")
		if l.spent == errNoPassword {
			tried += "; no password was given"
		}
	}
	user, password := "", ""
	if from, told := l.pool.config.Sources[l.target.Class]; told {
		user, password = " ("+from.User+")", " ("+from.Password+")"
	}
	hint := "Use a key that is in authorized_keys on the server (--ssh-key, RDMA_SETUP_SSH_KEY or the SSH agent), or provide the password" +
		password + ". Check the user name" + user + "."
	switch {
	case strings.Contains(text, "authentication failures"):
		hint = "The agent offers more keys than the server accepts. Select the right one with --ssh-key."
	case l.locked:
		hint = "Enter the right passphrase, add the key to the agent, or select another key with --ssh-key."
	case l.password:
		hint = "Check the user name and the password, and PasswordAuthentication in the server's sshd_config."
	}
	who := l.endpoint.user
	if l.target.User+l.pool.settings.get(l.target.Host, "User")+l.pool.config.User == "" {
		who += " (this machine's user, because none is named)"
	}
	return backends.Authf(l.target.String(), hint, "user %s %w at %s: %s",
		who, ErrLogin, l.endpoint.address(), tried)
}

// A keyring caches private keys.
type keyring struct {
	mu   sync.Mutex
	keys map[string]ssh.Signer
}

func (k *keyring) get(file string) ssh.Signer {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys[file]
}

func (k *keyring) keep(file string, s ssh.Signer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		k.keys = map[string]ssh.Signer{}
	}
	k.keys[file] = s
}

func (l *login) signer(file string) (ssh.Signer, error) {
	if s := l.pool.keys.get(file); s != nil {
		return s, nil
	}
	pem, err := backends.InputKey.ReadFile(file)
	if backends.KindOf(err) == backends.KindUsage {
		return nil, fmt.Errorf("ignored: %w", err)
	}
	if err != nil {
		return nil, errors.New("cannot be read")
	}
	s, err := ssh.ParsePrivateKey(pem)
	if locked, is := errors.AsType[*ssh.PassphraseMissingError](err); is {
		k := &lockedKey{login: l, file: file, pem: pem, public: locked.PublicKey}
		if k.public == nil {
			k.public = publicHalf(file)
		}
		if k.public == nil {
			// It is not known in advance whether the server accepts this key: decrypt it now.
			return k.unlock()
		}
		return k, nil
	}
	if err != nil {
		return nil, errors.New("is not a private key")
	}
	l.pool.keys.keep(file, s)
	return s, nil
}

func publicHalf(file string) ssh.PublicKey {
	b, err := backends.InputPublicKey.ReadFile(file + ".pub")
	if err != nil {
		return nil
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey(b)
	if err != nil {
		return nil
	}
	return pub
}

// A lockedKey asks for its passphrase only after the server has accepted the key.
type lockedKey struct {
	login  *login
	file   string
	pem    []byte
	public ssh.PublicKey
}

func (k *lockedKey) PublicKey() ssh.PublicKey { return k.public }

func (k *lockedKey) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return k.SignWithAlgorithm(rand, data, "")
}

func (k *lockedKey) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s, err := k.unlock()
	if err != nil {
		return nil, err
	}
	if as, ok := s.(ssh.AlgorithmSigner); ok && algorithm != "" {
		return as.SignWithAlgorithm(rand, data, algorithm)
	}
	return s.Sign(rand, data)
}

func (k *lockedKey) unlock() (ssh.Signer, error) {
	pool := k.login.pool
	var s ssh.Signer
	var err error
	k.login.ask(func() {
		if s = pool.keys.get(k.file); s != nil {
			return // another login asked for it in the meantime
		}
		if pool.config.Passphrase == nil {
			err = errors.New("is encrypted, and there is no terminal to ask for the passphrase")
			return
		}
		var phrase string
		if phrase, err = pool.config.Passphrase(k.login.ctx, k.file); err != nil {
			return
		}
		if s, err = ssh.ParsePrivateKeyWithPassphrase(k.pem, []byte(phrase)); err != nil {
			err = errors.New("has another passphrase")
			return
		}
		pool.keys.keep(k.file, s)
	})
	if err != nil {
		k.login.locked = true
		k.login.tried = append(k.login.tried, "key "+k.file+" ("+err.Error()+")")
	}
	return s, err
}

// A refusal is a password that a machine refused.
type refusal struct {
	endpoint
	password string
}

func (p *Pool) refuse(t Target, e endpoint, password string) {
	if p.wasRefused(e, password) {
		return
	}
	p.mu.Lock()
	p.refused[refusal{e, password}] = true
	p.mu.Unlock()
	if p.config.PasswordRefused != nil {
		p.config.PasswordRefused(t, password)
	}
}

func (p *Pool) wasRefused(e endpoint, password string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused[refusal{e, password}]
}
