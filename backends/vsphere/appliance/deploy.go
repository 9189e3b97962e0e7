package appliance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
func Deploy(ctx context.Context, conn *wire.Conn, f *File, d backends.Deployment, warn func(string), progress backends.Progress) (id string, err error) {
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
			return "", backends.Errorf(backends.KindInterrupted, d.Name, "", "interrupted: the partly created VM has been removed")
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
		return backends.Errorf(backends.KindRefused, "", "", "%s", p.LocalizedMessage)
	case errors.As(err, &t):
		return backends.Errorf(backends.KindRefused, "", "", "%s", t.LocalizedMessage)
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
		return backends.Errorf(backends.KindRefused, "", "compare with: rdma-setup discover", "%v", err)
	case errors.As(err, &many), errors.As(err, &unnamed):
		return backends.Errorf(backends.KindUsage, "", "name it by its inventory path", "%v", err)
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
	o := importer.Options{Name: &d.Name, DiskProvisioning: d.Disk, Deployment: d.Configuration, IPAllocationPolicy: string(types.VAppIPAssignmentInfoIpAllocationPolicyFixedPolicy), IPProtocol: "IPv4"}
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
