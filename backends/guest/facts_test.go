package guest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
)

// survey is what a guest with soft-RoCE and VLANs prints; every tool that can be missing is.
var survey = strings.ReplaceAll(`noise
§os
NAME="A \"quoted\" Linux"
ID='quoted'
VERSION_ID=9
ID_LIKE="rhel fedora"
§kernel
6.1.0-56-amd64
§managers
/usr/bin/yum
§modules
rdma_rxe 135168 0 - Live 0x0000000000000000
ib_core 442368 1 rdma_rxe, Live 0x0000000000000000
§rdma
device rxe0
fw_ver 
state 4: ACTIVE
rate 2.5 Gb/sec (1X SDR)
link_layer Ethernet
netdev ens224
gid 10|0000:0000:0000:0000:0000:ffff:0a01:0203|RoCE v2|ens224
gid 1|fe80:0000:0000:0000:0250:56ff:fe00:0201|RoCE v2|ens224
gid x|broken
class Global tclass=106
§links
lo|00:00:00:00:00:00|65536|0x9|unknown|-|-
ens224|00:50:56:AA:00:01|9000|0x1003|up|device|-
ens224.7|00:50:56:aa:00:01|9000|0x1003|up|-|-
ens256|00:50:56:aa:00:02|1500|0x1002|down|device|bond0
broken line
§addresses
2: ens224: <BROADCAST,UP> mtu 9000
    inet 10.1.2.3/8 brd 10.255.255.255 scope global ens224
    inet6 fe80::250:56ff:feaa:1/64 scope link
3: ens224.7@ens224: <BROADCAST,UP> mtu 9000
    inet 172.16.0.9/16 scope global dynamic ens224.7
    inet nonsense
§connection
192.0.2.9 50022 ::ffff:172.16.0.9 22
§routes
default via 10.1.0.1 dev ens224
§memlock
64
§rpm
rpm|4.16.1.3-29.el9
package perftest is not installed
§perftest
Version: 6.06
§pci
read
0000:13:00.1 Network controller [0280]: VMware Paravirtual RDMA controller [15ad:0820]
0000:02:00.0 SCSI storage controller [0100]: VMware PVSCSI [15ad:07c0]
§kernlog
read
§headers
no
§secureboot
SecureBoot enabled
§hugepages
HugePages_Total:    1024
§ufw
Status: active

To                         Action      From
--                         ------      ----
18515/tcp                  ALLOW       10.0.0.0/8
4791/udp                   DENY        Anywhere
§forwarding
1
kubelet
-P FORWARD DROP
§smi
GPU 0: NVIDIA A30 (UUID: GPU-3b8b8a0d-0000-0000-0000-000000000000)
§smidriver
550.54.15
§nvlicense
Dual MIT/GPL
§duplicates
address ens224 10.1.2.3
Unicast reply from 10.1.2.3 [00:50:56:BB:00:09]  1.023ms
§ofed
MLNX_OFED_LINUX-5.8-1.1.2.1:
`, "§", mark)

