package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A HostKey is the key of a host that is contacted for the first time.
type HostKey struct {
	Target      Target
	Address     string // host:port
	Type        string // ssh-ed25519
	Fingerprint string // SHA256:...
}

// knownKeys are the parsed known_hosts files.
type knownKeys struct {
	stamp string // names, sizes and times of the files
	db    *knownhosts.HostKeyDB
}

// knownHosts reads the known_hosts files that exist, and again if one has changed: otherwise a thousand guests would mean reading
// a thousand lines twice for each. The caller holds p.hosts.
func (p *Pool) knownHosts() (*knownhosts.HostKeyDB, error) {
	var files []string
	var stamp strings.Builder
	for _, f := range p.config.KnownHosts {
		if info, err := os.Stat(f); err == nil {
			if err := backends.InputKnownHosts.Fits(f, info); err != nil {
				return nil, err
			}
			if !info.Mode().IsRegular() {
				continue // /dev/null
			}
			files = append(files, f)
			fmt.Fprintf(&stamp, "%q %d %d\n", f, info.Size(), info.ModTime().UnixNano())
		}
	}
	if p.known.db != nil && p.known.stamp == stamp.String() {
		return p.known.db, nil
	}
	db, err := knownhosts.NewDB(files...)
	if err != nil {
		return nil, backends.Usagef("", "Correct or remove the line.", "read the known hosts: %w", err)
	}
	p.known = knownKeys{stamp.String(), db}
	return db, nil
}

func (p *Pool) knownAlgorithms(e endpoint) ([]string, error) {
	p.hosts.Lock()
	defer p.hosts.Unlock()
	db, err := p.knownHosts()
	if err != nil {
		return nil, err
	}
	return db.HostKeyAlgorithms(e.known()), nil
}

// verify is the library's host key callback; it stores the error, because the library's wrapping hides it.
func (l *login) verify(name string, remote net.Addr, key ssh.PublicKey) error {
	l.refused = l.check(name, remote, key)
	if l.refused == nil || !errors.Is(l.refused, errFirstUse) {
		return l.refused
	}
	// Check again after the prompt: another connection may have accepted the same host in the meantime.
	l.ask(func() {
		if l.refused = l.check(name, remote, key); l.refused != nil && errors.Is(l.refused, errFirstUse) {
			l.refused = l.firstUse(l.ctx, name, key)
		}
	})
	return l.refused
}

var errFirstUse = errors.New("the host key is not known")

func (l *login) check(name string, remote net.Addr, key ssh.PublicKey) error {
	l.pool.hosts.Lock()
	defer l.pool.hosts.Unlock()
	db, err := l.pool.knownHosts()
	if err != nil {
		return err
	}
	// The address behind a jump host or a proxy is not that of the host, so only the name is looked up.
	err = db.HostKeyCallback()(name, &net.TCPAddr{}, key)
	var revoked *xknownhosts.RevokedError
	var unknown *xknownhosts.KeyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &revoked):
		return backends.Authf(l.target.String(), "Do not log in to this server until you know why.",
			"the host key %s of %s is revoked in %s:%d", ssh.FingerprintSHA256(key), name, revoked.Revoked.Filename, revoked.Revoked.Line)
	case errors.As(err, &unknown) && len(unknown.Want) == 0:
		return backends.Authf(l.target.String(),
			l.pool.addKeyHint(),
			"%w: %s presents %s %s", errFirstUse, name, key.Type(), ssh.FingerprintSHA256(key))
	case errors.As(err, &unknown):
		return l.changed(name, key, unknown.Want)
	}
	return backends.Authf(l.target.String(), "", "check the host key of %s: %w", name, err)
}

func (l *login) changed(name string, key ssh.PublicKey, want []xknownhosts.KnownKey) error {
	known := make([]string, len(want))
	for i, k := range want {
		known[i] = fmt.Sprintf("%s %s (%s:%d)", k.Key.Type(), ssh.FingerprintSHA256(k.Key), k.Filename, k.Line)
	}
	return backends.Authf(l.target.String(),
		fmt.Sprintf(
			"If the machine was reinstalled, verify its key on its console, then run: ssh-keygen -f %s -R %s. Otherwise somebody may be "+
				"intercepting the connection.",
			Quote(want[0].Filename), Quote(knownhosts.Normalize(name))),
		"the host key of %s has changed: the known key is %s, it now presents %s %s", name, strings.Join(known, ", "), key.Type(),
		ssh.FingerprintSHA256(key))
}

func (l *login) firstUse(ctx context.Context, name string, key ssh.PublicKey) error {
	if l.pool.config.Confirm == nil {
		return l.refused
	}
	yes, err := l.pool.config.Confirm(ctx, HostKey{Target: l.target, Address: name, Type: key.Type(), Fingerprint: ssh.FingerprintSHA256(key)})
	if err != nil {
		return backends.Authf(l.target.String(), "", "ask about the host key of %s: %w", name, err)
	}
	if !yes {
		return backends.Authf(l.target.String(), l.pool.addKeyHint(), "the host key of %s (%s) was not accepted", name,
			ssh.FingerprintSHA256(key))
	}
	if err := l.pool.remember(name, key); err != nil {
		return backends.Authf(l.target.String(), "Make the file writable.", "keep the host key of %s: %w", name, err)
	}
	return nil
}

// addKeyHint says how to verify and add the key of a host that is contacted for the first time.
func (p *Pool) addKeyHint() string {
	return fmt.Sprintf(
		"Compare the key with `ssh-keygen -lf` on the machine's console. Then run the command on a terminal, which asks and remembers the key, "+
			"or add the key to %s.", p.knownFile())
}

func (p *Pool) knownFile() string {
	if len(p.config.KnownHosts) == 0 {
		return "a known_hosts file"
	}
	return p.config.KnownHosts[0]
}

// remember appends a key to the first known_hosts file, in one write so that other programs never read an incomplete line.
func (p *Pool) remember(name string, key ssh.PublicKey) error {
	if len(p.config.KnownHosts) == 0 {
		return errors.New("no known_hosts file is configured")
	}
	p.hosts.Lock()
	defer p.hosts.Unlock()
	file := p.config.KnownHosts[0]
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	line := knownhosts.Line([]string{name}, key) + "\n"
	if end, err := f.Stat(); err == nil && end.Size() > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, end.Size()-1); err == nil && last[0] != '\n' {
			line = "\n" + line
		}
	}
	p.known = knownKeys{} // the file's timestamp may be too coarse
	_, err = f.WriteString(line)
	return err
}
