package rollback_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

// TestManualSteps: the command that restores each earlier value. Sources: "ESXCLI Reference" (VMware), govc's usage texts, NVIDIA's
// documentation of mlxconfig.
func TestManualSteps(t *testing.T) {
	host, vm, guest := backends.HostRef("esx-01"), backends.VMRef("it's vm"), backends.GuestRef("vm-01")
	change := func(target backends.Ref, kind backends.Kind, name string, from backends.Value) plan.Change {
		return plan.Change{Setting: backends.Setting{Target: target, Kind: kind, Name: name}, From: from, To: backends.ValueOf("x")}
	}
	for _, tt := range []struct {
		change plan.Change
		want   string
	}{
		{change(host, backends.KindOption, backends.VMKNICOption, backends.ValueOf("vmk1")),
			`govc host.esxcli -host 'esx-01' system settings advanced set -o '/Net/PVRDMAVmknic' -s 'vmk1'`},
		{change(host, backends.KindOption, backends.VMKNICOption, backends.ValueOf("")), `advanced set -o '/Net/PVRDMAVmknic' -d true`},
		{change(host, backends.KindFirewall, "pvrdma", backends.ValueOf(false)), `network firewall ruleset set -r 'pvrdma' -e false`},
		{change(host, backends.KindModuleParams, "nic_driver", backends.ValueOf(map[string]string{"max_vfs": "0,8", "drss": "4"})),
			`system module parameters set -m 'nic_driver' -p 'drss=4 max_vfs=0,8'`},
		{change(host, backends.KindFirmware, "0000:3b:00.0", backends.ValueOf(map[string]string{"SRIOV_EN": "0"})),
			`ssh root@'esx-01' /opt/mellanox/bin/mlxconfig -d '0000:3b:00.0' -y set SRIOV_EN=0`},
		{change(host, backends.KindPause, "vmnic2", backends.ValueOf(backends.PauseSpec{Rx: true})),
			`network nic pauseParams set -n 'vmnic2' -r true -t false`},
		{change(host, backends.KindMember, "DVS", backends.Absent), `Remove-VDSwitchVMHost -VDSwitch 'DVS' -VMHost 'esx-01' -Confirm:$false`},
		{change(vm, backends.KindMemory, "", backends.ValueOf(backends.MemorySpec{ReservationMB: 512})),
			`govc vm.change -vm 'it'\''s vm' -memory-pin=false -mem.reservation=512`},
		{change(vm, backends.KindExtra, "numa.nodeAffinity", backends.Absent), `-e 'numa.nodeAffinity='`},
		{change(vm, backends.KindAdapter, "RDMA-PG", backends.Absent), `govc device.remove -vm 'it'\''s vm' ethernet-N`},
		{change(guest, backends.KindAddress, "RDMA-PG", backends.Absent), "- netplan: `rm -f /etc/netplan/*rdma-setup-*.yaml && netplan apply`"},
		{change(backends.SwitchRef("DVS"), backends.KindSwitch, "", backends.ValueOf(backends.SwitchSpec{MTU: 1500})),
			`govc dvs.change -mtu 1500 'DVS'`},
		{change(backends.PortGroupRef("PG"), backends.KindPortGroup, "", backends.Absent),
			`govc object.destroy "$(govc find / -type DistributedVirtualPortgroup -name 'PG')"`},
	} {
		steps := rollback.ByHand([]plan.Change{tt.change}, nil)
		if page := (rollback.Page{Steps: steps}).Markdown(); !strings.Contains(page, "    "+tt.want) && !strings.Contains(page, tt.want+"\n") {
			t.Errorf("%s: want %s in\n%s", tt.change.ID(), tt.want, page)
		}
	}
	upgrade := change(vm, backends.KindHardware, "", backends.ValueOf(13))
	upgrade.Irreversible = "a hardware version cannot be lowered"
	file := backends.Item{Kind: backends.ItemFile, Name: "/etc/modules-load.d/rdma-setup.conf"}
	unit := backends.Item{Kind: backends.ItemUnit, Name: "rdma-setup.service"}
	images := backends.Item{Kind: backends.ItemInitramfs, Name: "/boot", State: backends.ValueOf("none")}
	modules := change(guest, backends.KindModules, "rdma", backends.ValueOf([]string{"mlx5_ib"}))
	modules.To = backends.ValueOf([]string{"mlx5_ib", "ib_umad"})
	persist := change(guest, backends.KindPersist, "", backends.Absent)
	page := rollback.Page{Steps: rollback.ByHand([]plan.Change{change(host, backends.KindFirewall, "pvrdma", backends.ValueOf(false)), upgrade,
		modules, persist},
		map[string]*backends.Kept{persist.ID(): {Items: []backends.Item{file, unit, images}}})}.Markdown()
	// systemctl(1): disable needs the unit's file; daemon-reload comes after it is gone. update-initramfs(8): -k all.
	at := 0
	for _, line := range []string{"`sudo systemctl disable --now 'rdma-setup.service'`", "`sudo rm -f '/etc/modules-load.d/rdma-setup.conf'`",
		"sudo update-initramfs -u -k all", "`sudo systemctl daemon-reload`", "sudo modprobe -r ib_umad\n"} {
		i := strings.Index(page[at:], line)
		if i < 0 {
			t.Fatalf("%q is not there, or not where it belongs:\n%s", line, page)
		}
		at += i
	}
	g, v, h := strings.Index(page, "## Guest vm-01"), strings.Index(page, "## VM it's vm"), strings.Index(page, "## Host esx-01")
	if g < 0 || g > v || v > h || !strings.Contains(page, "It cannot be undone: a hardware version cannot be lowered.") ||
		!strings.Contains(page, "`sudo rm -f '/etc/modules-load.d/rdma-setup.conf'`") {
		t.Errorf("the page:\n%s", page)
	}
}

// The page says for each program how to remove, at the VM's console and without network, the file that this program writes for an adapter.
func TestConsoleCommandsRemoveOurFiles(t *testing.T) {
	for system, program := range map[netconf.System]string{netconf.Netplan: "netplan", netconf.NetworkManager: "NetworkManager",
		netconf.Networkd: "systemd-networkd",
		netconf.Ifcfg:    "network-scripts", netconf.Ifupdown: "ifupdown"} {
		for _, group := range []string{"RDMA-PG", "Größe 1/2", backends.WholeHCA} {
			c := plan.Change{Setting: backends.Setting{Target: backends.GuestRef("vm-01"), Kind: backends.KindAddress, Name: group},
				To: backends.ValueOf("x")}
			page := rollback.Page{Steps: rollback.ByHand([]plan.Change{c}, nil)}.Markdown()
			_, command, _ := strings.Cut(page, "\n- "+program+": `rm -f ")
			command, _, _ = strings.Cut(command, " && ")
			file, _ := netconf.FileFor(system, netconf.Static{PortGroup: group, NIC: netconf.NIC{Name: "ens224", MAC: "00:50:56:00:00:01"}})
			if !slices.ContainsFunc(strings.Fields(command), func(word string) bool {
				is, err := path.Match(strings.TrimSuffix(word, ")"), file.Path)
				return is && err == nil
			}) {
				t.Errorf("%s: %q does not remove %s", program, command, file.Path)
			}
		}
	}
}
