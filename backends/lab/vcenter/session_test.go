package vcenter_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func TestLogin(t *testing.T) {
	c := start(t, scenario.Spec{})
	for _, row := range []struct{ name, user, password string }{
		{"wrong password", vcenter.Admin, "wrong"},
		{"unknown user", "nobody@vsphere.local", vcenter.Password},
		{"empty password", vcenter.Admin, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := c.dial(row.user, row.password)
			refused(t, err, "InvalidLogin", "Cannot complete login due to an incorrect user name or password.")
		})
	}
}

func TestUnknownAuthority(t *testing.T) {
	c := start(t, scenario.Spec{})
	u := *c.server.URL
	sc := soap.NewClient(&u, false)
	t.Cleanup(sc.CloseIdleConnections)
	if _, err := newVim(c.ctx, sc); !soap.IsCertificateUntrusted(err) {
		t.Errorf("error %v, want an untrusted certificate", err)
	}
}

func TestWithoutSession(t *testing.T) {
	c := start(t, scenario.Spec{})
	host := c.host("esx-01").Reference()
	system := *c.hostMO("esx-01", "configManager.firewallSystem").ConfigManager.FirewallSystem
	if err := c.Logout(c.ctx); err != nil {
		t.Fatal(err)
	}
	_, err := methods.EnableRuleset(c.ctx, c.Client, &types.EnableRuleset{This: system, Id: "pvrdma"})
	refused(t, err, "NotAuthenticated", "The session is not authenticated.")
	// The simulator without the lab's rules answers reads without a session with objects that have no properties.
	var h mo.HostSystem
	err = property.DefaultCollector(c.Client.Client).RetrieveOne(c.ctx, host, []string{"name"}, &h)
	refused(t, err, "NotAuthenticated", "The session is not authenticated.")
}

func TestSessionExpires(t *testing.T) {
	c := start(t, scenario.Spec{}, vcenter.Options{Idle: 2 * time.Second})
	system := *c.hostMO("esx-01", "configManager.firewallSystem").ConfigManager.FirewallSystem
	call := func() error {
		_, err := methods.RefreshFirewall(c.ctx, c.Client, &types.RefreshFirewall{This: system})
		return err
	}
	login := func() { // on a loaded machine the session may end before the call
		var err error
		for range 10 {
			if err = call(); err == nil {
				return
			}
			if err := c.Login(c.ctx, url.UserPassword(vcenter.Admin, vcenter.Password)); err != nil {
				t.Fatalf("login again: %v", err)
			}
		}
		t.Fatal(err)
	}
	login()
	// The session is idle for longer than allowed: the client waits for something that does not happen.
	pause, cancel := context.WithTimeout(c.ctx, 3*time.Second)
	<-pause.Done()
	cancel()
	refused(t, call(), "NotAuthenticated", "The session is not authenticated.")
	login()
}

func TestPrivileges(t *testing.T) {
	c := start(t, scenario.Spec{})
	admin := c.Client
	c.login(vcenter.ReadOnly, vcenter.Password)
	f := refused(t, enableRuleset(c, "esx-02", "pvrdma"), "NoPermission", "Permission to perform this operation was denied.")
	denied := f.(*types.NoPermission)
	if denied.PrivilegeId != "Host.Config.NetService" || *denied.Object != c.host("esx-02").Reference() {
		t.Errorf("fault names %v %s", denied.Object, denied.PrivilegeId)
	}
	if rulesetEnabled(c, "esx-02", "pvrdma") {
		t.Error("the ruleset was enabled all the same")
	}
	_, err := c.vm("vm-01").Reconfigure(c.ctx, types.VirtualMachineConfigSpec{MemoryReservationLockedToMax: types.NewBool(true)})
	if f := refused(t, err, "NoPermission",
		"Permission to perform this operation was denied."); f.(*types.NoPermission).PrivilegeId != "VirtualMachine.Config.Resource" {
		t.Errorf("privilege %s", f.(*types.NoPermission).PrivilegeId)
	}
	// The result of the privilege check matches the result of the call.
	auth := object.NewAuthorizationManager(c.Client.Client)
	has, err := auth.HasPrivilegeOnEntity(c.ctx, c.host("esx-01").Reference(), c.session(), []string{"System.Read", "Host.Config.NetService"})
	if err != nil || len(has) != 2 || !has[0] || has[1] {
		t.Errorf("privileges %v, %v", has, err)
	}
	_, err = auth.HasPrivilegeOnEntity(c.ctx, types.ManagedObjectReference{Type: "HostSystem", Value: "host-99"}, c.session(),
		[]string{"System.Read"})
	refused(t, err, "ManagedObjectNotFound", "The object 'vim.HostSystem:host-99' has already been deleted or has not been completely created")

	// A role that was assigned through the API is enforced on one host, and does not apply to the other.
	set := object.NewAuthorizationManager(admin.Client)
	role, err := set.AddRole(c.ctx, "opener", []string{"System.Read", "Host.Config.NetService"})
	if err != nil {
		t.Fatal(err)
	}
	err = set.SetEntityPermissions(c.ctx, c.host("esx-03").Reference(),
		[]types.Permission{{Principal: `VSPHERE.LOCAL\readonly`, RoleId: role, Propagate: true}})
	if err != nil {
		t.Fatal(err)
	}
	if err := enableRuleset(c, "esx-03", "pvrdma"); err != nil {
		t.Error(err)
	}
	refused(t, enableRuleset(c, "esx-02", "pvrdma"), "NoPermission", "Permission to perform this operation was denied.")
}

