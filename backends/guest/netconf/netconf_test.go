package netconf_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
)

var update = flag.Bool("update", false, "write the golden files")

func static() netconf.Static {
	return netconf.Static{NIC: netconf.NIC{Name: "ens224f0", MAC: "00:50:56:9a:0b:0c"}, PortGroup: "RDMA-PG", CIDR: "192.168.60.21/24", MTU: 9000}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Error(d)
	}
}

func TestTexts(t *testing.T) {
	a := static()
	golden(t, "netplan.yaml", netconf.NetplanText("rdma-setup-RDMA-PG", a))
	golden(t, "connection.nmconnection", netconf.KeyfileText(a))
	golden(t, "ifcfg-ens224f0", netconf.IfcfgText(a))
	golden(t, "rdma.network", netconf.NetworkdText(a))
	golden(t, "interfaces", netconf.InterfacesText(a))
	a.Table = 5002 // another interface is in the subnet
	golden(t, "netplan-table.yaml", netconf.NetplanText("rdma-setup-RDMA-PG", a))
	golden(t, "connection-table.nmconnection", netconf.KeyfileText(a))
	golden(t, "rdma-table.network", netconf.NetworkdText(a))
	golden(t, "interfaces-table", netconf.InterfacesText(a))
}

// What is written is found again, by every system, whatever else is configured.
func TestWhatIsWrittenIsFound(t *testing.T) {
	others := []netconf.File{
		{"/etc/netplan/00-installer-config.yaml", "network:\n  version: 2\n  ethernets:\n    ens192: {dhcp4: true}\n"},
		{"/etc/NetworkManager/system-connections/Wired connection 1.nmconnection", "[connection]\nid=Wired connection 1\ntype=ethernet\n[ipv4]\nmethod=auto\n"},
		{"/etc/sysconfig/network-scripts/ifcfg-ens192", "DEVICE=ens192\nBOOTPROTO=dhcp\nONBOOT=yes\n"},
		{"/etc/systemd/network/50-other.network", "[Match]\nName=ens192\n[Network]\nDHCP=yes\n"},
		{"/etc/network/interfaces", "auto lo\niface lo inet loopback\nallow-hotplug ens192\niface ens192 inet dhcp\n"},
	}
	a := static()
	for _, s := range []netconf.System{netconf.Netplan, netconf.NetworkManager, netconf.Ifcfg, netconf.Networkd, netconf.Ifupdown} {
		t.Run(string(s), func(t *testing.T) {
			if c, ok := netconf.Finder(s, others)(a.NIC); ok {
				t.Errorf("found before it was written: %+v", c)
			}
			f, ok := netconf.Write(s, others, a)
			if !ok {
				t.Fatal("nothing to write")
			}
			c, ok := netconf.Finder(s, append(others, f))(a.NIC)
			if !ok || c.File != f.Path || c.MTU != 9000 || c.DHCP || len(c.Addresses) != 1 || c.Addresses[0] != a.CIDR {
				t.Errorf("%v %+v", ok, c)
			}
			b := a
			b.Table = 5002
			if f, ok = netconf.Write(s, others, b); s != netconf.Ifcfg { // its rules are in other files
				if c, found := netconf.Finder(s, append(others, f))(a.NIC); !ok || !found || c.Table != 5002 || len(c.Addresses) != 1 {
					t.Errorf("with a table: %+v of\n%s", c, f.Content)
				}
			}
			if c, ok := netconf.Finder(s, append(others, f))(netconf.NIC{Name: "ens256", MAC: "00:50:56:9a:0b:0d"}); ok {
				t.Errorf("it speaks for another interface: %+v", c)
			}
		})
	}
}

