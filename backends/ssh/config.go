// Package ssh runs commands on ESXi hosts and Linux guests over SSH: one verified connection per target, shared by all callers,
// with sudo, limits, cancellation and files. It does not depend on RDMA.
package ssh

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kevinburke/ssh_config"

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

// known returns the name of the endpoint in known_hosts files.
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

// settings are the parsed ssh_config files.
type settings []*ssh_config.Config

func loadSettings(files []string, warn func(string)) (settings, error) {
	var s settings
	for _, name := range files {
		if _, err := os.Stat(name); os.IsNotExist(err) {
			continue
		}
		in := backends.InputSSHConfig
		in.Script = !inEtc(name) // OpenSSH does not check the system's file (readconf.c, SSHCONF_CHECKPERM)
		text, err := in.ReadFile(name)
		if err != nil {
			return nil, backends.Errorf(backends.KindUsage, "", cmp.Or(backends.HintOf(err), "Correct the file."),
				"read the SSH client configuration %s: %w", name, err)
		}
		cs, ignored, err := parseSettings(in, string(text), 5)
		if err != nil && inEtc(name) {
			continue // a file of the distribution that the library cannot read: it sets algorithms
		}
		if err != nil {
			return nil, backends.Errorf(backends.KindUsage, "", "Correct the file, or run rdma-setup as a user with another SSH configuration.",
				"read the SSH client configuration %s: %w", name, err)
		}
		for _, block := range ignored {
			if warn != nil && !inEtc(name) {
				warn(fmt.Sprintf("%q: the block %q is ignored: only \"Match all\" and \"Match host\" are supported", name, block))
			}
		}
		s = append(s, cs...)
	}
	return s, nil
}

func inEtc(name string) bool { return strings.HasPrefix(filepath.Clean(name), "/etc/ssh/") }

var (
	section   = regexp.MustCompile(`(?i)^\s*(host|match)[\s=]+(.*?)\s*(#.*)?$`)
	evaluated = regexp.MustCompile(`(?i)^(all|host\s+\S+)$`)
)

// understood returns the text without the Match blocks that the library does not evaluate as ssh_config(5) defines: those with
// criteria other than "all" or one "host". Line numbers do not change.
func understood(text string) (kept string, ignored []string) {
	lines, ignoring := strings.Split(text, "\n"), false
	for i, line := range lines {
		if m := section.FindStringSubmatch(line); m != nil {
			ignoring = strings.EqualFold(m[1], "match") && !evaluated.MatchString(m[2])
			if ignoring {
				ignored = append(ignored, "Match "+m[2])
			}
		}
		if ignoring {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n"), ignored
}

// parseSettings parses a text, and returns the blocks that are ignored. The library reads included files itself, and fails at Match
// blocks that it does not know, as in Red Hat's 50-redhat.conf. If it fails, the files of an Include before the first block are read
// as this one is; what stands before the Include comes first, what stands after it last, because the first value of a key counts.
func parseSettings(in backends.Input, text string, depth int) (s settings, ignored []string, err error) {
	kept, ignored := understood(text)
	c, err := ssh_config.DecodeBytes([]byte(kept))
	before, patterns, after, has := cutInclude(kept)
	if err == nil || !has || depth == 0 {
		return settings{c}, ignored, err
	}
	texts := []string{before}
	for _, pattern := range strings.Fields(strings.ReplaceAll(patterns, `"`, " ")) {
		names, err := filepath.Glob(includePath(pattern, !in.Script))
		if err != nil {
			return nil, nil, err
		}
		for _, name := range names {
			part, err := in.ReadFile(name)
			if err != nil && !os.IsNotExist(err) { // ssh passes over dangling links
				return nil, nil, err
			}
			texts = append(texts, string(part))
		}
	}
	for _, part := range append(texts, after) {
		more, blocks, err := parseSettings(in, part, depth-1)
		if err != nil {
			return nil, nil, err
		}
		s, ignored = append(s, more...), append(ignored, blocks...)
	}
	return s, ignored, nil
}

var include = regexp.MustCompile(`(?i)^\s*include[\s=]+(.*?)\s*$`)

// cutInclude cuts a text at its first Include before any Host or Match.
func cutInclude(text string) (before, patterns, after string, has bool) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if m := include.FindStringSubmatch(line); m != nil {
			return strings.Join(lines[:i], "\n"), m[1], strings.Join(lines[i+1:], "\n"), true
		} else if section.MatchString(line) {
			break
		}
	}
	return "", "", "", false
}

// includePath resolves a pattern as ssh_config(5) does: relative paths are below ~/.ssh, and in a system file below /etc/ssh.
func includePath(pattern string, system bool) string {
	home, err := os.UserHomeDir()
	switch {
	case filepath.IsAbs(pattern) || err != nil && !system:
		return pattern
	case system:
		return filepath.Join("/etc/ssh", pattern)
	case strings.HasPrefix(pattern, "~/"):
		return filepath.Join(home, pattern[2:])
	}
	return filepath.Join(home, ".ssh", pattern)
}

func (s settings) get(alias, key string) string {
	for _, c := range s {
		if v, err := c.Get(alias, key); err == nil && v != "" {
			return v
		}
	}
	return ""
}

func (s settings) all(alias, key string) []string {
	var list []string
	for _, c := range s {
		if v, err := c.GetAll(alias, key); err == nil {
			list = append(list, v...)
		}
	}
	return list
}

// resolve completes a target from ssh_config and the defaults. direct ignores jump hosts.
func (p *Pool) resolve(t Target) (endpoint, error) {
	if t.Host == "" {
		return endpoint{}, backends.Errorf(backends.KindUsage, t.String(), "Set the address in the answers.", "no address to connect to")
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
			return endpoint{}, backends.Errorf(backends.KindUsage, t.String(), "Use ProxyJump, or --jump.",
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
