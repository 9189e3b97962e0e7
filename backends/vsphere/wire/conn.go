package wire

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// firstVersion is the API version of the first call: every vCenter since 6.5 supports it, while some servers refuse a version
// newer than their own.
const firstVersion = "6.5"

// A Conn is a logged-in session with a vCenter. It is safe for concurrent use.
type Conn struct {
	vim   *vim25.Client
	soap  *soap.Client
	meter *meter
	trust *trust
	cfg   Config
	host  string

	named    func(types.ManagedObjectReference) string // for traces; nil: references are shown
	traceID  string                                    // of this connection; the number of the request follows
	requests atomic.Int64

	loginMu sync.Mutex
	logins  int   // number of logins so far: identifies a stale session
	refused error // set after a refused login: trying again would only lock the account
	user    string
	key     string // of the session

	api struct { // the vSphere Automation API
		mu      sync.Mutex
		session string
	}

	outages outages
	started sync.Map // tasks started by this connection: the call of each
	parts   sync.Map // parts of hosts that were read, by reference
	runs    sync.Map // the host of each VM, when it was last read
	silent  sync.Map // hosts that have used up the limit of a call
	watch   watcher
	closing sync.Once
}

// Dial connects, verifies the server, and logs in. Errors are of kind auth, unreachable or usage and have a hint.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	c, err := meet(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := c.login(ctx, 0); err != nil {
		c.soap.CloseIdleConnections()
		return nil, err
	}
	c.watch.conn, c.watch.kick = c, make(chan struct{}, 1)
	c.outages.up.Store(true)
	return c, nil
}

// Probe checks that a vCenter answers at the address and that its certificate is trusted, without logging in, so that a password
// is only requested for a server that exists.
func Probe(ctx context.Context, cfg Config) error {
	c, err := meet(ctx, cfg)
	if err == nil {
		c.soap.CloseIdleConnections()
	}
	return err
}

// meet connects and verifies the server.
func meet(ctx context.Context, cfg Config) (*Conn, error) {
	u, err := cfg.endpoint()
	if err != nil {
		return nil, err
	}
	tr, err := newTrust(cfg, u.Hostname())
	if err != nil {
		return nil, err
	}
	c := &Conn{cfg: cfg, host: u.Host, trust: tr}
	c.prepare(u)
	if err := c.greet(ctx); err != nil {
		c.soap.CloseIdleConnections()
		return nil, err
	}
	return c, nil
}

func (c *Conn) prepare(u *url.URL) {
	c.traceID = "rdma-setup-" + strings.ToLower(rand.Text()[:6])
	c.soap = soap.NewClient(u, false)
	c.soap.Namespace = "urn:" + vim25.Namespace
	c.soap.Version = firstVersion
	c.soap.UserAgent = cmp.Or(c.cfg.UserAgent, "rdma-setup")
	t := c.soap.DefaultTransport()
	t.TLSClientConfig = c.trust.tlsConfig()
	t.DialTLSContext = nil // the library's own ignores the context and would hang on an address that does not answer
	t.DialContext = (&net.Dialer{Timeout: c.cfg.timeout(), KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second,
		Interval: 5 * time.Second, Count: 3}}).DialContext
	t.TLSHandshakeTimeout = c.cfg.timeout()
	t.MaxIdleConnsPerHost = 32 // as many as concurrent calls, usually; with the default of 2 the others would reconnect each time
	if dial := c.cfg.Dial; dial != nil {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) }
		t.MaxIdleConnsPerHost = 96 // this process pays for both ends of each handshake
	}
	c.meter = &meter{base: t, limit: c.cfg.ReplyLimit}
	c.soap.Client.Transport = c.meter
}

// greet reads the identity of the server, and asks the operator whether to trust an unknown certificate.
func (c *Conn) greet(ctx context.Context) error {
	var content types.ServiceContent
	err := c.within(ctx, func(ctx context.Context) (err error) {
		content, err = methods.GetServiceContent(ctx, retrier{c})
		return err
	})
	if unknown, is := errors.AsType[*UntrustedError](err); is && c.cfg.Confirm != nil {
		yes, cerr := c.cfg.Confirm(ctx, c.host, unknown.SHA256)
		if cerr != nil {
			return backends.Authf("vCenter "+c.host, "", "ask about the certificate: %w", cerr)
		}
		if !yes {
			return backends.Authf("vCenter "+c.host,
				"compare the fingerprint with the one that the vCenter's administrator knows",
				"the certificate with SHA-256 %s was not accepted", unknown.SHA256)
		}
		c.trust.accept(unknown.SHA256)
		err = c.within(ctx, func(ctx context.Context) (err error) {
			content, err = methods.GetServiceContent(ctx, retrier{c})
			return err
		})
	}
	if err != nil {
		return c.explainConnect(ctx, err)
	}
	if content.About.ApiType != "VirtualCenter" {
		return backends.Unreachablef(c.host, "use the address of the vCenter that manages this host",
			"this is not a vCenter but %s", content.About.FullName)
	}
	if content.SessionManager == nil || content.ViewManager == nil || content.PropertyCollector.Value == "" {
		return backends.Unreachablef(c.host, "use the address of a vCenter, such as https://vcenter.example/sdk",
			"no vCenter answers there")
	}
	c.soap.Version = speak(content.About.ApiVersion)
	c.vim = &vim25.Client{Client: c.soap, ServiceContent: content, RoundTripper: c}
	return nil
}

