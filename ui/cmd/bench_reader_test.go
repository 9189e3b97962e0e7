//go:build bench

package cmd_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// narrow are exactly the properties that discover prints, the minimum for any reader.
var narrow = map[string][]string{
	"Datacenter": {"name", "parent"},
	"Folder":     {"name", "parent"},
	"ComputeResource": {
		"name", "parent", "lifecycleManaged",
	},
	"HostSystem": {
		"name", "parent",
		// version, state, hardware of the host
		"summary.config.product.version", "summary.config.product.build", "runtime.connectionState", "runtime.powerState",
		"runtime.inMaintenanceMode", "runtime.bootTime", "summary.rebootRequired", "config.lockdownMode",
		"summary.hardware.vendor", "summary.hardware.model", "summary.hardware.cpuModel", "summary.hardware.numCpuPkgs",
		"summary.hardware.numCpuCores", "summary.hardware.cpuMhz", "summary.hardware.memorySize",
		"summary.quickStats.overallMemoryUsage", "config.hyperThread.active",
		// pNICs: link, driver, MAC, PCI, RDMA device, SR-IOV, NUMA
		"config.network.pnic", "config.network.rdmaDevice", "config.pciPassthruInfo", "hardware.pciDevice", "hardware.numaInfo.numaNode",
		// usage
		"config.network.vswitch", "config.network.proxySwitch", "config.network.portgroup", "config.network.vnic",
		"config.virtualNicManagerInfo.netConfig", "config.storageDevice.hostBusAdapter",
		// GPUs
		"config.graphicsInfo", "datastore",
	},
	"VirtualMachine": {
		"name", "parent", "runtime.host", "runtime.powerState", "runtime.connectionState", "runtime.faultToleranceState",
		"config.template", "config.version", "config.firmware", "config.guestId", "config.guestFullName", "config.hardware.numCPU",
		"config.hardware.memoryMB", "config.hardware.device", "config.memoryAllocation.reservation", "config.memoryReservationLockedToMax",
		"config.cpuHotAddEnabled", "config.memoryHotAddEnabled", "config.nestedHVEnabled", "config.latencySensitivity.level",
		"guest.toolsRunningStatus", "guest.ipAddress", "snapshot.rootSnapshotList", "summary.config.product.name",
		"config.managedBy",
	},
	"DistributedVirtualSwitch":    {"name", "parent", "uuid", "config", "capability.featuresSupported", "runtime.hostMemberRuntime"},
	"DistributedVirtualPortgroup": {"name", "parent", "key", "config"},
}

// A bareReader uses govmomi only.
type bareReader struct {
	vim      *vim25.Client
	received *atomic.Int64
}

func (s *site) reader(ctx context.Context, t *testing.T) *bareReader {
	t.Helper()
	u, err := url.Parse(s.value("GOVC_URL"))
	testclass.OK(t, err)
	client := soap.NewClient(u, true)
	r := &bareReader{received: &atomic.Int64{}}
	client.Client.Transport = weighed{client.Client.Transport, r.received}
	if r.vim, err = vim25.NewClient(ctx, client); err != nil {
		t.Fatal(err)
	}
	m := session.NewManager(r.vim)
	testclass.OK(t, m.Login(ctx, url.UserPassword(s.value("GOVC_USERNAME"), s.value("GOVC_PASSWORD"))))
	t.Cleanup(func() { _ = m.Logout(context.WithoutCancel(ctx)) })
	return r
}

// read reads the narrow properties of all objects through one container view, 500 objects a page. It returns the number of objects
// and discards them.
func (r *bareReader) read(ctx context.Context, t *testing.T) int {
	t.Helper()
	var kinds []string
	var sets []types.PropertySpec
	for kind, paths := range narrow {
		kinds = append(kinds, kind)
		sets = append(sets, types.PropertySpec{Type: kind, PathSet: paths})
	}
	view, err := methods.CreateContainerView(ctx, r.vim, &types.CreateContainerView{
		This: *r.vim.ServiceContent.ViewManager, Container: r.vim.ServiceContent.RootFolder, Type: kinds, Recursive: true,
	})
	testclass.OK(t, err)
	pc := r.vim.ServiceContent.PropertyCollector
	first, err := methods.RetrievePropertiesEx(ctx, r.vim, &types.RetrievePropertiesEx{
		This: pc, Options: types.RetrieveOptions{MaxObjects: 500},
		SpecSet: []types.PropertyFilterSpec{{PropSet: sets, ObjectSet: []types.ObjectSpec{{
			Obj: view.Returnval, Skip: types.NewBool(true),
			SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{Type: "ContainerView", Path: "view"}},
		}}}},
	})
	testclass.OK(t, err)
	n, page := 0, first.Returnval
	for {
		n += len(page.Objects)
		if page.Token == "" {
			break
		}
		more, err := methods.ContinueRetrievePropertiesEx(ctx, r.vim, &types.ContinueRetrievePropertiesEx{This: pc, Token: page.Token})
		testclass.OK(t, err)
		page = &more.Returnval
	}
	if _, err := methods.DestroyView(ctx, r.vim, &types.DestroyView{This: view.Returnval}); err != nil {
		t.Fatal(err)
	}
	return n
}

// weighed counts the bytes of received bodies.
type weighed struct {
	http.RoundTripper
	n *atomic.Int64
}

func (w weighed) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := w.RoundTripper.RoundTrip(req)
	if err == nil {
		res.Body = &weighedBody{res.Body, w.n}
	}
	return res, err
}

type weighedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b *weighedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}

// dial connects this process to the lab in the same way as the program.
func (s *site) dial(ctx context.Context, t *testing.T) *vsphere.Client {
	t.Helper()
	c, err := vsphere.Dial(ctx, vsphere.Config{
		URL: s.value("GOVC_URL"), Username: s.value("GOVC_USERNAME"), CAFiles: []string{s.value("GOVC_TLS_CA_CERTS")},
		Password: func(context.Context) (string, error) { return s.value("GOVC_PASSWORD"), nil },
	})
	testclass.OK(t, err)
	t.Cleanup(c.Close)
	return c
}

// cpu returns the CPU time that this process has used so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
