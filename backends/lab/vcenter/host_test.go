package vcenter_test

import (
	"testing"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

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
