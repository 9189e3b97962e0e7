package shell_test

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// bare adds a PVRDMA adapter on a configured switch to the first VMs of a healthy lab. The guests are not set up.
func bare(t *testing.T, name string, vms int) *lab {
	t.Helper()
	l := start(t, scenario.Spec{Hosts: 2, VMs: vms, Scenario: name})
	err := l.world.Update(func(s *world.State) ([]world.Event, error) {
		d := &world.DVS{Name: "D", MTU: 9000, Uplinks: []string{"u1"}, PortGroups: []*world.PortGroup{{Name: "P", Active: []string{"u1"}}}}
		for _, h := range s.Hosts {
			d.Members = append(d.Members, &world.Member{Host: h.Name, PNICs: []string{"vmnic2"}})
			h.Options["Net.PVRDMAVmknic"] = "vmk0"
			h.Ruleset("pvrdma").Enabled = true
		}
		s.Switches = append(s.Switches, d)
		for _, v := range s.VMs {
			v.Adapters = append(v.Adapters, &world.Adapter{Type: world.PVRDMA, MAC: strings.Replace(v.Adapters[0].MAC, ":80:", ":81:", 1),
				DVS: "D", PortGroup: "P", Protocol: "rocev2", Connected: true, Start: true, Slot: 224})
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

const address = "network:\n  version: 2\n  ethernets:\n    r:\n      match: {macaddress: \"00:50:56:81:00:00\"}\n      addresses: " +
	"[192.168.50.11/24]\n      mtu: 9000\n"

func state(t *testing.T, c *ssh.Client) string {
	t.Helper()
	out := ok(t, c, "rdma link")
	_, rest, _ := strings.Cut(out, " state ")
	word, _, _ := strings.Cut(rest, " ")
	return word
}

// VMware's Bitfusion guide: on Ubuntu the port is down after each boot until vmw_pvrdma is reloaded after all other steps.
func TestUbuntuPortIsDownUntilTheDriverIsLoadedAgain(t *testing.T) {
	l := bare(t, "", 1)
	c := l.dial("vm-01", "root")
	if got := ok(t, c, "ls /sys/class/infiniband; ip -br link show ens224f0 | cut -c1-22"); got != "vmw_pvrdma0\nens224f0         DOWN \n" {
		t.Errorf("without rdma-core and without configuration: %q", got)
	}
	if r := run(t, c, "ibv_devinfo", ""); r.status != 127 {
		t.Errorf("without packages: %+v", r)
	}
	ok(t, c, "apt-get install -y ibverbs-utils")
	if r := run(t, c, "ibv_devinfo", ""); r.status != 255 || !strings.Contains(r.err, "no userspace device-specific driver found") ||
		!strings.HasSuffix(r.err, "No IB devices found\n") {
		t.Errorf("without a provider: %+v", r)
	}
	ok(t, c, "apt-get install -y rdma-core libmlx4-1 infiniband-diags rdmacm-utils perftest")
	run(t, c, "umask 077; cat >/etc/netplan/60-r.yaml", address)
	ok(t, c, "netplan apply; modprobe -a ib_umad rdma_cm rdma_ucm")
	for _, step := range []struct{ command, want string }{
		{"true", "DOWN"},
		{"ip link set ens224f0 down; ip link set ens224f0 up", "DOWN"},
		{"ip link set ens224f0 down; modprobe -r vmw_pvrdma; modprobe vmw_pvrdma", "DOWN"},
		{"ip link set ens224f0 up", "ACTIVE"},
		{"ip link set ens224f0 down", "DOWN"},
		{"ip link set ens224f0 up", "ACTIVE"},
		{"modprobe -r vmw_pvrdma; modprobe vmw_pvrdma", "ACTIVE"},
	} {
		ok(t, c, step.command)
		if got := state(t, c); got != step.want {
			t.Fatalf("after %q the port is %s, want %s", step.command, got, step.want)
		}
	}
	if got := ok(t, c,
		"ls /sys/class/infiniband; ibv_devinfo | grep -E 'state|active_mtu' | tr -d '\\t'"); got != "rocep19s0f1\nstate:PORT_ACTIVE "+
		"(4)\nactive_mtu:4096 (5)\n" {
		t.Errorf("got %q", got)
	}
	id := ok(t, c, "cat /proc/sys/kernel/random/boot_id")
	ok(t, c, "reboot")
	c = l.reconnect("vm-01", "root", id)
	if got := state(t, c); got != "DOWN" {
		t.Errorf("after the reboot the port is %s", got)
	}
	if got := ok(t, c,
		"ip -br addr show ens224f0; cat /sys/class/net/ens224f0/mtu; modprobe -r vmw_pvrdma; modprobe vmw_pvrdma; rdma link"); !strings.Contains(
		got, "192.168.50.11/24") || !strings.Contains(got, "9000\nlink rocep19s0f1/1 state ACTIVE physical_state LINK_UP netdev ens224f0 ") {
		t.Errorf("got %q", got)
	}
}

// Red Hat's ESXi test suite: after setting the address and loading ib_umad, the port is active without a reload of the driver.
func TestEnterprisePortIsActiveOnceUmadIsThere(t *testing.T) {
	l := bare(t, "centos", 1)
	c := l.dial("vm-01", "root")
	ok(t, c, "dnf install -y rdma-core libibverbs")
	profile(t, c, "r", "ens224f0", "192.168.50.11/24")
	ok(t, c, "nmcli con up r ifname ens224f0")
	if got := state(t, c); got != "DOWN" {
		t.Errorf("before ib_umad the port is %s", got)
	}
	ok(t, c, "modprobe ib_umad")
	if got := state(t, c); got != "ACTIVE" {
		t.Errorf("with ib_umad it is %s", got)
	}
}

// The port of vmw_pvrdma has the RoCE version of its adapter alone (Linux, drivers/infiniband/hw/vmw_pvrdma,
// pvrdma_port_immutable).
func TestGIDTable(t *testing.T) {
	l := bare(t, "", 2)
	err := l.world.Update(func(s *world.State) ([]world.Event, error) {
		s.VM("vm-02").RDMA()[0].Protocol = "rocev1"
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for vm, want := range map[string]string{
		"vm-01": "0 RoCE v2 fe80:0000:0000:0000:0250:56ff:fe81:0000\n1 RoCE v2 0000:0000:0000:0000:0000:ffff:c0a8:320b\n",
		"vm-02": "0 IB/RoCE v1 fe80:0000:0000:0000:0250:56ff:fe81:0001\n1 IB/RoCE v1 0000:0000:0000:0000:0000:ffff:c0a8:320b\n",
	} {
		t.Run(vm, func(t *testing.T) {
			c := l.dial(vm, "root")
			ok(t, c, "ip link set ens224f0 mtu 1500 up; ip addr add 192.168.50.11/24 dev ens224f0")
			got := ok(t, c,
				`cd /sys/class/infiniband/*/ports/1; for i in 0 1 2 3 4; do t=$(cat gid_attrs/types/$i 2>/dev/null) && echo "$i $t $(cat gids/$i)"; done; :`)
			if got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if r := run(t, c, "cat /sys/class/infiniband/*/ports/1/gid_attrs/types/9", ""); !strings.HasSuffix(r.err, ": Invalid argument\n") {
				t.Errorf("an empty entry has a type: %+v", r)
			}
			if got := ok(t, c,
				"apt-get install -y ibverbs-utils ibverbs-providers >/dev/null; ibv_devinfo | grep -c 'active_mtu:.*1024 (3)'"); got != "1\n" {
				t.Errorf("at 1500 bytes the active MTU is not 1024: %q", got)
			}
		})
	}
}

func TestDriverInUse(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 2, VMs: 2, Scenario: "done"})
	c := l.dial("vm-01", "root")
	ok(t, c, "nohup ib_send_bw -F >/dev/null 2>&1 &")
	eventually(t, "the server waits", func() bool { return strings.Contains(ok(t, c, "ss -ltn"), ":18515") })
	if r := run(t, c, "modprobe -r vmw_pvrdma", ""); r.status != 1 || r.err != "modprobe: FATAL: Module vmw_pvrdma is in use.\n" {
		t.Errorf("got %+v", r)
	}
	ok(t, c, "pkill ib_send_bw; sleep 0.05; modprobe -r vmw_pvrdma")
	if r := run(t, c, "ibv_devinfo", ""); r.status != 255 {
		t.Errorf("a device without its driver: %+v", r)
	}
}

func TestBlacklistedDriver(t *testing.T) {
	l := bare(t, "", 1)
	c := l.dial("vm-01", "root")
	id := ok(t, c, "cat /proc/sys/kernel/random/boot_id; echo blacklist vmw_pvrdma >/etc/modprobe.d/no.conf")
	ok(t, c, "reboot")
	c = l.reconnect("vm-01", "root", id)
	if got := ok(t, c,
		"lsmod | grep -c pvrdma || :; lspci | grep -c 'Infiniband controller: VMware Paravirtual RDMA controller'; ls /sys/class/infiniband"); got != "0\n1\n" {
		t.Errorf("got %q", got)
	}
}
