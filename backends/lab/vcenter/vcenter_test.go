package vcenter_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/task"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
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

func newVim(ctx context.Context, sc *soap.Client) (*vim25.Client, error) {
	return vim25.NewClient(ctx, sc)
}

func newSession(vc *vim25.Client) *session.Manager { return session.NewManager(vc) }

// asFault converts a value that was decoded as a non-pointer to a fault.
func asFault(v any) (types.BaseMethodFault, bool) {
	if v == nil {
		return nil, false
	}
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	f, ok := p.Interface().(types.BaseMethodFault)
	return f, ok
}

// refused checks the type of a fault ("*types.NotFound") and its text.
func refused(t *testing.T, err error, kind, text string) types.BaseMethodFault {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted, want %s", kind)
	}
	f, message := fault(err)
	if got := fmt.Sprintf("%T", f); got != "*types."+kind {
		t.Fatalf("fault %s (%v), want %s", got, err, kind)
	}
	if message != text {
		t.Errorf("text %q, want %q", message, text)
	}
	return f
}

func enableRuleset(c *client, host, id string) error {
	h := c.hostMO(host, "configManager.firewallSystem")
	_, err := methods.EnableRuleset(c.ctx, c.Client, &types.EnableRuleset{This: *h.ConfigManager.FirewallSystem, Id: id})
	return err
}

func rulesetEnabled(c *client, host, id string) bool {
	for _, r := range c.hostMO(host, "config.firewall").Config.Firewall.Ruleset {
		if r.Key == id {
			return r.Enabled
		}
	}
	c.t.Fatalf("%s has no ruleset %s", host, id)
	return false
}

func TestFirewallIsOfOneHost(t *testing.T) {
	c := start(t, scenario.Spec{})
	if err := enableRuleset(c, "esx-02", "pvrdma"); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{"esx-01": false, "esx-02": true, "esx-03": false} {
		if got := rulesetEnabled(c, host, "pvrdma"); got != want {
			t.Errorf("%s: pvrdma enabled is %t, want %t", host, got, want)
		}
	}
	refused(t, enableRuleset(c, "esx-01", "nosuch"), "NotFound", "The object or item referred to could not be found.")
}

// A custom attribute has a unique name and a key that is never reused, and removing it removes its values.
func TestCustomAttributes(t *testing.T) {
	c := start(t, scenario.Spec{})
	ctx := t.Context()
	m, err := object.GetCustomFieldsManager(c.Client.Client)
	if err != nil {
		t.Fatal(err)
	}
	host, err := find.NewFinder(c.Client.Client).HostSystem(ctx, "/DC/host/*/esx-01")
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error, want any) {
		t.Helper()
		if f, _ := fault(err); reflect.TypeOf(f) != reflect.TypeOf(want) && reflect.TypeOf(f) != reflect.PointerTo(reflect.TypeOf(want)) {
			t.Errorf("%s: %T, %v", what, f, err)
		}
	}
	first, err := m.Add(ctx, "lock", "HostSystem", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Add(ctx, "lock", "HostSystem", nil, nil)
	refused("a second of the name", err, types.DuplicateName{})
	if err := m.Set(ctx, host.Reference(), first.Key, "ada"); err != nil {
		t.Fatal(err)
	}
	values := func() int {
		var h mo.HostSystem
		if err := host.Properties(ctx, host.Reference(), []string{"customValue"}, &h); err != nil {
			t.Fatal(err)
		}
		return len(h.CustomValue)
	}
	if n := values(); n != 1 {
		t.Errorf("%d values", n)
	}
	if err := m.Remove(ctx, first.Key); err != nil {
		t.Fatal(err)
	}
	if n := values(); n != 0 {
		t.Errorf("%d values after the attribute was removed", n)
	}
	refused("removed twice", m.Remove(ctx, first.Key), types.InvalidArgument{}) // API reference of RemoveCustomFieldDef
	refused("set after it was removed", m.Set(ctx, host.Reference(), first.Key, "ada"), types.InvalidArgument{})
	if second, err := m.Add(ctx, "lock", "HostSystem", nil, nil); err != nil || second.Key == first.Key {
		t.Errorf("%+v, %v", second, err)
	}
}
