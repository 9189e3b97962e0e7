package vms

import (
	"crypto/sha1"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/ca"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
)

// leases contains the running imports. Disks are uploaded to the host itself, whose certificate is not signed by a trusted
// authority. As in a real lease, the lease contains the thumbprint of the certificate.
type leases struct {
	base
	mu     sync.Mutex
	open   map[types.ManagedObjectReference]*lease
	next   int
	http   *http.Server
	url    string
	thumb  string
	closed bool
}

type lease struct {
	vm    string
	disks map[string]bool // by name: whether it was uploaded
	ended bool
}

// leaseTimeout is how long a lease is valid without a request from the client.
const leaseTimeout = 300 * time.Second

// serve starts the upload server when the first lease is created, because most labs never create one.
func (l *leases) serve() error {
	if l.http != nil || l.closed {
		return nil
	}
	authority, err := ca.New()
	if err != nil {
		return err
	}
	cert, err := authority.Server("esx.lab")
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var octets []string
	for _, b := range sha1.Sum(cert.Certificate[0]) {
		octets = append(octets, fmt.Sprintf("%02X", b))
	}
	l.thumb, l.url = strings.Join(octets, ":"), "https://"+listener.Addr().String()
	l.http = &http.Server{Handler: http.HandlerFunc(l.take), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	//nolint:errcheck // ends with Close
	go l.http.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}))
	return nil
}

// Close stops the upload server.
func (l *leases) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.http == nil {
		return nil
	}
	return l.http.Close()
}

// take receives the upload of a disk at /nfc/LEASE/DISK.
func (l *leases) take(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 3 || r.Method != http.MethodPost && r.Method != http.MethodPut {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	l.mu.Lock()
	open := l.open[types.ManagedObjectReference{Type: "HttpNfcLease", Value: parts[1]}]
	known := false
	if open != nil && !open.ended {
		_, known = open.disks[parts[2]]
	}
	l.mu.Unlock()
	if !known {
		http.Error(w, "no such lease", http.StatusNotFound)
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	l.mu.Lock()
	open.disks[parts[2]] = true
	l.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
}

// begin creates a lease for the disks of an imported VM.
func (l *leases) begin(vm string, entity types.ManagedObjectReference, keys []string) (types.ManagedObjectReference, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.serve(); err != nil {
		return types.ManagedObjectReference{}, err
	}
	l.next++
	ref := types.ManagedObjectReference{Type: "HttpNfcLease", Value: fmt.Sprintf("session[52%06x]lease-%d", l.next, l.next)}
	obj := &mo.HttpNfcLease{Self: ref, State: types.HttpNfcLeaseStateReady}
	obj.Info = &types.HttpNfcLeaseInfo{Lease: ref, Entity: entity, LeaseTimeout: int32(leaseTimeout.Seconds())}
	l.open[ref] = &lease{vm: vm, disks: map[string]bool{}}
	for i, key := range keys {
		name := fmt.Sprintf("disk-%d.vmdk", i)
		l.open[ref].disks[name] = false
		obj.Info.DeviceUrl = append(obj.Info.DeviceUrl, types.HttpNfcLeaseDeviceUrl{
			Key: key, ImportKey: key, Url: l.url + "/nfc/" + ref.Value + "/" + name, SslThumbprint: l.thumb, Disk: types.NewBool(true),
			TargetId: name,
		})
	}
	l.f.Add(obj)
	l.f.World.After(leaseTimeout, func() { l.end(ref, true) })
	return ref, nil
}

// end closes a lease. If undone is set, it also removes the VM.
func (l *leases) end(ref types.ManagedObjectReference, undone bool) bool {
	l.mu.Lock()
	open := l.open[ref]
	if open == nil || open.ended {
		l.mu.Unlock()
		return false
	}
	open.ended = true
	l.mu.Unlock()
	state := types.HttpNfcLeaseStateDone
	if undone {
		state = types.HttpNfcLeaseStateError
		l.f.World.RemoveVM(open.vm)
	}
	l.f.Update(ref, frame.Set("state", state))
	return true
}

// HttpNfcLeaseComplete completes an import. If a disk was not uploaded, it fails and the VM is removed.
func (l *leases) HttpNfcLeaseComplete(_ *simulator.Context, req *types.HttpNfcLeaseComplete) soap.HasFault {
	l.mu.Lock()
	open := l.open[req.This]
	missing := open == nil || open.ended
	if !missing {
		for _, came := range open.disks {
			missing = missing || !came
		}
	}
	l.mu.Unlock()
	if missing {
		l.end(req.This, true)
		return frame.Answer(nil, frame.Refuse(&types.InvalidState{}, "The disks of the virtual machine are not complete."))
	}
	l.end(req.This, false)
	return frame.Answer(types.HttpNfcLeaseCompleteResponse{}, nil)
}

// HttpNfcLeaseAbort aborts an import and removes the VM.
func (l *leases) HttpNfcLeaseAbort(_ *simulator.Context, req *types.HttpNfcLeaseAbort) soap.HasFault {
	if !l.end(req.This, true) {
		return frame.Answer(nil, frame.Refuse(&types.InvalidState{}))
	}
	return frame.Answer(types.HttpNfcLeaseAbortResponse{}, nil)
}

// HttpNfcLeaseProgress renews a lease.
func (l *leases) HttpNfcLeaseProgress(_ *simulator.Context, req *types.HttpNfcLeaseProgress) soap.HasFault {
	l.f.Update(req.This, frame.Set("transferProgress", req.Percent))
	return frame.Answer(types.HttpNfcLeaseProgressResponse{}, nil)
}
