package vcenter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
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
		{[]string{"rdma", "device", "list"}, 0, map[string]string{"Name": "vmrdma0", "State": "Active", "PairedUplink": "vmnic2",
			"Speed": "100 Gbps", "MTU": "1024"}},
		{[]string{"rdma", "device", "list"}, 1, map[string]string{"Name": "vmrdma1", "State": "Down"}},
		{[]string{"rdma", "device", "protocol", "list"}, 0, map[string]string{"Device": "vmrdma0", "RoCEv2": "true", "iWARP": "false"}},
		{[]string{"rdma", "device", "stats", "get", "-d", "vmrdma0"}, 0, map[string]string{"Packetsreceived": "0", "Queuepairsallocated": "0"}},
		{[]string{"network", "nic", "list"}, 3, map[string]string{"Name": "vmnic3", "LinkStatus": "Down", "Driver": "nmlx5_core"}},
		{[]string{"network", "nic", "get", "-n", "vmnic2"}, 0, map[string]string{"LinkDetected": "true", "Driver": "nmlx5_core"}},
		{[]string{"system", "module", "parameters", "list", "-m", "nmlx5_rdma"}, 0, map[string]string{"Name": "dscp_force", "Value": ""}},
		{[]string{"system", "settings", "advanced", "list", "-o", "/Net/PVRDMAVmknic"}, 0,
			map[string]string{"Type": "string", "StringValue": ""}},
		{[]string{"network", "diag", "ping", "-H", "10.10.0.12", "-I", "vmk0", "-c", "1"}, 0,
			map[string]string{"Transmitted": "1", "Recieved": "1"}},
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

// A device can be passed through only as the host offers it, once, and while the VM is off. Its VMX keys contain the bus number
// in decimal.
func TestAddPassthroughDevice(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 1, VMs: 2})
	w := c.world
	const gpu = "0000:af:00.0"
	if err := w.SetPassthru("esx-01", gpu, true, true); err != nil {
		t.Fatal(err)
	}
	uuid := ""
	w.View(func(s *world.State) { uuid = s.Hosts[0].UUID })
	fixed := func(id, device, system string) *types.VirtualPCIPassthrough {
		return &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{Key: -1, Backing: &types.VirtualPCIPassthroughDeviceBackingInfo{
			Id: id, DeviceId: device, SystemId: system, VendorId: 0x10de}}}
	}
	dynamic := &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{Key: -1,
		Backing: &types.VirtualPCIPassthroughDynamicBackingInfo{
			AllowedDevice: []types.VirtualPCIPassthroughAllowedDevice{{VendorId: 0x10de, DeviceId: 0x20b5}}}}}
	change := func(vm string, op types.VirtualDeviceConfigSpecOperation, d types.BaseVirtualDevice) error {
		return c.reconfigure(vm, types.VirtualMachineConfigSpec{DeviceChange: []types.BaseVirtualDeviceConfigSpec{
			&types.VirtualDeviceConfigSpec{Operation: op, Device: d}}})
	}
	if err := change("vm-01", "add", fixed(gpu, "20b5", uuid)); err == nil {
		t.Error("added while the VM runs")
	}
	for _, vm := range []string{"vm-01", "vm-02"} {
		c.powerOff(vm)
	}
	for what, d := range map[string]*types.VirtualPCIPassthrough{
		"a device that is not passed through": fixed("0000:3c:00.0", "20b5", uuid),
		"another device id":                   fixed(gpu, "2330", uuid),
		"a made-up system id":                 fixed(gpu, "20b5", "here"),
	} {
		if err := change("vm-01", "add", d); err == nil {
			t.Errorf("accepted: %s", what)
		}
	}
	if err := change("vm-01", "add", fixed(gpu, "20b5", uuid)); err != nil {
		t.Fatal(err)
	}
	if err := change("vm-01", "add", fixed(gpu, "20b5", uuid)); err == nil {
		t.Error("the same device twice")
	}
	if err := change("vm-02", "add", dynamic); err != nil {
		t.Fatal(err)
	}
	powerOn := func(vm string) error { return c.done(c.vm(vm).PowerOn(c.ctx)) }
	room := types.VirtualMachineConfigSpec{MemoryReservationLockedToMax: types.NewBool(true), ExtraConfig: []types.BaseOptionValue{
		&types.OptionValue{Key: "pciPassthru.use64bitMMIO", Value: "TRUE"}, &types.OptionValue{Key: "pciPassthru.64bitMMIOSizeGB", Value: "256"}}}
	if err := powerOn("vm-01"); err == nil || !strings.Contains(err.Error(), "memory reservation") {
		t.Errorf("without a reservation: %v", err)
	}
	if err := c.reconfigure("vm-01", types.VirtualMachineConfigSpec{MemoryReservationLockedToMax: types.NewBool(true)}); err != nil {
		t.Fatal(err)
	}
	if err := powerOn("vm-01"); err == nil || !strings.Contains(vmwareLog(c, "vm-01"), "(33566722) exceeds limit (917504), failing") {
		t.Errorf("without 64-bit MMIO (Dell KB 000199172): %v", err)
	}
	for _, vm := range []string{"vm-01", "vm-02"} {
		if err := c.reconfigure(vm, room); err != nil {
			t.Fatal(err)
		}
	}
	if err := powerOn("vm-01"); err != nil {
		t.Fatal(err)
	}
	if err := powerOn("vm-02"); err == nil || !strings.Contains(err.Error(), "(pciPassthru0) required by VM vm-02 are not available") {
		t.Errorf("a device that another VM has: %v", err)
	}
	if v, _ := object.OptionValueList(c.vmMO("vm-01", "config.extraConfig").Config.ExtraConfig).GetString(
		"pciPassthru0.id"); v != "00000:175:00.0" {
		t.Errorf("VMX key %q", v)
	}
}

// vmwareLog returns the vmware.log of a VM's last power-on.
func vmwareLog(c *client, vm string) (text string) {
	c.world.View(func(s *world.State) { text, _ = s.VM(vm).Log(0) })
	return text
}
