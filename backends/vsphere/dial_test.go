package vsphere_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/simulator"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

func fingerprint(w *world) string {
	sum := sha256.Sum256(w.Certificate().Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

func TestDialTrust(t *testing.T) {
	w := start(t, nil, nil)
	answer := func(yes bool) func(context.Context, string, string) (bool, error) {
		return func(_ context.Context, host, sha256 string) (bool, error) {
			if sha256 != fingerprint(w) || host != w.URL.Host {
				t.Errorf("asked about %s of %s", sha256, host)
			}
			return yes, nil
		}
	}
	for _, tt := range []struct {
		name string
		set  func(*vsphere.Config)
		kind backends.ErrorKind // "": connects
		says string
	}{
		{"signed by a known authority", func(c *vsphere.Config) {}, "", ""},
		{"unknown certificate", func(c *vsphere.Config) { c.CAFiles = nil }, backends.KindAuth, fingerprint(w)},
		{"unknown certificate, confirmed", func(c *vsphere.Config) { c.CAFiles, c.Confirm = nil, answer(true) }, "", ""},
		{"unknown certificate, declined", func(c *vsphere.Config) { c.CAFiles, c.Confirm = nil, answer(false) }, backends.KindAuth,
			"was not accepted"},
		{"pinned", func(c *vsphere.Config) { c.CAFiles, c.Thumbprint = nil, fingerprint(w) }, "", ""},
		{"pinned, lower case without colons", func(c *vsphere.Config) {
			c.CAFiles, c.Thumbprint = nil, strings.ToLower(strings.ReplaceAll(fingerprint(w), ":", ""))
		}, "", ""},
		{"changed, though a known authority signed it", func(c *vsphere.Config) { c.Thumbprint = strings.Repeat("AB:", 31) + "AB" },
			backends.KindAuth, "not the expected one"},
		{"changed, and nobody is asked", func(c *vsphere.Config) {
			c.Thumbprint, c.Confirm = strings.Repeat("AB:", 31)+"AB", answer(true)
		}, backends.KindAuth, "not the expected one"},
		{"insecure", func(c *vsphere.Config) { c.CAFiles, c.Insecure = nil, true }, "", ""},
		{"SHA-1 as thumbprint", func(c *vsphere.Config) { c.Thumbprint = strings.Repeat("AB:", 19) + "AB" }, backends.KindUsage, "SHA-256"},
		{"CA file is missing", func(c *vsphere.Config) { c.CAFiles = []string{"no-such-file.pem"} }, backends.KindUsage, "no-such-file.pem"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := w.config()
			tt.set(&cfg)
			c, err := vsphere.Dial(t.Context(), cfg)
			if err == nil {
				c.Close()
			}
			check(t, err, tt.kind, tt.says)
		})
	}
}

// check compares an error with a kind and a text; the kind "" expects no error.
func check(t *testing.T, err error, kind backends.ErrorKind, says string) {
	t.Helper()
	if kind == "" {
		if err != nil {
			t.Fatalf("%v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("no error, want %s", kind)
	}
	if got := backends.KindOf(err); got != kind {
		t.Errorf("kind %q, want %q: %v", got, kind, err)
	}
	if text := err.Error() + "\n" + backends.HintOf(err); !strings.Contains(text, says) {
		t.Errorf("%q does not say %q", text, says)
	}
	if strings.Contains(err.Error()+backends.HintOf(err), "secret-word") {
		t.Errorf("the password stands in: %v", err)
	}
}

func TestDialLogin(t *testing.T) {
	w := start(t, nil, nil)
	wrong := w.config()
	wrong.Password = word("secret-word-but-wrong")
	_, err := vsphere.Dial(t.Context(), wrong)
	check(t, err, backends.KindAuth, "user name or password is wrong")

	none := w.config()
	none.Password = func(context.Context) (string, error) { return "", context.Canceled }
	_, err = vsphere.Dial(t.Context(), none)
	check(t, err, backends.KindAuth, "password")

	inURL := w.config()
	inURL.URL = strings.Replace(inURL.URL, "https://", "https://admin:secret-word@", 1)
	_, err = vsphere.Dial(t.Context(), inURL)
	check(t, err, backends.KindUsage, "holds a password")

	p := between(t, w)
	p.on("Login", fault("InvalidLogin", "Cannot complete login: the user account is locked.", 1))
	_, err = vsphere.Dial(t.Context(), p.config())
	check(t, err, backends.KindAuth, "the account is locked")
	p.on("Login", fault("NoPermission", "Permission to perform this operation was denied.", 1))
	_, err = vsphere.Dial(t.Context(), p.config())
	check(t, err, backends.KindAuth, "no permission in this vCenter")
}

func TestDialWithoutServer(t *testing.T) {
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/page/") {
			_, _ = w.Write([]byte("<!DOCTYPE html><html><body>It works</body></html>"))
			return
		}
		if strings.HasPrefix(r.URL.Path, "/busy/") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		http.NotFound(w, r)
	}))
	defer web.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	closed := listen(t)
	_ = closed.Close()
	silent := listen(t)
	defer silent.Close()
	esx := simulator.ESX()
	if err := esx.Create(); err != nil {
		t.Fatal(err)
	}
	defer esx.Remove()
	host := esx.Service.NewServer()
	defer host.Close()

	for _, tt := range []struct{ name, url, says string }{
		{"a web server without the SDK", web.URL + "/sdk", "not a vCenter"},
		{"a web page", web.URL + "/page/sdk", "not a vCenter"},
		{"services still starting", web.URL + "/busy/sdk", "vCenter is starting"},
		{"plain HTTP on the port", "https://" + plain.Listener.Addr().String(), "does not use TLS"},
		{"nobody listens", "https://" + closed.Addr().String(), "connection refused"},
		{"nobody answers", "https://" + silent.Addr().String(), "no answer within"},
		{"no such name", "https://vcenter.invalid", "vcenter.invalid"},
		{"an ESXi host", "http://" + host.URL.Host + "/sdk", "not a vCenter but"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begun := time.Now()
			_, err := vsphere.Dial(t.Context(), vsphere.Config{URL: tt.url, Username: "admin", Password: word("secret-word"), Insecure: true,
				Timeout: time.Second})
			check(t, err, backends.KindUnreachable, tt.says)
			if d := time.Since(begun); d > 5*time.Second {
				t.Errorf("it took %s to find out", d)
			}
		})
	}
	for _, url := range []string{"", "ftp://vcenter.example", "https://", "https://:443"} {
		_, err := vsphere.Dial(t.Context(), vsphere.Config{URL: url})
		check(t, err, backends.KindUsage, "vCenter address")
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
