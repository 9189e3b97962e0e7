package vsphere_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/system"
)

// A tape contains replies of a vCenter by method, in the order in which they were received.
type tape struct {
	mu      sync.Mutex
	replies map[string][][]byte
	at      map[string]int
	methods []string
	// The reply to the first call of a method that is replaced.
	method string
	forged []byte
}

func methodOf(body []byte) string {
	if m := methodName.FindSubmatch(body); m != nil {
		return string(m[1])
	}
	return ""
}

// record stores the replies of a lab to all calls of look.
func record(f *testing.F) *tape {
	f.Helper()
	l, err := lab.Start(context.Background(), lab.Options{Hosts: 1, VMs: 1, Scenario: "done", Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	defer l.Close()
	target := *l.URL()
	target.Path = ""
	proxy := httputil.NewSingleHostReverseProxy(&target)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t := &tape{replies: map[string][][]byte{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.Header.Set("Accept-Encoding", "identity")
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		method := methodOf(body)
		t.mu.Lock()
		if t.replies[method] == nil {
			t.methods = append(t.methods, method)
		}
		t.replies[method] = append(t.replies[method], answer.Body.Bytes())
		t.mu.Unlock()
		for key, values := range answer.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	defer s.Close()
	if err := look(s.URL, vcenter.Admin, vcenter.Password); err != nil {
		f.Fatal(err)
	}
	slices.Sort(t.methods)
	return t
}

// ServeHTTP replays the tape; when it has no more replies for a method, it repeats the last one.
func (t *tape) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	method := methodOf(body)
	t.mu.Lock()
	list, n := t.replies[method], t.at[method]
	t.at[method]++
	reply := t.forged
	if method != t.method || n > 0 {
		if len(list) == 0 {
			t.mu.Unlock()
			http.Error(w, "no such method on the tape", http.StatusInternalServerError)
			return
		}
		reply = list[min(n, len(list)-1)]
	}
	t.mu.Unlock()
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	_, _ = w.Write(reply)
}

// forge replaces the reply to the first call of a method.
func (t *tape) forge(method string, reply []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.method, t.forged, t.at = method, reply, map[string]int{}
}

// look reads everything that can be read from a vCenter. Facts that one host cannot report are not errors.
func look(url, user, password string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := vsphere.Dial(ctx, vsphere.Config{
		URL: url + "/sdk", Username: user, Password: word(password), Timeout: 5 * time.Second, CallLimit: 3 * time.Second,
		Pause: time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer c.Close()
	inv, err := c.Inventory(ctx, backends.Scope{Details: true})
	if err != nil {
		return err
	}
	var hosts []*backends.Host
	pnics := map[string][]string{}
	for i := range inv.Hosts {
		hosts = append(hosts, &inv.Hosts[i])
		pnics[inv.Hosts[i].Name] = []string{"vmnic2"}
	}
	c.System(ctx, hosts, vsphere.SystemOptions{PNICs: pnics, VMKNic: func(string) string { return "vmk0" }, Ask: []system.Question{
		system.Counters, system.Modules, system.VIBs, system.NextVIBs, system.Acceptance, system.Pause, system.VFs, system.Neighbours,
		system.Peers,
	}})
	settings := []backends.Setting{
		{Target: backends.HostRef("esx-01"), Kind: backends.KindFirewall, Name: "pvrdma"},
		{Target: backends.HostRef("esx-01"), Kind: backends.KindOption, Name: "Net.PVRDMAVmknic"},
	}
	for _, s := range settings {
		if set := c.Setters()[s.Kind]; set != nil {
			_, err = set.Read(ctx, s)
		}
	}
	return err
}

// FuzzReplies answers one call with a forged reply: whatever it contains, the result is an error or an inventory, never a panic,
// and never takes longer than the limits allow.
func FuzzReplies(f *testing.F) {
	t := record(f)
	for i, method := range t.methods {
		whole := t.replies[method][0]
		f.Add(uint8(i), whole)
		f.Add(uint8(i), whole[:len(whole)/2])
	}
	empty := `<?xml version="1.0"?><Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><RetrievePropertiesExResponse xmlns="urn:vim25"><returnval/></RetrievePropertiesExResponse></Body></Envelope>`
	f.Add(uint8(0), []byte(empty))
	f.Add(uint8(0), []byte{})
	s := httptest.NewServer(t)
	f.Cleanup(s.Close)
	f.Fuzz(func(test *testing.T, which uint8, reply []byte) {
		t.forge(t.methods[int(which)%len(t.methods)], reply)
		begun := time.Now()
		_ = look(s.URL, "a", "b") // an error is possible and not checked
		if took := time.Since(begun); took > 40*time.Second {
			test.Errorf("it took %s", took)
		}
	})
}