// With DHCP every system but ifupdown leaves routes and DNS servers out, and keeps the MTU; the words are those of netplan's reference,
// nm-settings(5), initscripts' sysconfig.txt and systemd.network(5).
func TestDHCPTakesTheAddressAlone(t *testing.T) {
	a := static()
	a.CIDR = "dhcp"
	for s, words := range map[netconf.System][]string{
		netconf.Netplan:        {"dhcp4: true\n", "use-routes: false\n", "use-dns: false\n", "use-mtu: false\n"},
		netconf.NetworkManager: {"method=auto\n", "never-default=true\n", "ignore-auto-routes=true\n", "ignore-auto-dns=true\n"},
		netconf.Ifcfg:          {"BOOTPROTO=dhcp\n", "DEFROUTE=no\n", "PEERROUTES=no\n", "PEERDNS=no\n"},
		netconf.Networkd:       {"DHCP=ipv4\n", "[DHCPv4]\n", "UseRoutes=no\n", "UseDNS=no\n", "UseMTU=no\n"},
		netconf.Ifupdown:       {"inet dhcp\n", "mtu 9000\n"},
	} {
		f, ok := netconf.Write(s, nil, a)
		for _, w := range words {
			if !strings.Contains(f.Content, w) {
				t.Errorf("%s lacks %q:\n%s", s, w, f.Content)
			}
		}
		c, found := netconf.Finder(s, []netconf.File{f})(a.NIC)
		if !ok || !found || !c.DHCP || len(c.Addresses) != 0 || c.MTU != 9000 && s != netconf.Ifupdown {
			t.Errorf("%s: %v %v %+v", s, ok, found, c)
		}
	}
}

func TestNetplanMerges(t *testing.T) {
	nic := static().NIC
	for _, test := range []struct {
		name  string
		files []netconf.File
		id    string // that our file must take
	}{
		{"nobody has the interface", nil, "rdma-setup-RDMA-PG"},
		{"cloud-init has it by MAC under another id", []netconf.File{
			{"/etc/netplan/50-cloud-init.yaml", "network:\n  version: 2\n  ethernets:\n    nic1:\n      match: {macaddress: \"00:50:56:9A:0B:0C\"}\n      dhcp4: true\n      set-name: rdma0\n"}}, "nic1"},
		{"the installer has it by its name", []netconf.File{
			{"/etc/netplan/00-installer-config.yaml", "network:\n  ethernets:\n    ens224f0: {dhcp4: yes}\n"}}, "ens224f0"},
		{"a pattern of names", []netconf.File{
			{"/etc/netplan/10-all.yaml", "network:\n  ethernets:\n    all: {match: {name: \"ens*\"}, dhcp4: true}\n"}}, "all"},
		{"by MAC goes before by pattern", []netconf.File{
			{"/etc/netplan/10-all.yaml", "network:\n  ethernets:\n    all: {match: {name: \"ens*\"}, dhcp4: true}\n    mine: {match: {macaddress: \"00:50:56:9a:0b:0c\"}}\n"}}, "mine"},
		{"the id is its name, but it means another MAC", []netconf.File{
			{"/etc/netplan/10-x.yaml", "network:\n  ethernets:\n    ens224f0: {match: {macaddress: \"00:50:56:00:00:01\"}}\n"}}, "rdma-setup-RDMA-PG"},
		{"a file that is no YAML is not ours to fix", []netconf.File{{"/etc/netplan/10-x.yaml", "\tnetwork: ["}}, "rdma-setup-RDMA-PG"},
		{"hidden by a file of the same name in /etc", []netconf.File{
			{"/lib/netplan/10-x.yaml", "network:\n  ethernets:\n    lib: {match: {macaddress: \"00:50:56:9a:0b:0c\"}}\n"},
			{"/etc/netplan/10-x.yaml", "network: {}\n"}}, "rdma-setup-RDMA-PG"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, _ := netconf.Write(netconf.Netplan, test.files, static())
			if !strings.Contains(f.Content, "\n    "+test.id+":\n") {
				t.Fatalf("want the stanza %s:\n%s", test.id, f.Content)
			}
			c, ok := netconf.Finder(netconf.Netplan, append(test.files, f))(nic)
			if !ok || c.ID != test.id || c.DHCP || c.MTU != 9000 || c.Addresses[len(c.Addresses)-1] != "192.168.60.21/24" {
				t.Errorf("%v %+v", ok, c)
			}
			if again, _ := netconf.Write(netconf.Netplan, append(test.files, f), static()); again != f {
				t.Errorf("writing again gives another file:\n%s", again.Content)
			}
		})
	}
}

