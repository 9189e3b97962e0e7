package plain_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// A runbook contains for each setting of a host what to type.
func TestMarkdownByHandOnHosts(t *testing.T) {
	h := backends.HostRef("esx-01")
	set := func(kind backends.Kind, name string, to any) plan.Change {
		return plan.Change{Setting: backends.Setting{Target: h, Kind: kind, Name: name}, To: backends.ValueOf(to),
			Why: "from /vmfs/volumes/ds/mft 1.vib, as named"}
	}
	late := set(backends.KindFirmware, "0000:3b:00.0", nil)
	late.To, late.Late = backends.Unknown("it is read"), backends.ValueOf(map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": "9"})
	for want, c := range map[string]plan.Change{
		"Edit Power Policy: High Performance":                           set(backends.KindPower, "", "static"),
		"`esxcli software vib install -v '/vmfs/volumes/ds/mft 1.vib'`": set(backends.KindComponent, "mft", "4.28"),
		"`esxcli system module parameters set -m nic_driver -p 'max_vfs=0,0,8,0 pfctx=0x08'`": set(backends.KindModuleParams, "nic_driver",
			map[string]string{"pfctx": "0x08", "max_vfs": "0,0,8,0"}),
		"`/opt/mellanox/bin/mlxconfig -d 3b:00.0 -y set NUM_OF_VFS=9 SRIOV_EN=1`": late,
		"SR-IOV: Enabled, 8 VFs":                                  set(backends.KindVFs, "0000:3b:00.0", backends.VFSpec{Enabled: true, VFs: 8}),
		"`esxcli network sriovnic vf list -n vmnicN` lists 8 VFs": set(backends.KindActiveVFs, "0000:3b:00.0", 8),
	} {
		var b strings.Builder
		if err := plain.Markdown(&b, &plan.Plan{Changes: []plan.Change{c}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %q is not in\n%s", c.ID(), want, b.String())
		}
	}
}

// The settings of hosts, VMs and guests for GPUs have manual instructions too, and so does what a rollback removes.
func TestMarkdownByHandForGPUs(t *testing.T) {
	h, v, g := backends.HostRef("esx-01"), backends.VMRef("vm-01"), backends.GuestRef("vm-01")
	set := func(ref backends.Ref, kind backends.Kind, name string, to backends.Value) plan.Change {
		return plan.Change{Setting: backends.Setting{Target: ref, Kind: kind, Name: name}, To: to}
	}
	device := func(backing string) backends.Value {
		return backends.ValueOf(backends.DeviceSpec{Backing: backing, Vendor: "10de", Device: "20b5"})
	}
	const gpu = "0000:3c:00.0"
	for want, c := range map[string]plan.Change{
		"Toggle Passthrough; or `esxcli hardware pci pcipassthru set -d 0000:3c:00.0 -e true`": set(h, backends.KindPassthrough, gpu,
			backends.ValueOf(true)),
		"`esxcli hardware pci pcipassthru set -d 0000:3c:00.0 -e false`": set(h, backends.KindPassthrough, gpu,
			backends.ValueOf(false)),
		"0000:3c:00.0 is Enabled, not Enabled / Needs reboot": set(h, backends.KindActivePassthrough,
			gpu, backends.ValueOf(true)),
		"Hardware virtualization: Expose hardware assisted": set(v, backends.KindNested, "",
			backends.ValueOf(false)),
		"PCI Device > DirectPath I/O: 0000:3c:00.0 (10de:20b5)": set(v, backends.KindDevice, gpu,
			device("fixed")),
		"PCI Device > Dynamic DirectPath I/O: 0000:3c:00.0 (10de:20b5)": set(v, backends.KindDevice, gpu,
			device("dynamic")),
		"`sh '/mnt/a share/NVIDIA-Linux-x86_64-570.run' --silent --dkms`": set(g, backends.KindBuild,
			backends.BuildDriver, backends.ValueOf("/mnt/a share/NVIDIA-Linux-x86_64-570.run")),
		"`nvidia-uninstall --silent`": set(g, backends.KindBuild, backends.BuildDriver, backends.Absent),
		"unpack /srv/perftest.tgz, in it `./configure --prefix=/opt/perftest CUDA_H_PATH=": set(g, backends.KindBuild, backends.BuildPerftest,
			backends.ValueOf("/srv/perftest.tgz")),
		"in it `./configure --prefix=/opt/perftest-same && make && make install`": set(g, backends.KindBuild, backends.BuildSamePerftest,
			backends.ValueOf("/srv/perftest.tgz")),
		"`rm -rf /opt/perftest`": set(g, backends.KindBuild, backends.BuildPerftest, backends.Absent),
		"unpack `/mnt/MLNX_OFED_LINUX-24.10-1.1.4.0-rhel9.4-x86_64.tgz`, in it `./mlnxofedinstall --force": set(g, backends.KindOFED, "",
			backends.ValueOf(backends.OFEDSpec{Version: "MLNX_OFED_LINUX-24.10-1.1.4.0",
				Archive: "/mnt/MLNX_OFED_LINUX-24.10-1.1.4.0-rhel9.4-x86_64.tgz"})),
		"install `/mnt/doca-host.deb`, then the package doca-ofed": set(g, backends.KindOFED, "",
			backends.ValueOf(backends.OFEDSpec{Version: "DOCA-OFED-2.9.1-018000", Archive: "/mnt/doca-host.deb"})),
		"`/usr/sbin/ofed_uninstall.sh --force`, then the distribution's": set(g, backends.KindOFED, "", backends.Absent),
		"PCI device 0000:3c:00.0 > Remove device": set(v, backends.KindDevice, gpu,
			backends.Absent),
		"Advanced Parameters > pciPassthru.allowP2P > delete": set(v, backends.KindExtra, recipe.KeyP2P,
			backends.Absent),
		"`modprobe nvidia-peermem`, unless `modinfo -F license nvidia` says Dual MIT/GPL": set(g, backends.KindModules, plan.PeerModules,
			backends.Unknown("vm/vm-01/vm-power")),
		"if the port stays down: `modprobe -r mlx5_ib; modprobe mlx5_ib`": set(g, backends.KindPort, backends.WholeHCA,
			backends.ValueOf("PORT_ACTIVE")),
		"`apt-get install nvidia-headless-570-server-open nvidia-utils-570-server`, or the same": set(g, backends.KindPackages, "nvidia",
			backends.ValueOf(backends.PackageSpec{Installed: []string{"nvidia-headless-570-server-open", "nvidia-utils-570-server"}})),
	} {
		var b strings.Builder
		if err := plain.Markdown(&b, &plan.Plan{Changes: []plan.Change{c}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %q is not in\n%s", c.ID(), want, b.String())
		}
	}
}
