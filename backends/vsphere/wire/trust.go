package wire

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/rdma-setup/rdma-setup/backends"
)

// An UntrustedError means that a certificate could not be verified. SHA256 is its fingerprint in the usual form.
type UntrustedError struct {
	Host   string
	SHA256 string
	Err    error
}

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("the certificate of %s is not trusted (SHA-256 %s): %v", e.Host, e.SHA256, e.Err)
}

func (e *UntrustedError) Unwrap() error { return e.Err }

// A MismatchError means that the certificate is not the pinned one.
type MismatchError struct{ Host, Want, Got string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("the certificate of %s has changed: SHA-256 %s, expected %s", e.Host, e.Got, e.Want)
}

// trust verifies server certificates. It does so in VerifyConnection and not in a dialer, because a TLS dialer is not used with a
// proxy.
type trust struct {
	host     string
	roots    *x509.CertPool // nil: the system's
	insecure bool

	mu     sync.Mutex
	pin    string // hex of SHA-256, lower case
	served string // fingerprint of the last certificate served, trusted or not
}

func newTrust(c Config, host string) (*trust, error) {
	t := &trust{host: host, insecure: c.Insecure}
	if c.Thumbprint != "" {
		pin := normalPin(c.Thumbprint)
		if b, err := hex.DecodeString(pin); err != nil || len(b) != sha256.Size {
			return nil,
				backends.Usagef("", "read it with: openssl s_client -connect HOST:443 | openssl x509 -noout -fingerprint -sha256",
					"the thumbprint is not a SHA-256 fingerprint (64 hexadecimal digits)")
		}
		t.pin = pin
	}
	if len(c.CAFiles) > 0 {
		t.roots = x509.NewCertPool()
	}
	for _, name := range c.CAFiles {
		pem, err := backends.InputCA.ReadFile(name)
		if err != nil {
			return nil, backends.Usagef("", "check GOVC_TLS_CA_CERTS", "read the CA file: %w", err)
		}
		if !t.roots.AppendCertsFromPEM(pem) {
			return nil, backends.Usagef("", "check GOVC_TLS_CA_CERTS", "the CA file %s holds no PEM certificate", name)
		}
	}
	return t, nil
}

func (t *trust) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // verified below, where pinned certificates are distinguished from unknown ones
		VerifyConnection:   t.verify,
	}
}

func (t *trust) verify(cs tls.ConnectionState) error {
	leaf := cs.PeerCertificates[0]
	sum := sha256.Sum256(leaf.Raw)
	got := hex.EncodeToString(sum[:])

	t.mu.Lock()
	pin := t.pin
	t.served = got
	t.mu.Unlock()
	switch {
	case pin == got:
		return nil
	case pin != "":
		return &MismatchError{Host: t.host, Want: colons(pin), Got: colons(got)}
	case t.insecure:
		return nil
	}

	// For an IP address Go sends no server name, and a certificate that is not compared with a name is accepted from any server.
	opts := x509.VerifyOptions{Roots: t.roots, DNSName: cmp.Or(cs.ServerName, t.host), Intermediates: x509.NewCertPool()}
	for _, c := range cs.PeerCertificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(opts); err != nil {
		return &UntrustedError{Host: t.host, SHA256: colons(got), Err: err}
	}
	return nil
}

func (t *trust) accept(fingerprint string) {
	t.mu.Lock()
	t.pin = normalPin(fingerprint)
	t.mu.Unlock()
}

func normalPin(s string) string {
	return strings.ToLower(strings.NewReplacer(":", "", " ", "", "-", "").Replace(strings.TrimSpace(s)))
}

func colons(digits string) string {
	var b strings.Builder
	for i := 0; i+1 < len(digits); i += 2 {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(strings.ToUpper(digits[i : i+2]))
	}
	return b.String()
}

// HostTLS trusts only the certificate of an ESXi host with this thumbprint from vCenter (SHA-1, or SHA-256 if it has that
// length); without a thumbprint the usual authorities decide.
func HostTLS(thumbprint string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if thumbprint == "" {
		return c
	}
	want := strings.ToLower(strings.ReplaceAll(thumbprint, ":", ""))
	c.InsecureSkipVerify = true // verified below against vCenter's thumbprint
	c.VerifyConnection = func(cs tls.ConnectionState) error {
		one, two := sha1.Sum(cs.PeerCertificates[0].Raw), sha256.Sum256(cs.PeerCertificates[0].Raw)
		got := hex.EncodeToString(one[:])
		if len(want) == hex.EncodedLen(len(two)) {
			got = hex.EncodeToString(two[:])
		}
		if got != want {
			return fmt.Errorf("its certificate (%s) is not the one that vCenter knows (%s)", got, want)
		}
		return nil
	}
	return c
}
