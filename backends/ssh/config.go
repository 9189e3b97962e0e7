// Package ssh runs commands on ESXi hosts and Linux guests over SSH: one verified connection per target, shared by all callers,
// with sudo, limits, cancellation and files. It does not depend on RDMA.
package ssh

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Config says how to reach targets and which to trust. The zero Config trusts no host and has no login method.
type Config struct {
	User string // if neither the Target nor ssh_config names one; "": the local user
	Port int    // if neither the Target nor ssh_config names one; 0: 22

	AgentSocket string   // socket of the SSH agent; "": none
	Keys        []string // private key files, tried in this order before the agent's keys

	// Passphrase is called for an encrypted key file if the server accepts that key.
	Passphrase func(ctx context.Context, keyFile string) (string, error)
	// Password is called if no key was accepted; an empty answer means no password.
	Password func(ctx context.Context, t Target) (string, error)
	Sources  map[string]Source // by class of target, for hints
	// SudoPassword is called if sudo requires one; an empty answer means no password.
	SudoPassword func(ctx context.Context, t Target) (string, error)

	// PasswordRefused and SudoRefused are called with wrong answers, so that they are not given again; nil: not called. A
	// password is never tried twice on one target, because failed attempts lock accounts.
	PasswordRefused, SudoRefused func(t Target, password string)

	KnownHosts []string // known_hosts files; keys accepted on first use are appended to the first
	// Confirm is called for a host that no known_hosts file names; nil refuses. A changed key is always refused.
	Confirm func(ctx context.Context, k HostKey) (bool, error)

	Jump      []string // jump hosts "[user@]host[:port]", nearest first; overrides ProxyJump of ssh_config
	SSHConfig []string // ssh_config files, the first value found wins; missing files are ignored

	Warn  func(string)   // receives the ignored parts of the ssh_config files; may be nil
	Trace backends.Trace // receives every connection attempt and every command; may be nil

	Dial func(ctx context.Context, address string) (net.Conn, error) // connects to HOST:PORT; nil: TCP

	WeakAlgorithms bool          // also accept SHA-1 key exchanges and CBC ciphers, for servers that support nothing else
	DialTimeout    time.Duration // connect and handshake of one hop, without the time for prompts; 0: 10 s
	Again          time.Duration // least pause before a login after the server has closed the connection; 0: 100 ms
	KeepAlive      time.Duration // between probes of an idle connection, which is closed after three without an answer; 0: 15 s
	Connections    int           // open connections that no command uses; more are closed, and opened again when needed; 0: no limit
	CommandLimit   time.Duration // for a command whose own Limit is longer or zero; 0: its own
}

// A Source says where an operator names the user and gives the password.
type Source struct{ User, Password string }

func (c *Config) limitOf(cmd Command) time.Duration {
	if c.CommandLimit > 0 && (cmd.Limit <= 0 || cmd.Limit > c.CommandLimit) {
		return c.CommandLimit
	}
	return cmd.Limit
}

// A Target is one machine to log in to.
type Target struct {
	Name  string // used in errors: "guest vm-01"
	Class string // "guest" or "esxi": allows Password and SudoPassword to distinguish them
	Host  string // name, address or alias of ssh_config
	Port  int    // 0: see Config
	User  string // "": see Config
}

func (t Target) String() string {
	if t.Name != "" {
		return t.Name
	}
	return t.Host
}

// An endpoint is a resolved Target. Equal endpoints share a connection.
type endpoint struct {
	host, user, keyAlias, jump, keys string
	port                             int
}

func (e endpoint) address() string { return joinHostPort(e.host, e.port) }

func (e endpoint) known() string {
	if e.keyAlias != "" {
		return joinHostPort(e.keyAlias, 22)
	}
	return e.address()
}

func joinHostPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}

// resolve completes a target from ssh_config and the defaults. direct ignores jump hosts.
func (p *Pool) resolve(t Target) (endpoint, error) {
	if t.Host == "" {
		return endpoint{}, backends.Usagef(t.String(), "Set the address in the answers.", "no address to connect to")
	}
	e := endpoint{host: t.Host, port: t.Port, user: t.User}
	if h := p.settings.get(t.Host, "HostName"); h != "" {
		e.host = strings.ReplaceAll(h, "%h", t.Host)
	}
	if e.port == 0 {
		e.port, _ = strconv.Atoi(p.settings.get(t.Host, "Port"))
	}
	if e.port == 0 {
		e.port = p.config.Port
	}
	if e.user == "" {
		e.user = p.settings.get(t.Host, "User")
	}
	if e.user == "" {
		e.user = p.config.User
	}
	if e.user == "" {
		if u, err := user.Current(); err == nil {
			e.user = u.Username
		}
	}
	e.keyAlias = p.settings.get(t.Host, "HostKeyAlias")
	var keys []string
	for _, k := range p.settings.all(t.Host, "IdentityFile") {
		keys = append(keys, expandHome(k))
	}
	e.keys = strings.Join(keys, "\n")
	e.jump = strings.Join(p.config.Jump, ",")
	if e.jump == "" {
		if e.jump = p.settings.get(t.Host, "ProxyJump"); strings.EqualFold(e.jump, "none") {
			e.jump = ""
		}
		if c := p.settings.get(t.Host, "ProxyCommand"); e.jump == "" && c != "" && !strings.EqualFold(c, "none") {
			return endpoint{}, backends.Usagef(t.String(), "Use ProxyJump, or --jump.",
				"ssh_config sets a ProxyCommand for %s, which is not supported", t.Host)
		}
	}
	return e, nil
}

// splitJump removes the last hop from "a,user@b:2222": it returns the hops before it, and the hop as a target.
func splitJump(jump string) (before string, hop Target, err error) {
	last := jump
	if i := strings.LastIndexByte(jump, ','); i >= 0 {
		before, last = jump[:i], jump[i+1:]
	}
	last = strings.TrimPrefix(strings.TrimSpace(last), "ssh://")
	if i := strings.LastIndexByte(last, '@'); i >= 0 {
		hop.User, last = last[:i], last[i+1:]
	}
	hop.Host = last
	if i := strings.LastIndexByte(last, ':'); i >= 0 && (strings.HasPrefix(last, "[") || strings.Count(last, ":") == 1) {
		if hop.Port, err = strconv.Atoi(last[i+1:]); err != nil {
			return "", hop, fmt.Errorf("jump host %q: the port is not a number", last)
		}
		hop.Host = last[:i]
	}
	hop.Host = strings.Trim(hop.Host, "[]")
	if hop.Host == "" {
		return "", hop, fmt.Errorf("jump host %q has no name", jump)
	}
	hop.Class, hop.Name = "jump", "jump host "+hop.Host
	return before, hop, nil
}

func expandHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		rest, ok = strings.CutPrefix(path, "%d/")
	}
	if home, err := os.UserHomeDir(); ok && err == nil {
		return filepath.Join(home, rest)
	}
	return path
}
