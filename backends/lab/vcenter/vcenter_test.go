package vcenter_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/task"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"go.uber.org/goleak"

	"github.com/rdma-setup/rdma-setup/backends/lab/ca"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A client is an ordinary govmomi client of one lab.
type client struct {
	*govmomi.Client
	t      *testing.T
	ctx    context.Context
	world  *world.World
	server *vcenter.Server
	roots  *x509.CertPool
	find   *find.Finder
}

// start serves a lab and logs in as the administrator.
func start(t *testing.T, spec scenario.Spec, options ...vcenter.Options) *client {
	t.Helper()
	return startWith(t, spec, func(*world.State) {}, options...)
}

// startWith does the same with a changed world.
func startWith(t *testing.T, spec scenario.Spec, change func(*world.State), options ...vcenter.Options) *client {
	t.Helper()
	t.Parallel()
	if spec.Hosts == 0 && spec.Scenario == "" {
		spec.Hosts, spec.VMs = 3, 3
	}
	w, err := scenario.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Update(func(s *world.State) ([]world.Event, error) { change(s); return nil, nil }); err != nil {
		t.Fatal(err)
	}
	authority, err := ca.New()
	if err != nil {
		t.Fatal(err)
	}
	var o vcenter.Options
	if len(options) > 0 {
		o = options[0]
	}
	if o.Cert, err = authority.Server("vc.lab.example"); err != nil {
		t.Fatal(err)
	}
	server, err := vcenter.Serve(w, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(func() {
		cancel()
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		w.Close()
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM)
	c := &client{t: t, ctx: ctx, world: w, server: server, roots: roots}
	c.login(vcenter.Admin, vcenter.Password)
	return c
}

// dial logs in with an additional client.
func (c *client) dial(user, password string) (*govmomi.Client, error) {
	u := *c.server.URL
	u.User = url.UserPassword(user, password)
	sc := soap.NewClient(&u, false)
	sc.DefaultTransport().TLSClientConfig.RootCAs = c.roots
	vc, err := newVim(c.ctx, sc)
	if err != nil {
		return nil, err
	}
	gc := &govmomi.Client{Client: vc, SessionManager: newSession(vc)}
	c.t.Cleanup(sc.CloseIdleConnections)
	return gc, gc.Login(c.ctx, u.User)
}

func (c *client) login(user, password string) {
	c.t.Helper()
	gc, err := c.dial(user, password)
	if err != nil {
		c.t.Fatal(err)
	}
	c.Client = gc
	c.find = find.NewFinder(gc.Client, false)
	dc, err := c.find.Datacenter(c.ctx, "DC")
	if err != nil {
		c.t.Fatal(err)
	}
	c.find.SetDatacenter(dc)
}

func (c *client) host(name string) *object.HostSystem {
	c.t.Helper()
	h, err := c.find.HostSystem(c.ctx, name)
	if err != nil {
		c.t.Fatal(err)
	}
	return h
}

func (c *client) vm(name string) *object.VirtualMachine {
	c.t.Helper()
	v, err := c.find.VirtualMachine(c.ctx, name)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

func (c *client) read(ref types.ManagedObjectReference, dst any, props ...string) {
	c.t.Helper()
	if err := c.RetrieveOne(c.ctx, ref, props, dst); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) hostMO(name string, props ...string) mo.HostSystem {
	var h mo.HostSystem
	c.read(c.host(name).Reference(), &h, props...)
	return h
}

func (c *client) vmMO(name string, props ...string) mo.VirtualMachine {
	var v mo.VirtualMachine
	c.read(c.vm(name).Reference(), &v, props...)
	return v
}

// done waits for a task and returns its error.
func (c *client) done(t *object.Task, err error) error {
	if err != nil {
		return err
	}
	_, err = t.WaitForResult(c.ctx, nil)
	return err
}

// must waits for a task that must succeed.
func (c *client) must(t *object.Task, err error) {
	c.t.Helper()
	if err := c.done(t, err); err != nil {
		c.t.Fatal(err)
	}
}

// fault returns the fault and the text in the error of a call or a task.
func fault(err error) (types.BaseMethodFault, string) {
	var te task.Error
	if errors.As(err, &te) {
		return te.Fault(), te.LocalizedMethodFault.LocalizedMessage
	}
	if soap.IsSoapFault(err) {
		f := soap.ToSoapFault(err)
		if mf, ok := f.VimFault().(types.BaseMethodFault); ok {
			return mf, f.String
		}
		v := f.VimFault()
		if mf, ok := asFault(v); ok {
			return mf, f.String
		}
		return nil, f.String
	}
	return nil, ""
}
