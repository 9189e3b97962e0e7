package vcenter_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func TestFaultRules(t *testing.T) {
	for _, row := range []struct {
		name, rule string
		check      func(*testing.T, *client, error)
		happened   bool // the ruleset was opened despite the error
	}{
		{"fault", "host=esx-02,method=EnableRuleset,nth=1,do=fault:NoPermission", func(t *testing.T, c *client, err error) {
			f := refused(t, err, "NoPermission", "Permission to perform this operation was denied.").(*types.NoPermission)
			if f.PrivilegeId != "Host.Config.NetService" || f.Object.Value != "host-1002" {
				t.Errorf("fault %+v", f)
			}
		}, false},
		{"fault with a text", "method=EnableRuleset,do=fault:HostConfigFault:the firewall is stuck & lost",
			func(t *testing.T, _ *client, err error) {
				refused(t, err, "HostConfigFault", "the firewall is stuck & lost")
			}, false},
		{"connection dropped before", "host=esx-02,method=EnableRuleset,do=drop", isDropped, false},
		{"connection dropped after", "host=esx-02,method=EnableRuleset,do=drop-after", isDropped, true},
		{"half a reply", "host=esx-02,method=EnableRuleset,do=garbage", isDropped, true},
		{"sessions ended", "host=esx-02,method=EnableRuleset,do=expire", func(t *testing.T, c *client, err error) {
			refused(t, err, "NotAuthenticated", "The session is not authenticated.")
			c.login(vcenter.Admin, vcenter.Password)
		}, false},
		{"HTTP 503", "method=EnableRuleset,do=http:503", func(t *testing.T, _ *client, err error) {
			if err == nil || !strings.Contains(err.Error(), "503") {
				t.Errorf("error %v", err)
			}
		}, false},
		{"slow", "method=EnableRuleset,do=slow:150ms", func(t *testing.T, _ *client, err error) {
			if err != nil {
				t.Error(err)
			}
		}, true},
		{"another host", "host=esx-01,method=EnableRuleset,do=drop", func(t *testing.T, _ *client, err error) {
			if err != nil {
				t.Error(err)
			}
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := start(t, scenario.Spec{Faults: []string{row.rule}})
			system := *c.hostMO("esx-02", "configManager.firewallSystem").ConfigManager.FirewallSystem
			_, err := methods.EnableRuleset(c.ctx, c.Client, &types.EnableRuleset{This: system, Id: "pvrdma"})
			row.check(t, c, err)
			if got := rulesetEnabled(c, "esx-02", "pvrdma"); got != row.happened {
				t.Errorf("the ruleset is open: %t, want %t", got, row.happened)
			}
		})
	}
}

func isDropped(t *testing.T, _ *client, err error) {
	if err == nil || soap.IsSoapFault(err) {
		t.Errorf("error %v, want a broken connection", err)
	}
}

func TestClientLeavesAHangingCall(t *testing.T) {
	c := start(t, scenario.Spec{Faults: []string{"method=RefreshFirewall,do=hang"}})
	system := *c.hostMO("esx-01", "configManager.firewallSystem").ConfigManager.FirewallSystem
	ctx, cancel := context.WithTimeout(c.ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := methods.RefreshFirewall(ctx, c.Client, &types.RefreshFirewall{This: system}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestTaskError(t *testing.T) {
	c := start(t, scenario.Spec{Faults: []string{"vm=vm-02,method=ReconfigVM,nth=2,do=task-error:The disk is on fire."}})
	spec := types.VirtualMachineConfigSpec{ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: "a", Value: "b"}}}
	for n, vm := range []string{"vm-02", "vm-01", "vm-02", "vm-02"} {
		err := c.reconfigure(vm, spec)
		if n != 2 {
			if err != nil {
				t.Errorf("call %d on %s: %v", n+1, vm, err)
			}
			continue
		}
		refused(t, err, "SystemError", "The disk is on fire.")
	}
}

func TestTaskThatIsCancelledOrFails(t *testing.T) {
	c := start(t,
		scenario.Spec{Faults: []string{"vm=vm-01,method=ReconfigVM,do=task-cancel", "vm=vm-02,method=ReconfigVM,do=task-fault:ConcurrentAccess"}})
	spec := types.VirtualMachineConfigSpec{ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: "a", Value: "b"}}}
	refused(t, c.reconfigure("vm-01", spec), "RequestCanceled", "The task was canceled by a user.")
	refused(t, c.reconfigure("vm-02", spec), "ConcurrentAccess",
		"Cannot complete operation due to concurrent modification by another operation.")
	c.world.View(func(s *world.State) {
		for _, v := range s.VMs {
			if v.Extra["a"] != "" {
				t.Errorf("%s was reconfigured", v.Name)
			}
		}
	})
}

func TestLatency(t *testing.T) {
	c := start(t, scenario.Spec{Timing: world.Timing{Latency: 50 * time.Millisecond}})
	before := time.Now()
	if _, err := methods.GetCurrentTime(c.ctx, c.Client); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(before); d < 50*time.Millisecond {
		t.Errorf("answered after %v", d)
	}
}

// control sends a request to the lab's control interface.
func (c *client) control(method, path string) (int, []byte) {
	c.t.Helper()
	u := *c.server.URL
	u.Path = ""
	req, err := http.NewRequestWithContext(c.ctx, method, u.String()+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	transport := c.Client.Client.Client.DefaultTransport()
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, body
}

func TestControl(t *testing.T) {
	c := start(t, scenario.Spec{})
	if err := enableRuleset(c, "esx-01", "pvrdma"); err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	if _, body := c.control("GET", "/lab/calls"); json.Unmarshal(body, &calls) != nil || calls["EnableRuleset"] != 1 || calls["Login"] != 1 {
		t.Errorf("calls %v", calls)
	}
	var events []world.Event
	_, body := c.control("GET", "/lab/log")
	if err := json.Unmarshal(body, &events); err != nil {
		t.Fatal(err)
	}
	opened := false
	for _, e := range events {
		opened = opened || e.What == world.HostFirewall && e.Host == "esx-01" && e.Detail == "pvrdma=true"
	}
	if !opened {
		t.Errorf("the log does not tell of the firewall: %v", events)
	}
	if status, body := c.control("POST", "/lab/fault?rule=nonsense"); status != http.StatusBadRequest {
		t.Errorf("a rule that makes no sense: %d %s", status, body)
	}
	if status, _ := c.control("POST", "/lab/fault?rule=method=EnableRuleset,do=fault:HostConfigFault"); status != http.StatusNoContent {
		t.Errorf("status %d", status)
	}
	refused(t, enableRuleset(c, "esx-02", "pvrdma"), "HostConfigFault", "An error occurred during host configuration.")
	c.control("DELETE", "/lab/fault")
	if err := enableRuleset(c, "esx-02", "pvrdma"); err != nil {
		t.Error(err)
	}
	c.control("POST", "/lab/link?host=esx-01&nic=vmnic2&up=false")
	if nic := c.hostMO("esx-01", "config.network").Config.Network.Pnic[2]; nic.LinkSpeed != nil {
		t.Errorf("vmnic2 still has a link")
	}
	c.control("POST", "/lab/expire")
	_, err := methods.GetCurrentTime(c.ctx, c.Client)
	refused(t, err, "NotAuthenticated", "The session is not authenticated.")
}