// speak returns the API version to use with a server: its own, but not newer than what the library supports.
func speak(server string) string {
	if server == "" || newer(server, vim25.Version) {
		return vim25.Version
	}
	return server
}

// login starts session number seen+1. If another goroutine has done so already, it does nothing.
func (c *Conn) login(ctx context.Context, seen int) error {
	c.loginMu.Lock()
	defer c.loginMu.Unlock()
	if c.logins != seen {
		return nil
	}
	if c.refused != nil {
		return c.refused
	}
	var password string
	if c.cfg.Password != nil {
		var err error
		password, err = c.cfg.Password(ctx)
		if kind := backends.KindOf(err); kind == backends.KindUsage || kind == backends.KindInterrupted {
			return err
		}
		if err != nil {
			return backends.Authf("vCenter "+c.host, "set RDMA_SETUP_PASSWORD or use --password-file",
				"ask for the password: %w", err)
		}
	}
	c.forgetCookie()
	err := c.within(ctx, func(ctx context.Context) error {
		res, err := methods.Login(ctx, retrier{c}, &types.Login{
			This: *c.vim.ServiceContent.SessionManager, UserName: c.cfg.Username, Password: password, Locale: "en_US",
		})
		if err == nil {
			c.user, c.key = res.Returnval.UserName, res.Returnval.Key
		}
		return err
	})
	if err == nil {
		c.logins++
		c.meter.loggedIn.Store(true)
		return nil
	}
	err = c.explainLogin(ctx, err)
	if backends.KindOf(err) == backends.KindAuth {
		c.refused = err
	}
	return err
}

// forgetCookie drops the old session's cookie: vCenter treats a login with an existing session as a wrong password.
func (c *Conn) forgetCookie() {
	u := c.soap.URL()
	for _, path := range []string{"/", u.Path} {
		c.soap.Jar.SetCookies(u, []*http.Cookie{{Name: soap.SessionCookieName, Path: path, MaxAge: -1}})
	}
}

func (c *Conn) session() int {
	c.loginMu.Lock()
	defer c.loginMu.Unlock()
	return c.logins
}

// within limits one step of connecting to the configured timeout.
func (c *Conn) within(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.timeout(), errSilence)
	defer cancel()
	err := step(ctx)
	if err != nil && context.Cause(ctx) == errSilence {
		return errors.Join(errSilence, err)
	}
	return err
}

// Close logs out and stops waiting, once. It never fails: a session that cannot be closed expires.
func (c *Conn) Close() { c.closing.Do(c.logout) }

func (c *Conn) logout() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c.watch.close(ctx)
	if c.api.session != "" {
		_ = c.rest(ctx, http.MethodDelete, "/api/session", c.api.session, nil, nil)
	}
	_, _ = methods.Logout(ctx, traced{c}, &types.Logout{This: *c.vim.ServiceContent.SessionManager})
	c.soap.CloseIdleConnections()
}

// VIM returns the client for the library's methods; its calls are limited, counted and repeated after a new login.
func (c *Conn) VIM() *vim25.Client { return c.vim }

// Cost returns the traffic of this connection so far.
func (c *Conn) Cost() Cost { return c.meter.cost() }

// User returns vCenter's name for the session's account (VSPHERE.LOCAL\admin).
func (c *Conn) User() string {
	c.loginMu.Lock()
	defer c.loginMu.Unlock()
	return c.user
}

// Mine reports whether an account name is that of this session: VSPHERE.LOCAL\admin and admin@vsphere.local are the same.
func (c *Conn) Mine(user string) bool {
	plain := func(name string) string {
		if domain, user, ok := strings.Cut(name, `\`); ok {
			name = user + "@" + domain
		}
		return strings.ToLower(name)
	}
	return plain(user) == plain(c.User())
}

// Session returns the key of the session, which queries of privileges require.
func (c *Conn) Session() string {
	c.loginMu.Lock()
	defer c.loginMu.Unlock()
	return c.key
}

// URL returns the address in use, without user info.
func (c *Conn) URL() string { return c.soap.URL().String() }

// Served returns the SHA-256 fingerprint of the server's certificate, however it was verified.
func (c *Conn) Served() string {
	c.trust.mu.Lock()
	defer c.trust.mu.Unlock()
	return colons(c.trust.served)
}

// Thumbprint returns the SHA-256 fingerprint that was pinned or accepted, "" if the certificate was verified otherwise.
func (c *Conn) Thumbprint() string {
	c.trust.mu.Lock()
	defer c.trust.mu.Unlock()
	return colons(c.trust.pin)
}

// newer reports whether version a is newer than b; both are dotted numbers.
func newer(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		x, y := part(as, i), part(bs, i)
		if x != y {
			return x > y
		}
	}
	return false
}

func part(s []string, i int) int {
	if i >= len(s) {
		return 0
	}
	n, err := strconv.Atoi(s[i])
	if err != nil {
		return 0
	}
	return n
}
