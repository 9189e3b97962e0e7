package hosts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// firmware creates configuration bundles. As on a real host, the URL contains "*" in place of the host's address, and the client
// downloads the bundle from the host itself, whose certificate is not signed by a public authority (vSphere Web Services API,
// HostFirmwareSystem; KB 2042141 shows "http://*/downloads/.../configBundle-HOST.tgz"). All hosts of the lab share one address.
type firmware struct {
	base
	cert tls.Certificate

	mu     sync.Mutex
	ready  map[string][]byte // by path
	http   *http.Server
	port   string
	closed bool
}

// BackupFirmwareConfiguration creates a bundle with the configuration of a host and returns its URL.
func (m *firmware) BackupFirmwareConfiguration(_ *simulator.Context, req *types.BackupFirmwareConfiguration) soap.HasFault {
	host, err := m.name(req.This)
	if err != nil {
		return frame.Answer(nil, err)
	}
	var text []byte
	m.f.World.View(func(s *world.State) {
		h := s.Host(host)
		text, err = json.Marshal(map[string]any{"host": h.Name, "version": h.Version, "options": h.Options, "pnics": h.PNICs})
	})
	if err != nil {
		return frame.Answer(nil, err)
	}
	bundle, err := pack(text)
	if err != nil {
		return frame.Answer(nil, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.serve(); err != nil {
		return frame.Answer(nil, err)
	}
	path := "/downloads/" + strings.ToLower(rand.Text()) + "/configBundle-" + host + ".tgz"
	m.ready[path] = bundle
	return frame.Answer(types.BackupFirmwareConfigurationResponse{Returnval: "http://*:" + m.port + path}, nil)
}

func pack(text []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	if err := t.WriteHeader(&tar.Header{Name: "state.tgz", Mode: 0o600, Size: int64(len(text))}); err != nil {
		return nil, err
	}
	if _, err := t.Write(text); err != nil {
		return nil, err
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (m *firmware) serve() error {
	if m.http != nil || m.closed {
		return nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, m.port, err = net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	m.http = &http.Server{Handler: http.HandlerFunc(m.give), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go m.http.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{m.cert}, MinVersion: tls.VersionTLS12})) //nolint:errcheck // ends with Close
	return nil
}

func (m *firmware) give(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	bundle, known := m.ready[r.URL.Path]
	m.mu.Unlock()
	if !known || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(bundle) // the client has disconnected
}

// Close stops the server for bundles.
func (m *firmware) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.http == nil {
		return nil
	}
	return m.http.Close()
}
