package appliance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/nfc"
	"github.com/vmware/govmomi/ovf/importer"
	"github.com/vmware/govmomi/task"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// Deploy creates the VM, powered off, and uploads its disks; id identifies it for Remove. Warn receives vCenter's warnings. If
// Deploy fails or ctx ends, the incomplete VM is removed; if this program is killed, vCenter removes it when the lease expires (5
// min). An id returned with an error identifies a VM that may be complete, because the reply to the last call was lost.
func Deploy(ctx context.Context, conn *wire.Conn, f *File, d backends.Deployment, warn func(string),
	progress backends.Progress) (id string, err error) {
	imp, err := destination(ctx, conn, d)
	if err != nil {
		return "", wire.Explain(located(err), d.Name, "find the deployment target")
	}
	imp.Name, imp.Archive = d.Name, f.files
	imp.Log = func(line string) (int, error) { warn(line); return len(line), nil }
	info, lease, err := imp.ImportVApp(ctx, f.files.Descriptor(), options(d))
	if err != nil {
		return "", wire.Explain(refused(err), d.Name, "deploy the appliance")
	}
	if err := send(ctx, f, info, lease, progress); err != nil {
		// The lease is aborted even if ctx has ended; otherwise the incomplete VM remains until it expires.
		over, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		aborted := lease.Abort(over, nil)
		if aborted != nil {
			err = errors.Join(err, fmt.Errorf("remove the VM: %w; vCenter removes it itself within %d s", aborted, info.LeaseTimeout))
		}
		if ctx.Err() != nil && aborted == nil {
			return "", backends.Interruptedf(d.Name, "", "interrupted: the partly created VM has been removed")
		}
		return "", wire.Explain(err, d.Name, "upload the disks")
	}
	return info.Entity.Value, wire.Explain(lease.Complete(ctx), d.Name, "finish the deployment")
}

// refused extracts vCenter's messages from the result of a call that was not a fault.
func refused(err error) error {
	var t task.Error
	var p *task.Error
	switch {
	case errors.As(err, &p):
		return backends.Refusedf("", "", "%s", p.LocalizedMessage)
	case errors.As(err, &t):
		return backends.Refusedf("", "", "%s", t.LocalizedMessage)
	}
	return err
}

// located adds a remedy to an error of the finder.
func located(err error) error {
	var none *find.NotFoundError
	var many *find.MultipleFoundError
	var unnamed *find.DefaultMultipleFoundError
	switch {
	case errors.As(err, &none):
		return backends.Refusedf("", "compare with: rdma-setup discover", "%v", err)
	case errors.As(err, &many), errors.As(err, &unnamed):
		return backends.Usagef("", "name it by its inventory path", "%v", err)
	}
	return err
}

// destination finds the resource pool, datastore, folder and host.
func destination(ctx context.Context, conn *wire.Conn, d backends.Deployment) (*importer.Importer, error) {
	finder := find.NewFinder(conn.VIM(), false)
	imp := &importer.Importer{Client: conn.VIM(), Finder: finder}
	var err error
	if imp.Datacenter, err = finder.DatacenterOrDefault(ctx, d.Datacenter); err != nil {
		return nil, err
	}
	finder.SetDatacenter(imp.Datacenter)
	folders, err := imp.Datacenter.Folders(ctx)
	if err != nil {
		return nil, err
	}
	imp.Folder = folders.VmFolder
	if imp.Datastore, err = finder.DatastoreOrDefault(ctx, d.Datastore); err != nil {
		return nil, err
	}
	if d.Host != "" {
		if imp.Host, err = finder.HostSystem(ctx, d.Host); err != nil {
			return nil, err
		}
		imp.ResourcePool, err = imp.Host.ResourcePool(ctx)
		return imp, err
	}
	cluster, err := finder.ClusterComputeResourceOrDefault(ctx, d.Cluster)
	if err != nil {
		return nil, err
	}
	imp.ResourcePool, err = cluster.ResourcePool(ctx)
	return imp, err
}

func options(d backends.Deployment) importer.Options {
	o := importer.Options{Name: &d.Name, DiskProvisioning: d.Disk, Deployment: d.Configuration,
		IPAllocationPolicy: string(types.VAppIPAssignmentInfoIpAllocationPolicyFixedPolicy), IPProtocol: "IPv4"}
	for _, name := range slices.Sorted(maps.Keys(d.Networks)) {
		o.NetworkMapping = append(o.NetworkMapping, importer.Network{Name: name, Network: d.Networks[name]})
	}
	for _, key := range slices.Sorted(maps.Keys(d.Properties)) {
		o.PropertyMapping = append(o.PropertyMapping, importer.Property{KeyValue: importer.KeyValue{Key: key, Value: d.Properties[key]}})
	}
	return o
}

// send uploads the disks one after the other, and updates the lease so that it does not expire.
func send(ctx context.Context, f *File, info *nfc.LeaseInfo, lease *nfc.Lease, progress backends.Progress) error {
	var total, sent int64
	for _, item := range info.Items {
		total += item.Size
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	meter := newMeter(total, progress)
	go meter.keep(ctx, func(percent int) {
		if err := lease.Progress(ctx, int32(percent)); err != nil && ctx.Err() == nil {
			cancel(fmt.Errorf("the lease ended: %w", err))
		}
	})
	for _, item := range info.Items {
		if err := upload(ctx, f, item, meter); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return err
		}
		sent += item.Size
		meter.set(sent)
	}
	meter.close()
	return context.Cause(ctx)
}

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
		return backends.Refusedf(item.URL.Host, "Ask the vCenter's administrator why its lease names no https address.",
			"send %s: vCenter names %s://%s, which is not encrypted", item.Path, item.URL.Scheme, item.URL.Host)
	}
	if !slices.Contains(f.references, item.Path) {
		return backends.Refusedf(item.URL.Host, "Ask the vCenter's administrator why.",
			"vCenter asks for %q, which the descriptor does not name", item.Path)
	}
	r, size, err := f.files.Open(item.Path)
	if err != nil {
		return backends.Usagef("", "download the appliance again", "%s lacks its file %s: %w", f.Path, item.Path, err)
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
	transport := &http.Transport{TLSClientConfig: wire.HostTLS(item.Thumbprint), Proxy: http.ProxyFromEnvironment,
		TLSHandshakeTimeout: 20 * time.Second}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return backends.Unreachablef(item.URL.Host,
			"the disks are sent to the host itself: open its port 443 for this machine", "send %s: %w", item.Path, err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return backends.Permanentf(item.URL.Host, "look at the host's hostd.log", "send %s: the host answers %s", item.Path,
			res.Status)
	}
	return nil
}
