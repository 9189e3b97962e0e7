package ssh_test

import (
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// Servers that offer only the algorithms of a ten-year-old ESXi or of a switch. SHA-1 as host key algorithm is "ssh-rsa", which
// OpenSSH 8.8 disabled; SHA-1 key exchanges and CBC were removed before (OpenSSH 7.0 and 6.7, release notes).
func TestWeakAlgorithmsAreRefusedUnlessAskedFor(t *testing.T) {
	strong := xssh.SupportedAlgorithms()
	for _, test := range []struct {
		name   string
		offers xssh.Config
		sha1   bool // host key algorithm
		offer  string
	}{
		{"key exchange with SHA-1", xssh.Config{KeyExchanges: []string{xssh.InsecureKeyExchangeDH14SHA1}}, false, "diffie-hellman-group14-sha1"},
		{"key exchange in a group of 1024 bits", xssh.Config{KeyExchanges: []string{xssh.InsecureKeyExchangeDH1SHA1}}, false,
			"diffie-hellman-group1-sha1"},
		{"CBC", xssh.Config{Ciphers: []string{xssh.InsecureCipherAES128CBC}}, false, "aes128-cbc"},
		{"RC4", xssh.Config{Ciphers: []string{xssh.InsecureCipherRC4256}}, false, "arcfour256"},
		{"SHA-1 of 96 bits", xssh.Config{Ciphers: []string{xssh.CipherAES128CTR}, MACs: []string{xssh.InsecureHMACSHA196}}, false,
			"hmac-sha1-96"},
		{"host key signed with SHA-1", xssh.Config{}, true, "ssh-rsa"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t, func(s *server) {
				s.offers = test.offers
				if test.sha1 {
					s.hostKey = rsaSHA1(t)
				}
			})
			c := trusting(t, s)
			_, err := newPool(t, c).Dial(t.Context(), s.target("esx-01"))
			if backends.KindOf(err) != backends.KindUnreachable || !strings.Contains(err.Error(), test.offer) ||
				!strings.Contains(backends.HintOf(err), "--ssh-weak") {
				t.Fatalf("%v, hint %q", err, backends.HintOf(err))
			}
			if s.count() != 0 {
				t.Error("a login went over it")
			}
			c.WeakAlgorithms = true
			conn, err := newPool(t, c).Dial(t.Context(), s.target("esx-01"))
			if err != nil {
				t.Fatalf("asked for: %v", err)
			}
			defer conn.Close()
			if r, err := conn.Run(t.Context(), ssh.Command{Script: "echo old"}); err != nil || r.Stdout != "old\n" {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
	for _, weak := range []string{"sha1", "cbc", "arcfour", "md5", "ssh-rsa", "dss"} {
		for _, a := range append(append(append([]string{}, strong.KeyExchanges...), strong.Ciphers...), strong.HostKeys...) {
			if strings.Contains(a, weak) && !strings.Contains(a, "sha2") {
				t.Errorf("%s is offered by default", a)
			}
		}
	}
}

func rsaSHA1(t *testing.T) xssh.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s, err := xssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	old, err := xssh.NewSignerWithAlgorithms(s.(xssh.AlgorithmSigner), []string{xssh.KeyAlgoRSA})
	if err != nil {
		t.Fatal(err)
	}
	return old
}

// A password must never be sent to a server whose key has changed, at any hop.
func TestChangedKeysOnTheWay(t *testing.T) {
	last := startServer(t, nil)
	hop := startServer(t, func(s *server) { s.forward = true })
	for _, changed := range []*server{hop, last} {
		before := changed.count()
		c := trusting(t, hop, last)
		forget(t, c.KnownHosts[0], changed)
		c.Jump = []string{"ops@" + hop.addr}
		_, err := newPool(t, c).Dial(t.Context(), last.target("guest vm-01"))
		if backends.KindOf(err) != backends.KindAuth || !strings.Contains(err.Error(), "has changed") ||
			!strings.Contains(err.Error(), changed.addr) ||
			!strings.Contains(backends.HintOf(err), "ssh-keygen -f") {
			t.Errorf("%v, hint %q", err, backends.HintOf(err))
		}
		if changed.count() != before {
			t.Error("it was logged in to")
		}
	}
}
