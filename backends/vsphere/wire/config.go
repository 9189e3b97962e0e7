package wire

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// DefaultTimeout is the default time limit for connecting.
const DefaultTimeout = 15 * time.Second

// A Config says which vCenter to connect to, how to verify it, and how to log in.
type Config struct {
	URL      string // host, host:port or https://host/sdk; no user info
	Username string

	// Password is called for each login, also after a session has expired: it should remember the answer.
	Password func(ctx context.Context) (string, error)

	// Thumbprint is the expected SHA-256 fingerprint of the certificate, with or without colons. If it is set, nothing else is
	// accepted, not even a certificate signed by a known authority.
	Thumbprint string
	// CAFiles are PEM files of the authorities to trust instead of the system's.
	CAFiles []string
	// Insecure accepts any certificate; if it is set, every page must show it.
	Insecure bool

	// Timeout bounds connecting and logging in, each; zero means DefaultTimeout.
	Timeout time.Duration
	// CallLimit bounds each later call whose own limit (2 min, 30 min for esxcli) is longer; zero: its own.
	CallLimit time.Duration
	// Pause is the delay before a call is repeated, longer each time; zero: half a second.
	Pause time.Duration
	// ReplyLimit bounds the bytes of one reply after login; zero: 64 MiB.
	ReplyLimit int64

	// Confirm is called on first use of a certificate that cannot be verified, with its SHA-256 fingerprint. Nil refuses.
	Confirm func(ctx context.Context, host, sha256 string) (bool, error)

	// Trace receives every call; may be nil.
	Trace backends.Trace

	// UserAgent names the program in vCenter's list of sessions; empty: the library's own.
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
