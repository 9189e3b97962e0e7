package appliance

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/nfc"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A meter counts bytes and reports the overall progress.
type meter struct {
	total    int64
	sent     atomic.Int64
	progress backends.Progress
	done     chan struct{}
}

func newMeter(total int64, progress backends.Progress) *meter {
	return &meter{total: max(total, 1), progress: progress, done: make(chan struct{})}
}

func (m *meter) set(n int64) { m.sent.Store(n) }

func (m *meter) close() { close(m.done) }

func (m *meter) percent() int { return int(min(99, 100*m.sent.Load()/m.total)) }

// keep reports progress every few seconds until everything is uploaded: a lease without updates expires after five minutes.
func (m *meter) keep(ctx context.Context, tell func(percent int)) {
	m.progress.Report(0)
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.done:
			m.progress.Report(100)
			return
		case <-tick.C:
			m.progress.Report(m.percent())
			tell(m.percent())
		}
	}
}

// counted is a reader whose bytes a meter counts.
type counted struct {
	io.Reader
	meter *meter
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.meter.sent.Add(int64(n))
	return n, err
}

// upload sends one file to the URL in the lease: a host, whose certificate is verified by the thumbprint from vCenter.
func upload(ctx context.Context, f *File, item nfc.FileItem, m *meter) error {
	if item.URL.Scheme != "https" {
		return backends.Errorf(backends.KindRefused, item.URL.Host, "Ask the vCenter's administrator why its lease names no https address.",
			"send %s: vCenter names %s://%s, which is not encrypted", item.Path, item.URL.Scheme, item.URL.Host)
	}
	if !slices.Contains(f.references, item.Path) {
		return backends.Errorf(backends.KindRefused, item.URL.Host, "Ask the vCenter's administrator why.", "vCenter asks for %q, which the descriptor does not name", item.Path)
	}
	r, size, err := f.files.Open(item.Path)
	if err != nil {
		return backends.Errorf(backends.KindUsage, "", "download the appliance again", "%s lacks its file %s: %w", f.Path, item.Path, err)
	}
	defer r.Close()
	method, kind := http.MethodPost, "application/x-vnd.vmware-streamVmdk"
	if item.Create { // not a disk: an ISO image
		method, kind = http.MethodPut, "application/octet-stream"
	}
	req, err := http.NewRequestWithContext(ctx, method, item.URL.String(), counted{r, m})
	if err != nil {
		return err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Overwrite", "t")
	transport := &http.Transport{TLSClientConfig: wire.HostTLS(item.Thumbprint), Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 20 * time.Second}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return backends.Errorf(backends.KindUnreachable, item.URL.Host, "the disks are sent to the host itself: open its port 443 for this machine", "send %s: %w", item.Path, err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return backends.Errorf(backends.KindPermanent, item.URL.Host, "look at the host's hostd.log", "send %s: the host answers %s", item.Path, res.Status)
	}
	return nil
}
