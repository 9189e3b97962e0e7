package cmd_test

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/props"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// A strict is a proxy between the commands and a simulator. It refuses property paths that the declared type of a managed object
// does not have, as vCenter does.
type strict struct {
	*httptest.Server
	ca string

	mu      sync.Mutex
	asked   int
	refused []string
	before  func(call []byte) // if set, runs before a call is passed on
}

// between starts a strict in front of a simulator.
func between(t *testing.T, target url.URL) *strict {
	t.Helper()
	target.User, target.Path = nil, ""
	proxy := httputil.NewSingleHostReverseProxy(&target)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	proxy.Transport = transport
	s := &strict{}
	proxy.ModifyResponse = func(res *http.Response) error {
		if res.StatusCode != http.StatusInternalServerError {
			return nil
		}
		body, err := io.ReadAll(res.Body)
		res.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("InvalidProperty")) {
			s.note("the simulator itself: " + string(body))
		}
		return err
	}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if path, bad := s.undeclared(body); bad {
			s.note(path)
			w.Header().Set("Content-Type", "text/xml; charset=utf-8")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w,
				`<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>`+
					`<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring></faultstring><detail><InvalidPropertyFault xmlns="urn:vim25" xsi:type="InvalidProperty"><name>`+
					path+`</name></InvalidPropertyFault></detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>`)
			return
		}
		s.mu.Lock()
		before := s.before
		s.mu.Unlock()
		if before != nil {
			before(body)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.Close(); transport.CloseIdleConnections() })
	s.ca = filepath.Join(t.TempDir(), "ca.pem")
	testclass.OK(t, os.WriteFile(s.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	return s
}

// undeclared reads the property paths that a call requests.
func (s *strict) undeclared(body []byte) (string, bool) {
	if !slices.ContainsFunc([]string{"<RetrieveProperties", "<CreateFilter"}, func(m string) bool { return bytes.Contains(body, []byte(m)) }) {
		return "", false
	}
	m, err := simulator.UnmarshalBody(types.TypeFunc(), body)
	if err != nil {
		return err.Error(), true
	}
	var specs []types.PropertyFilterSpec
	switch req := m.Body.(type) {
	case *types.RetrievePropertiesEx:
		specs = req.SpecSet
	case *types.RetrieveProperties:
		specs = req.SpecSet
	case *types.CreateFilter:
		specs = []types.PropertyFilterSpec{req.Spec}
	}
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	for _, spec := range specs {
		if path, bad := props.Undeclared(spec.PropSet, "8.0.3"); bad {
			return path, true
		}
	}
	return "", false
}

func (s *strict) note(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, path)
}

// TestNoCommandAsksForUndeclaredProperties runs the commands on the lab and on the stock simulator, which accepts every path. Each
// refused path is an error of the program, even if the command handles the refusal.
func TestNoCommandAsksForUndeclaredProperties(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	commands := [][]string{
		{"discover", "--all", "-o", "json"}, {"plan", "-f", "ANSWERS"}, {"check", "-f", "ANSWERS"}, {"check", "--quick"},
		{"apply", "-f", "ANSWERS", "--yes"}, {"rollback", "--yes"},
	}
	run := func(t *testing.T, b *bench, s *strict, file string, strangers bool) {
		b.env["GOVC_TLS_CA_CERTS"] = s.ca
		answers := filepath.Join(t.TempDir(), file)
		text := testclass.Read(t, filepath.Join(b.lab.Dir(), file))
		if strangers { // the names of the stock simulator's inventory
			text = []byte(
				"apiVersion: rdma-setup/v1\nmode: pvrdma\nhosts: {datacenter: DC0}\nnic: {device: \"\"}\nswitch: {name: RDMA-DVS, portgroup: " +
					"RDMA-PG}\n" +
					"vms:\n  - {name: DC0_H0_VM0, ip: 192.168.50.11/24, guest: {address: 127.0.0.1, user: nobody}}\n")
		}
		testclass.Write(t, answers, string(text))
		for _, words := range commands {
			words = append(slices.Clone(words), "--url", s.URL+"/sdk")
			for i := range words {
				words[i] = strings.Replace(words[i], "ANSWERS", answers, 1)
			}
			s.mu.Lock()
			s.asked = 0
			s.mu.Unlock()
			code, _, errs := b.run(words...)
			s.mu.Lock()
			if len(s.refused) > 0 || s.asked == 0 && words[0] != "rollback" {
				t.Errorf("%v: exit %d, %d questions, refused: %q\n%s", words, code, s.asked, s.refused, errs)
			}
			s.refused = nil
			s.mu.Unlock()
			if !strangers && code != 0 && words[0] != "check" {
				t.Errorf("%v: exit %d\n%s", words, code, errs)
			}
		}
	}
	t.Run("stock simulator", func(t *testing.T) {
		t.Parallel()
		model := simulator.VPX()
		testclass.OK(t, model.Create())
		b := newBench(t, lab.Options{Hosts: 1, VMs: 1})
		model.Service.Listen = &url.URL{User: url.UserPassword(b.env["GOVC_USERNAME"], b.env["GOVC_PASSWORD"])}
		model.Service.TLS = new(tls.Config)
		server := model.Service.NewServer()
		t.Cleanup(func() { server.Close(); model.Remove() })
		run(t, b, between(t, *server.URL), "answers-pvrdma.yaml", true)
	})
	for file, scenario := range map[string]string{"answers-pvrdma.yaml": "", "answers-sriov.yaml": "", "answers-gpudirect.yaml": "gpudirect"} {
		t.Run("lab, "+file, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, lab.Options{Scenario: scenario, Hosts: 2, VMs: 2})
			run(t, b, between(t, *b.lab.URL()), file, false)
		})
	}
}
