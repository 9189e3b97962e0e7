package vsphere_test

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// A wire is a proxy between client and server that disturbs calls as networks and restarting services do.
type wire struct {
	*httptest.Server
	ca string

	mu    sync.Mutex
	seen  map[string]int
	rules map[string]rule
	old   string // a property path that the server does not support
}

// A rule acts on the n-th call of a method (1 is the first); it returns true when it has answered by itself.
type rule func(n int, w http.ResponseWriter, pass func()) bool

var methodName = regexp.MustCompile(`<(?:\w+:)?Body[^>]*><(\w+)`)

// between puts a wire in front of a world.
func between(t *testing.T, w *world) *wire {
	t.Helper()
	target := *w.URL
	target.User, target.Path = nil, ""
	proxy := httputil.NewSingleHostReverseProxy(&target)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	proxy.Transport = transport
	p := &wire{seen: map[string]int{}, rules: map[string]rule{}}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		method := ""
		if m := methodName.FindSubmatch(body); m != nil {
			method = string(m[1])
		}
		p.mu.Lock()
		p.seen[method]++
		n, act, old := p.seen[method], p.rules[method], p.old
		p.mu.Unlock()
		if old != "" && bytes.Contains(body, []byte(">"+old+"<")) {
			fault("InvalidProperty", "", n, "<name>"+old+"</name>")(n, rw, nil)
			return
		}
		if act != nil && act(n, rw, func() { proxy.ServeHTTP(httptest.NewRecorder(), r) }) {
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { p.Close(); transport.CloseIdleConnections() })
	p.ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(p.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// on sets the rule of a method and restarts its count.
func (p *wire) on(method string, r rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules[method], p.seen[method] = r, 0
}

// refuse makes the server reject a property path.
func (p *wire) refuse(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.old = path
}

func (p *wire) calls(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[method]
}

func (p *wire) dial(t *testing.T) *vsphere.Client {
	t.Helper()
	c, err := vsphere.Dial(t.Context(), p.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (p *wire) config() vsphere.Config {
	return vsphere.Config{URL: p.URL + "/sdk", Username: "admin", Password: word("secret-word"), CAFiles: []string{p.ca}}
}

// hangUp breaks the connection of the n-th call; with acted, the server has executed the call before.
func hangUp(which int, acted bool) rule {
	return func(n int, w http.ResponseWriter, pass func()) bool {
		if n != which {
			return false
		}
		if acted {
			pass()
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
		return true
	}
}

// status answers calls up to the n-th with an HTTP status.
func status(code, upTo int) rule {
	return func(n int, w http.ResponseWriter, _ func()) bool {
		if n > upTo {
			return false
		}
		http.Error(w, http.StatusText(code), code)
		return true
	}
}

// fault answers calls up to the n-th with a SOAP fault.
func fault(kind, text string, upTo int, inside ...string) rule {
	return func(n int, w http.ResponseWriter, _ func()) bool {
		if n > upTo {
			return false
		}
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>`+
			text+`</faultstring><detail><Fault xmlns="urn:vim25" xsi:type="`+kind+`">`+strings.Join(inside, "")+
			`</Fault></detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>`)
		return true
	}
}
