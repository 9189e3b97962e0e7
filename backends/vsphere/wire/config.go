package wire

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// DefaultTimeout is how long it takes to find out that nobody is there.
const DefaultTimeout = 15 * time.Second

// A Config says which vCenter to talk to and how it proves who it is.
type Config struct {
	URL      string // host, host:port or https://host/sdk; no user info
	Username string

	// Password is asked at each login, so also when a session has expired: it should remember what it was told.
	Password func(ctx context.Context) (string, error)

	// Thumbprint is the SHA-256 fingerprint of the certificate to expect, with or without colons. With it nothing
	// else is accepted, not even a certificate that a known authority has signed.
	Thumbprint string
	// CAFiles are PEM files of the authorities to trust in place of the system's.
	CAFiles []string
	// Insecure accepts any certificate; whoever sets it says so on every page.
	Insecure bool

	// Timeout bounds connecting and logging in, each; zero is DefaultTimeout.
	Timeout time.Duration
	// CallLimit bounds one call after that, where its own limit (2 min, 30 min for esxcli) is longer; zero: its own.
	CallLimit time.Duration
	// Pause is waited before a call is repeated, longer each time; zero: half a second.
	Pause time.Duration
	// ReplyLimit bounds the bytes of one reply after log-in; zero: 64 MiB.
	ReplyLimit int64

	// Confirm is asked on first use of a certificate that cannot be verified, with its SHA-256 fingerprint. Nil
	// refuses.
	Confirm func(ctx context.Context, host, sha256 string) (bool, error)

	// Trace is told of every call; nil: nobody.
	Trace backends.Trace

	// UserAgent names the program in vCenter's list of sessions; empty is the library's own.
	UserAgent string
}

func (c *Config) endpoint() (*url.URL, error) {
	if strings.TrimSpace(c.URL) == "" {
		return nil, backends.Errorf(backends.KindUsage, "", "give --url or set RDMA_SETUP_URL", "no vCenter address given")
	}
	u, err := backends.VCenterAddress(c.URL)
	if err != nil {
		return nil, err
	}
	if c.Username == "" {
		c.Username = u.User.Username()
	}
	u.User = nil
	return u, nil
}

func (c *Config) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return DefaultTimeout
}

func (c *Config) pause() time.Duration {
	if c.Pause > 0 {
		return c.Pause
	}
	return 500 * time.Millisecond
}