func (c *client) session() string {
	s, err := c.SessionManager.UserSession(c.ctx)
	if err != nil || s == nil {
		c.t.Fatal(err)
	}
	return s.Key
}

func TestMissingObjectsAndMethods(t *testing.T) {
	c := start(t, scenario.Spec{})
	gone := types.ManagedObjectReference{Type: "VirtualMachine", Value: "vm-1"}
	_, err := object.NewVirtualMachine(c.Client.Client, gone).PowerOn(c.ctx)
	refused(t, err, "ManagedObjectNotFound",
		"The object 'vim.VirtualMachine:vm-1' has already been deleted or has not been completely created")
	_, err = methods.CreateSecondaryVM_Task(c.ctx, c.Client.Client, &types.CreateSecondaryVM_Task{This: c.vm("vm-01").Reference()})
	refused(t, err, "NotSupported", "The operation is not supported on the object.")
}

func TestPagesAndViews(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 7, VMs: 30})
	v, err := view.NewManager(c.Client.Client).CreateContainerView(c.ctx, c.ServiceContent.RootFolder,
		[]string{"HostSystem", "VirtualMachine"}, true)
	if err != nil {
		t.Fatal(err)
	}
	var vms []mo.VirtualMachine
	if err := v.Retrieve(c.ctx, []string{"VirtualMachine"}, []string{"name", "runtime.host"}, &vms); err != nil {
		t.Fatal(err)
	}
	if len(vms) != 30 {
		t.Errorf("%d VMs", len(vms))
	}
	req := types.RetrievePropertiesEx{This: c.ServiceContent.PropertyCollector, Options: types.RetrieveOptions{MaxObjects: 10},
		SpecSet: []types.PropertyFilterSpec{{
			PropSet: []types.PropertySpec{{Type: "VirtualMachine", PathSet: []string{"name"}}},
			ObjectSet: []types.ObjectSpec{{Obj: v.Reference(), Skip: types.NewBool(true),
				SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{Type: "ContainerView", Path: "view"}}}},
		}}}
	res, err := methods.RetrievePropertiesEx(c.ctx, c.Client, &req)
	if err != nil || len(res.Returnval.Objects) != 10 || res.Returnval.Token == "" {
		t.Fatalf("page of %d, token %q, %v", len(res.Returnval.Objects), res.Returnval.Token, err)
	}
	if err := v.Destroy(c.ctx); err != nil {
		t.Error(err)
	}
}

func TestWaitEndsWithTheClient(t *testing.T) {
	c := start(t, scenario.Spec{})
	ctx, cancel := context.WithTimeout(c.ctx, 200*time.Millisecond)
	defer cancel()
	err := property.Wait(ctx, property.DefaultCollector(c.Client.Client), c.host("esx-01").Reference(), []string{"runtime.connectionState"},
		func([]types.PropertyChange) bool { return false })
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		t.Errorf("wait ended with %v", err)
	}
	// goleak verifies that no goroutine of the server is left.
}

func TestAboutSaysSimulated(t *testing.T) {
	c := start(t, scenario.Spec{})
	about := c.ServiceContent.About
	if about.Version != "8.0.3" || about.InstanceUuid == "" ||
		about.FullName != "VMware vCenter Server 8.0.3 build-24022515 (simulated by rdma-setup lab)" {
		t.Errorf("about %+v", about)
	}
}
