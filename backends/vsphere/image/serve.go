package image

import (
	"context"
	"crypto/rand"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// serve offers one file of this computer by HTTP until stop is called, at the address by which this computer reaches vCenter and
// under a path that nobody can guess. vCenter has an address for uploads too, but its documentation does not say how to use it
// (vSphere Automation API, Settings Depots Offline SourceType: PUSH); what it fetches (PULL) may be http, https or file. The packages
// in a bundle are signed.
func (m *Images) serve(ctx context.Context, file string) (location string, stop func(), err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", nil, backends.Errorf(backends.KindRefused, "", "name a file of this computer under sriov.components", "read the offline bundle: %w", err)
	}
	info, err := f.Stat()
	var here net.IP
	if err == nil {
		here, err = m.here(ctx)
	}
	var l net.Listener
	if err == nil {
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(here.String(), "0"))
	}
	if err != nil {
		_ = f.Close() // it was only read
		return "", nil, backends.Errorf(backends.KindRefused, "", "import the file: Lifecycle Manager, Actions, Import Updates; then resume", "serve %s to vCenter: %w", file, err)
	}
	at := &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/" + rand.Text() + "/" + filepath.Base(file)}
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != at.Path {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, filepath.Base(file), info.ModTime(), io.NewSectionReader(f, 0, info.Size()))
	})}
	go func() { _ = srv.Serve(l) }() // ends when it is closed
	return at.String(), func() {
		_ = srv.Close()
		_ = f.Close()
	}, nil
}

// here returns the address of this computer from which it reaches vCenter. Nothing is sent.
func (m *Images) here(ctx context.Context) (net.IP, error) {
	vc, err := url.Parse(m.conn.URL())
	if err != nil {
		return nil, err
	}
	port := vc.Port()
	if port == "" {
		port = "443"
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(vc.Hostname(), port))
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return c.LocalAddr().(*net.UDPAddr).IP, nil
}
