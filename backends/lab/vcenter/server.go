// Package vcenter serves the lab's world as a vCenter. It uses govmomi's simulator for SOAP, sessions, properties and views, and
// its own managed objects and methods, which refuse the same requests as a real vCenter.
package vcenter

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/vpx"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/memnet"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/dvs"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/history"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/hosts"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/inventory"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/older"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/updates"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/vms"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// An Account is a user that can log in. See [frame.Account].
type Account = frame.Account

// The accounts of every lab. ReadOnly has only read privileges.
const (
	Admin    = "administrator@vsphere.local"
	ReadOnly = "readonly@vsphere.local"
	Password = "Lab-vcenter-1"
)

// Options configure the server.
type Options struct {
	Listen   string          // 127.0.0.1:0 if empty
	Inside   *memnet.Network // listen there instead; nil: a network of this machine
	Cert     tls.Certificate // certificate of the server
	Accounts []Account       // in addition to Admin and ReadOnly
	Idle     time.Duration   // idle timeout of sessions; 0 means 30 min
}

// A Server is a running vCenter.
type Server struct {
	URL *url.URL // https://127.0.0.1:PORT/sdk, without a user

	front *front
	http  *http.Server
	frame *frame.Frame
	nfc   io.Closer
	wg    sync.WaitGroup
}

func (o Options) listen() (net.Listener, error) {
	if o.Inside != nil {
		return o.Inside.Listen(), nil
	}
	return net.Listen("tcp", cmp.Or(o.Listen, "127.0.0.1:0"))
}

// Serve creates the inventory from the world and serves it until Close.
func Serve(w *world.World, o Options) (*Server, error) {
	if o.Idle == 0 {
		o.Idle = 30 * time.Minute
	}
	listener, err := o.listen()
	if err != nil {
		return nil, err
	}
	vcenter := ""
	w.View(func(s *world.State) { vcenter = s.VCenterVersion() })
	content := vpx.ServiceContent
	content.About = about(vcenter)
	empty := simulator.NewContext()
	empty.Map.Put(licences())
	empty.Map.Put(snmp())
	ctx, instance := simulator.NewServiceInstance(empty, content, vpx.RootFolder)
	service := simulator.New(ctx, instance)
	service.Listen = &url.URL{User: url.User("lab")} // the simulator calls ValidLogin only if a user is set
	service.RegisterSDK(ctx.Map, ctx.Map.Path+"/vimService")
	service.ServeMux.HandleFunc(ctx.Map.Path+"/vimServiceVersions.xml", versions(vcenter))

	f := frame.New(w, ctx.Map)
	f.Auth.Allow(Account{Name: Admin, Password: Password}, Account{Name: ReadOnly, Password: Password, Privileges: []string{}})
	f.Auth.Allow(o.Accounts...)
	ctx.Map.SessionManager().ValidLogin = func(r *types.Login) bool { return f.Auth.Valid(r.UserName, r.Password) }

	s := &Server{frame: f, URL: &url.URL{Scheme: "https", Host: listener.Addr().String(), Path: ctx.Map.Path}}
	s.front = newFront(w, f, older.Handler(answering{service.ServeMux}, newestAPI(vcenter)), o.Idle)
	s.front.watch = updates.Register(f, vcenter, s.front.gone, s.front.closing)
	f.Extend(clock{f}, "ServiceInstance")
	f.Handle(search{f}, "SearchIndex")
	f.Handle(newFields(f), "CustomFieldsManager")
	f.Extend(perf{f}, "PerformanceManager")
	tree := model.Build(f)
	s.front.history = history.Register(f)
	f.Extend(views{f, tree}, "ViewManager")
	hosts.Register(f)
	dvs.Register(f)
	s.nfc = vms.Register(f)
	inventory.Register(f)

	s.http = &http.Server{
		Handler:           s.front,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
		// HTTP/2 is disabled: a dropped connection would otherwise be only a reset stream.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	secure := tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{o.Cert}, MinVersion: tls.VersionTLS12})
	s.wg.Go(func() {
		if err := s.http.Serve(secure); !errors.Is(err, http.ErrServerClosed) {
			w.Log.Note(world.Event{What: world.Call, Detail: "server: " + err.Error()})
		}
	})
	return s, nil
}

// Filters returns the number of property filters of all sessions.
func (s *Server) Filters() int { return s.front.watch.Filters() }

// Close ends all calls and tasks and waits for them to end.
func (s *Server) Close() error {
	s.front.close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	s.frame.Close()
	s.wg.Wait()
	return errors.Join(err, s.nfc.Close())
}

// builds contains the build numbers of the vCenter versions that labs have (Broadcom KB 326316, "Build numbers and versions of
// VMware vCenter Server").
var builds = map[string]string{"6.7.0": "14367737", "7.0.3": "20395099", "8.0.3": "24022515", "9.0.0": "24755230"}

// about returns the product description, which also says that the product is simulated.
func about(version string) types.AboutInfo {
	build := builds[version]
	return types.AboutInfo{
		Name: "VMware vCenter Server", FullName: "VMware vCenter Server " + version + " build-" + build + " (simulated by rdma-setup lab)",
		Vendor: "VMware, Inc.", Version: version, Build: build, LocaleVersion: "INTL", LocaleBuild: "000", OsType: "linux-x64",
		ProductLineId: "vpx", ApiType: "VirtualCenter", ApiVersion: newestAPI(version), InstanceUuid: uuid.NewString(),
		LicenseProductName: "VMware VirtualCenter Server", LicenseProductVersion: version[:1] + ".0",
	}
}

// licences replaces the simulator's license manager, which writes to variables shared by all labs of a process.
func licences() *mo.LicenseManager {
	evaluation := types.LicenseManagerLicenseInfo{LicenseKey: "00000-00000-00000-00000-00000", EditionKey: "eval", Name: "Evaluation Mode"}
	return &mo.LicenseManager{Source: &types.EvaluationLicenseSource{}, Self: *vpx.ServiceContent.LicenseManager, LicensedEdition: "eval",
		Licenses: []types.LicenseManagerLicenseInfo{evaluation}}
}

// snmp replaces the simulator's SNMP agent, which lacks required properties of its limits.
func snmp() *mo.HostSnmpSystem {
	return &mo.HostSnmpSystem{Self: *vpx.ServiceContent.SnmpSystem,
		Limits: types.HostSnmpSystemAgentLimits{Capability: types.HostSnmpAgentCapabilityCONFIGURATION}}
}
