package props_test

import (
	"testing"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/props"
)

// Each case names the behavior of a real vCenter, if it is publicly documented.
func TestPathsOfDeclaredTypes(t *testing.T) {
	for _, tt := range []struct {
		kind, path string
		declared   bool
		source     string
	}{
		{"ClusterComputeResource", "summary.currentEVCModeKey", false,
			"dnaeon/py-vpoller issue 206: no property of ClusterComputeResourceSummary"},
		{"ClusterComputeResource", "summary.numHosts", true, "the same: those of ComputeResourceSummary are delivered"},
		{"ClusterComputeResource", "summary", true, "vmware/pyvmomi issue 681: ask for the whole summary"},
		{"ClusterComputeResource", "configurationEx", true, ""},
		{"ClusterComputeResource", "configurationEx.drsConfig", false, "declared as ComputeResourceConfigInfo"},
		{"ClusterComputeResource", "configuration.drsConfig", true, "declared as ClusterConfigInfo"},
		{"ComputeResource", "configuration", false, "of the derived type only"},
		{"VirtualApp", "summary.vAppState", false, "vmware/pyvmomi issue 681"},
		{"DistributedVirtualSwitch", "config.lacpGroupConfig", false, "vmware/pyvmomi issue 423"},
		{"VmwareDistributedVirtualSwitch", "config.uplinkPortPolicy", true, ""},
		{"VirtualMachine", "parent.name", false, "vmware/pyvmomi-community-samples issue 418"},
		{"VirtualMachine", "parent", true, ""},
		{"VirtualMachine", "config.hardware.device", true, ""},
		{"VirtualMachine", "config.hardware.device.macAddress", false, "a list has no such property"},
		{"VirtualMachine", "config.hardware.device[4000]", true, "key-based array"},
		{"VirtualMachine", "config.hardware.device[4000].backing", true, ""},
		{"VirtualMachine", "config.hardware.device[4000].macAddress", false, "declared as VirtualDevice"},
		{"VirtualMachine", `config.hardware.device["4000"]`, false, "the key of a device is a number"},
		{"VirtualMachine", `config.extraConfig["svga.present"].value`, true, ""},
		{"HostSystem", `config.option["Net.PVRDMAVmknic"]`, true, ""},
		{"HostSystem", "config.network.rdmaDevice", true, ""},
		{"HostSystem", "config.network.opaqueSwitch", true, ""},
		{"HostSystem", "Config.network", false, "names are case-sensitive"},
		{"HostSystem", "self", false, ""},
		{"Task", "info.descriptionId", true, ""},
		{"Task", "info.entity.name", false, "a reference is no data object"},
		{"Task", "info.nonsense", false, ""},
		{"PropertyFilter", "spec", true, ""},
		{"HttpNfcLease", "state", true, ""},
		{"HostFirewallSystem", "firewallInfo.ruleset", true, ""},
		{"ContainerView", "view", true, ""},
		{"ManagedEntity", "name", true, ""},
		{"ManagedEntity", "runtime.powerState", false, ""},
	} {
		path, found := props.Undeclared([]types.PropertySpec{{Type: "Folder", PathSet: []string{"name"}},
			{Type: tt.kind, PathSet: []string{tt.path}}}, "8.0.3")
		if found == tt.declared || found && path != tt.path {
			t.Errorf("%s %s: refused %t (%q), declared %t %s", tt.kind, tt.path, found, path, tt.declared, tt.source)
		}
	}
}

// One path that is not declared fails the whole call (ansible-collections/community.vmware issue 1047).
func TestUndeclaredPathFailsTheCall(t *testing.T) {
	ctx, r := stock(t), props.NewReader("8.0.3")
	spec := everything(ctx, "ClusterComputeResource", types.PropertySpec{PathSet: []string{"name", "summary.currentEVCModeKey"}})
	res := r.RetrievePropertiesEx(ctx, &types.RetrievePropertiesEx{SpecSet: []types.PropertyFilterSpec{spec}})
	if res.Fault() == nil {
		t.Fatalf("%+v", res.(*methods.RetrievePropertiesExBody).Res)
	}
	fault, ok := res.Fault().VimFault().(*types.InvalidProperty)
	if !ok || fault.Name != "summary.currentEVCModeKey" {
		t.Errorf("%#v", res.Fault().VimFault())
	}
}