func TestFind(t *testing.T) {
	nic := static().NIC
	for _, test := range []struct {
		name   string
		system netconf.System
		files  []netconf.File
		want   netconf.Config
		found  bool
	}{
		{"NetworkManager: the higher priority wins", netconf.NetworkManager, []netconf.File{
			{"/etc/NetworkManager/system-connections/a.nmconnection", "[connection]\nid=a\ntype=ethernet\ninterface-name=ens224f0\n[ipv4]\nmethod=auto\n"},
			{"/etc/NetworkManager/system-connections/b.nmconnection", "[connection]\nid=b\ntype=ethernet\ninterface-name=ens224f0\nautoconnect-priority=5\n[ethernet]\nmtu=4200\n[ipv4]\nmethod=manual\naddress1=10.1.1.5/24,10.1.1.1\naddress2=10.1.2.5/24\n"},
		}, netconf.Config{File: "/etc/NetworkManager/system-connections/b.nmconnection", ID: "b", MTU: 4200, Addresses: []string{"10.1.1.5/24", "10.1.2.5/24"}}, true},
		{"NetworkManager: a profile that is not started by itself is not persistent", netconf.NetworkManager, []netconf.File{
			{"/etc/NetworkManager/system-connections/a.nmconnection", "[connection]\nid=a\ntype=ethernet\ninterface-name=ens224f0\nautoconnect=false\n"},
		}, netconf.Config{}, false},
		{"NetworkManager reads ifcfg too (EL 8)", netconf.NetworkManager, []netconf.File{
			{"/etc/sysconfig/network-scripts/ifcfg-ens224f0", "NAME=\"ens224f0\"\nDEVICE=ens224f0\nONBOOT=yes\nBOOTPROTO=none\nIPADDR=10.9.8.7\nNETMASK=255.255.252.0\nMTU=9000\n"},
		}, netconf.Config{File: "/etc/sysconfig/network-scripts/ifcfg-ens224f0", ID: "ens224f0", MTU: 9000, Addresses: []string{"10.9.8.7/22"}}, true},
		{"ifcfg: the MAC of another card (a copied file)", netconf.Ifcfg, []netconf.File{
			{"/etc/sysconfig/network-scripts/ifcfg-ens224f0", "DEVICE=ens224f0\nHWADDR=00:50:56:00:00:01\nONBOOT=yes\n"},
		}, netconf.Config{}, false},
		{"networkd: the first file by name wins, whatever its directory", netconf.Networkd, []netconf.File{
			{"/etc/systemd/network/20-b.network", "[Match]\nName=ens*\n[Network]\nDHCP=ipv4\n"},
			{"/run/systemd/network/10-netplan-x.network", "[Match]\nPermanentMACAddress=00:50:56:9A:0B:0C\n[Link]\nMTUBytes=9000\n[Network]\nAddress=10.3.0.1/16\nAddress=10.4.0.1/16\n"},
		}, netconf.Config{File: "/run/systemd/network/10-netplan-x.network", ID: "10-netplan-x.network", MTU: 9000, Addresses: []string{"10.3.0.1/16", "10.4.0.1/16"}}, true},
		{"ifupdown with a netmask on its own line", netconf.Ifupdown, []netconf.File{
			{"/etc/network/interfaces", "auto ens224f0\niface ens224f0 inet static\n  address 10.5.0.1\n  netmask 255.255.0.0\n  mtu 1600\n"},
		}, netconf.Config{File: "/etc/network/interfaces", ID: "ens224f0", MTU: 1600, Addresses: []string{"10.5.0.1/16"}}, true},
		{"ifupdown: not brought up at boot", netconf.Ifupdown, []netconf.File{
			{"/etc/network/interfaces", "iface ens224f0 inet dhcp\n"},
		}, netconf.Config{File: "/etc/network/interfaces", ID: "ens224f0", DHCP: true}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := netconf.Finder(test.system, test.files)(nic)
			if d := cmp.Diff(test.want, got); ok != test.found || d != "" {
				t.Errorf("found %v\n%s", ok, d)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	plan := []netconf.File{{Path: "/etc/netplan/01-netcfg.yaml"}}
	for _, test := range []struct {
		name  string
		what  string
		files []netconf.File
		want  netconf.System
	}{
		{"Ubuntu server", "netplan systemd-networkd", plan, netconf.Netplan},
		{"Ubuntu without root", "netplan netplan-files systemd-networkd", nil, netconf.Netplan},
		{"Ubuntu desktop", "netplan nmcli NetworkManager", plan, netconf.Netplan},
		{"EL 9", "nmcli NetworkManager network-scripts", nil, netconf.NetworkManager},
		{"EL 7 without NetworkManager", "ifup network-scripts", nil, netconf.Ifcfg},
		{"Debian with networkd", "ifup systemd-networkd", nil, netconf.Networkd},
		{"Debian", "ifup", nil, netconf.Ifupdown},
		{"netplan is installed but not used", "netplan ifup", nil, netconf.Ifupdown},
		{"nothing known", "", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := netconf.Detect(strings.Fields(test.what), test.files); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSlug(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"RDMA-PG", "RDMA PG", "RDMA/PG", "RDMA%2fPG", "../../etc/passwd", "$(reboot)", "", "数据", strings.Repeat("x", 200), "a\nb", "a b"} {
		s := netconf.Slug(name)
		if s == "" || len(s) > 64 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("%q becomes %q", name, s)
		}
		if old, taken := seen[s]; taken {
			t.Errorf("%q and %q both become %q", old, name, s)
		}
		seen[s] = name
	}
}

// A name of a port group can be anything; the files stay what they are.
func FuzzNetplanText(f *testing.F) {
	f.Add("RDMA-PG")
	f.Add("a\nnetwork: {}")
	f.Add("\u2028x\x85y")
	f.Fuzz(func(t *testing.T, group string) {
		a := static()
		a.PortGroup = group
		file, _ := netconf.Write(netconf.Netplan, nil, a)
		var doc struct {
			Network struct{ Ethernets map[string]any }
		}
		if err := yaml.Unmarshal([]byte(file.Content), &doc); err != nil || len(doc.Network.Ethernets) != 1 {
			t.Fatalf("%v in\n%s", err, file.Content)
		}
		if c, ok := netconf.Finder(netconf.Netplan, []netconf.File{file})(a.NIC); !ok || c.Addresses[0] != a.CIDR {
			t.Fatalf("not found in\n%s", file.Content)
		}
	})
}

// Every program configures our interface with one file, and leaves the other one alone.
func TestProgramsAdd(t *testing.T) {
	a := static()
	links := []netconf.Link{{Name: "ens192", MAC: "00:50:56:9a:0b:0a", Device: true}, {Name: a.Name, MAC: a.MAC, Device: true}}
	for _, s := range []netconf.System{netconf.Netplan, netconf.NetworkManager, netconf.Ifcfg, netconf.Networkd, netconf.Ifupdown} {
		p, ok := netconf.For(s)
		if !ok {
			t.Fatal(s)
		}
		before, err := p.Effective(nil, links)
		if err != nil {
			t.Fatal(err)
		}
		f, err := p.Add(nil, links, a)
		if err != nil || f.Path != netconf.OwnFile(s, a) {
			t.Fatalf("%s: %v %s", s, err, f.Path)
		}
		after, err := p.Effective([]netconf.File{f}, links)
		if err != nil {
			t.Fatal(err)
		}
		if is, ok := netconf.Of(after, a.Name); !ok || is.File != f.Path || is.MTU != a.MTU || len(is.Addresses) != 1 || is.Addresses[0] != a.CIDR {
			t.Errorf("%s: %+v", s, is)
		}
		if d := netconf.Difference(before, after, a.Name); d != nil {
			t.Errorf("%s: %q", s, d)
		}
		if d := netconf.Difference(before, after, ""); d == nil {
			t.Errorf("%s: nothing differs", s)
		}
		if all, err := netconf.Generated([]netconf.File{f}, nil, links); err != nil || len(all) != len(links) {
			t.Errorf("%s: %v", s, err)
		}
	}
}
