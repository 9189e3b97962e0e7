package vcenter_test

import (
	"errors"
	"testing"

	"github.com/vmware/govmomi/cli/esx"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func (c *client) esxcli(host string, words ...string) (*esx.Response, error) {
	c.t.Helper()
	e, err := esx.NewExecutor(c.ctx, c.Client.Client, c.host(host))
	if err != nil {
		c.t.Fatal(err)
	}
	return e.Run(c.ctx, words)
}

func TestEsxcli(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 2})
	for _, row := range []struct {
		words []string
		row   int
		want  map[string]string
	}{
		{[]string{"rdma", "device", "list"}, 0, map[string]string{"Name": "vmrdma0", "State": "Active", "PairedUplink": "vmnic2", "Speed": "100 Gbps", "MTU": "1024"}},
		{[]string{"rdma", "device", "list"}, 1, map[string]string{"Name": "vmrdma1", "State": "Down"}},
		{[]string{"rdma", "device", "protocol", "list"}, 0, map[string]string{"Device": "vmrdma0", "RoCEv2": "true", "iWARP": "false"}},
		{[]string{"rdma", "device", "stats", "get", "-d", "vmrdma0"}, 0, map[string]string{"Packetsreceived": "0", "Queuepairsallocated": "0"}},
		{[]string{"network", "nic", "list"}, 3, map[string]string{"Name": "vmnic3", "LinkStatus": "Down", "Driver": "nmlx5_core"}},
		{[]string{"network", "nic", "get", "-n", "vmnic2"}, 0, map[string]string{"LinkDetected": "true", "Driver": "nmlx5_core"}},
		{[]string{"system", "module", "parameters", "list", "-m", "nmlx5_rdma"}, 0, map[string]string{"Name": "dscp_force", "Value": ""}},
		{[]string{"system", "settings", "advanced", "list", "-o", "/Net/PVRDMAVmknic"}, 0, map[string]string{"Type": "string", "StringValue": ""}},
		{[]string{"network", "diag", "ping", "-H", "10.10.0.12", "-I", "vmk0", "-c", "1"}, 0, map[string]string{"Transmitted": "1", "Recieved": "1"}},
		{[]string{"network", "diag", "ping", "-H", "10.10.0.99", "-I", "vmk0", "-c", "1"}, 0, map[string]string{"PacketLost": "100"}},
	} {
		res, err := c.esxcli("esx-01", row.words...)
		if err != nil {
			t.Errorf("%v: %v", row.words, err)
			continue
		}
		if len(res.Values) <= row.row {
			t.Errorf("%v: %d rows", row.words, len(res.Values))
			continue
		}
		for key, want := range row.want {
			if got := res.Values[row.row].Value(key); got != want {
				t.Errorf("%v: %s is %q, want %q", row.words, key, got, want)
			}
		}
	}
}

func TestEsxcliChangesTheHost(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 2})
	if _, err := c.esxcli("esx-01", "network", "firewall", "ruleset", "set", "-r", "pvrdma", "-e", "true"); err != nil {
		t.Fatal(err)
	}
	if !rulesetEnabled(c, "esx-01", "pvrdma") || rulesetEnabled(c, "esx-02", "pvrdma") {
		t.Error("what esxcli set does not show in the API of that host, or shows in another's")
	}
	if _, err := c.esxcli("esx-01", "system", "module", "parameters", "set", "-m", "nmlx5_core", "-p", "pfctx=8 pfcrx=8"); err != nil {
		t.Fatal(err)
	}
	var failed *esx.Fault
	_, err := c.esxcli("esx-01", "system", "module", "parameters", "set", "-m", "nmlx5_core", "-p", "nosuch=1")
	if !errors.As(err, &failed) || failed.Message != "EsxCLI.CLIFault.summary" {
		t.Errorf("unknown parameter: %v", err)
	}
	_, err = c.esxcli("esx-01", "network", "diag", "ping", "-H", "10.10.0.12", "-I", "vmk0", "-d=true", "-s", "8972")
	if !errors.As(err, &failed) || failed.Detail != "<fault><errMsg>sendto() failed (Message too long)</errMsg></fault>" {
		t.Errorf("jumbo ping over an MTU of 1500: %v", err)
	}
	c.login(vcenter.ReadOnly, vcenter.Password)
	if _, err := c.esxcli("esx-01", "rdma", "device", "list"); err != nil {
		t.Errorf("reading needs no privilege: %v", err)
	}
	_, err = c.esxcli("esx-01", "network", "firewall", "ruleset", "set", "-r", "pvrdma", "-e", "false")
	refused(t, err, "NoPermission", "Permission to perform this operation was denied.")
}