// A package manager that fails, or lists nothing, does not say that nothing is installed. Without /var/lib/dpkg/status, dpkg-query -W
// of dpkg 1.21.22 prints nothing and ends with 0.
func TestKnowsPackages(t *testing.T) {
	const dpkg, rpm = "ii |dpkg|1.21.22|\nii |perftest|4.5|\n", "rpm|4.16\nperftest|4.5\n"
	for name, test := range map[string]struct {
		dpkg, rpm string
		want      bool
	}{
		"dpkg":                          {dpkg, "", true},
		"dpkg, with rpm beside it":      {dpkg, "package rpm is not installed\n", true},
		"rpm":                           {"", rpm, true},
		"rpm, with dpkg beside it":      {"!\n", rpm, true},
		"dpkg lists nothing":            {"", "", false},
		"dpkg was killed":               {dpkg + "\n!\n", "", false},
		"dpkg was killed within a line": {dpkg + "ii |perf\n!\n", "", false},
		"rpm cannot read its database":  {"", "package rpm is not installed\npackage perftest is not installed\n", false},
		"rpm -q was killed once":        {"", rpm + "!\n", false},
		"a package of a similar name":   {"ii |dpkg-dev|1.21.22|dpkg\n", "rpm-libs|4.16\n", false},
	} {
		if got := (facts{"dpkg": test.dpkg, "rpm": test.rpm}).knowsPackages(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestFacts(t *testing.T) {
	var got backends.Guest
	sections(survey).fill(&got, Options{Modules: []string{"rdma_rxe", "vmw_pvrdma", "ib_core"}, Packages: []string{"perftest"}})
	want := backends.Guest{
		OS: "quoted", Version: "9", Like: []string{"rhel", "fedora"}, Kernel: "6.1.0-56-amd64", PackageManager: "yum",
		Packages: map[string]string{},
		Loaded:   []string{"rdma_rxe", "ib_core"}, MemlockKB: 64, Perftest: "6.06", MOFED: "MLNX_OFED_LINUX-5.8-1.1.2.1",
		Interfaces: []backends.Interface{
			{Name: "ens224", MAC: "00:50:56:aa:00:01", MTU: 9000, Up: true, Addresses: []string{"10.1.2.3/8"}, Duplicate: "00:50:56:bb:00:09"},
			{Name: "ens224.7", MAC: "00:50:56:aa:00:01", MTU: 9000, Up: true, Virtual: true, Addresses: []string{"172.16.0.9/16"}, DHCP: true},
			{Name: "ens256", MAC: "00:50:56:aa:00:02", MTU: 1500},
		},
		PCI:       []backends.GuestDevice{{Address: "0000:13:00.1", Vendor: "15ad", Device: "0820", Name: "VMware Paravirtual RDMA controller"}},
		KernelLog: []string{}, Headers: new(false), SecureBoot: new(true), HugePages: new(1024),
		Firewall:   &backends.GuestFirewall{Kind: "ufw", Active: true, Open: []string{"18515/tcp"}},
		Forwarding: &backends.Forwarding{Kubernetes: true, IPForward: true, Policy: "DROP"},
		NVIDIA:     &backends.NVIDIA{GPUs: []string{"NVIDIA A30"}, Driver: "550.54.15", DMABuf: true},
		RDMA: []backends.VerbsDevice{{Name: "rxe0", Driver: "rxe", Interface: "ens224", MAC: "00:50:56:aa:00:01", State: "PORT_ACTIVE",
			LinkLayer: "Ethernet", RateGbps: 2.5, Class: new(106),
			GIDs: []backends.GID{
				{Index: 1, GID: "fe80:0000:0000:0000:0250:56ff:fe00:0201", Type: "RoCE v2", Netdev: "ens224"},
				{Index: 10, GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "RoCE v2", IPv4: "10.1.2.3", Netdev: "ens224"},
			}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	n := sections(survey).network()
	if i := n.byMAC("00:50:56:aa:00:01"); i == nil || i.Name != "ens224" {
		t.Errorf("behind the MAC is %+v", i)
	}
	if n.management["ens224"] == "" || n.management["ens224.7"] == "" || n.master["ens256"] != "bond0" {
		t.Errorf("management %v, master %v", n.management, n.master)
	}
}

func TestReloads(t *testing.T) {
	for _, test := range []struct{ name, unit, want string }{
		{"ours", UnitText("vmw_pvrdma"), "vmw_pvrdma"},
		{"one line of shell", "[Service]\nExecStart=/bin/sh -c 'modprobe -r vmw_pvrdma; modprobe vmw_pvrdma'\n", "vmw_pvrdma"},
		{"only loads", "[Service]\nExecStart=/sbin/modprobe vmw_pvrdma\n", ""},
		{"another module comes back", "[Service]\nExecStart=/sbin/modprobe -r vmw_pvrdma\nExecStart=/sbin/modprobe mlx5_ib\n", ""},
		{"with its unloading before", "[Service]\nExecStartPre=-/usr/sbin/modprobe -r vmw_pvrdma\nExecStart=/usr/sbin/modprobe vmw_pvrdma\n",
			"vmw_pvrdma"},
	} {
		if got := reloads(test.unit); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// Whatever a guest prints, reading it ends and does not panic.
func FuzzFacts(f *testing.F) {
	f.Add(survey)
	f.Add(strings.ReplaceAll("@netfiles\nfile 600|0:0|99999999|/etc/netplan/x.yaml\nnetwork:\n@persist\nfile 644|0:0|-1|/etc/x\n", "@", mark))
	f.Add(
		strings.ReplaceAll(
			"@netconfig\nnetplan\n@netfiles\nfile 600|0:0|43|/etc/netplan/x.yaml\nnetwork: {ethernets: {a: {addresses: [1, []]}}}\n", "@", mark))
	f.Add(strings.ReplaceAll("@engine\nengine docker\nbuilt\nbuilt  \nimage\nlooking\ninside\n", "@", mark))
	f.Fuzz(func(t *testing.T, text string) {
		var g backends.Guest
		sections(text).fill(&g, Options{Modules: DefaultModules(), Packages: DefaultPackages()})
	})
}

func TestClockSkew(t *testing.T) {
	from := time.Unix(1000, 0)
	for said, want := range map[string]*int{"999": new(0), "1000": new(0), "1010": new(0), "1011": new(1), "4610": new(3600), "969": new(-30),
		"": nil, "date: not found": nil} {
		got := facts{"clock": said}.clockSkew(from, from.Add(10*time.Second))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", said, d)
		}
	}
}

// modinfo names files, or each module by itself where one of them is built in. Without modinfo nothing is known.
func TestAvailableModules(t *testing.T) {
	want := []string{"ib_core", "nvidia_peermem"}
	for _, text := range []string{
		"modinfo\n/lib/modules/6.1.0-49-amd64/updates/dkms/nvidia-peermem.ko\n/lib/modules/6.1.0-49-amd64/kernel/drivers/infiniband/core/ib_core.ko.xz\n",
		"modinfo\nib_core\nnvidia_peermem\n",
	} {
		f := facts{"available": text}
		if got := f.available([]string{"ib_core", "vmw_pvrdma", "nvidia_peermem"}); !slices.Equal(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
	if got := (facts{"available": "\n", "builtin": "ib_core"}).available(want); got != nil {
		t.Errorf("modinfo is missing: %v", got)
	}
}

// A name is looked for as a whole, with either dash; a file that is missing or no name to look for prints nothing.
func TestBuiltInScript(t *testing.T) {
	release, err := exec.Command("uname", "-r").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir,
		map[string]string{"lib/modules/" + strings.TrimSpace(string(release)) +
			"/modules.builtin": "kernel/drivers/infiniband/core/ib_core.ko\n" +
			"kernel/drivers/infiniband/ulp/srp/ib_srp.ko\nkernel/crypto/async_tx/async-tx.ko\nkernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko\n"})
	for names, want := range map[string]string{
		"ib_core mlx5_core": "kernel/drivers/infiniband/core/ib_core.ko\nkernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko\n",
		"async_tx":          "kernel/crypto/async_tx/async_tx.ko\n",
		"core ib ib_s":      "",
		"":                  "",
	} {
		script := strings.ReplaceAll(assets.Script("builtin.sh"), "/lib/modules/", dir+"/lib/modules/")
		// grep fails if it finds nothing
		out, _ := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, strings.Fields(names)...)...).Output()
		if string(out) != want {
			t.Errorf("%s: %q, want %q", names, out, want)
		}
	}
}

// Numbers of tables and rules belong to the interface whose address they are for (texts of iproute2 6.1; rt_tables as Debian has it).
func TestRouteNumbers(t *testing.T) {
	n := network{rules: map[string][]rule{"ens192": {{"192.168.50.11", 5001, true}}}}
	f := facts{
		"rules": "0:\tfrom all lookup local\n100:\tfrom 10.0.0.0/8 fwmark 0x1 lookup 52\n5001:\tfrom 192.168.50.11 lookup 5001 proto " +
			"static\n5002:\tfrom all lookup vpn\n32766:\tfrom all lookup main\n",
		"tables": "192.168.50.0/24 dev ens192 table 5001 proto static scope link src 192.168.50.11\ndefault via 10.9.9.1 dev ens160 " +
			"table 5003\n",
		"rttables": "#\n# reserved values\n#\n255\tlocal\n254\tmain\n253\tdefault\n0\tunspec\n#\n#1\tinr.ruhep\n600 vpn\n",
	}
	want := map[int]string{5001: "ens192", 5002: "", 5003: "ens160", 600: ""}
	if d := cmp.Diff(want, f.routeNumbers(&n)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	f["tables"] += "10.9.9.0/24 dev ens160 table 5001\n"
	if got := f.routeNumbers(&n)[5001]; got != "" {
		t.Errorf("a table with routes of two interfaces is for %s", got)
	}
}
