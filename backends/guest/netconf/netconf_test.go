package netconf_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

func static() netconf.Static {
	return netconf.Static{NIC: netconf.NIC{Name: "ens224f0", MAC: "00:50:56:9a:0b:0c"}, PortGroup: "RDMA-PG", CIDR: "192.168.60.21/24",
		MTU: 9000}
}

func text(s netconf.System, a netconf.Static) string {
	f, _ := netconf.FileFor(s, a)
	return f.Content
}

func TestTexts(t *testing.T) {
	a := static()
	testclass.Golden(t, "testdata/netplan.yaml", text(netconf.Netplan, a))
	testclass.Golden(t, "testdata/connection.nmconnection", text(netconf.NetworkManager, a))
	testclass.Golden(t, "testdata/ifcfg-ens224f0", text(netconf.Ifcfg, a))
	testclass.Golden(t, "testdata/rdma.network", text(netconf.Networkd, a))
	testclass.Golden(t, "testdata/interfaces", text(netconf.Ifupdown, a))
	a.Table = 5002 // another interface is in the subnet
	testclass.Golden(t, "testdata/netplan-table.yaml", text(netconf.Netplan, a))
	testclass.Golden(t, "testdata/connection-table.nmconnection", text(netconf.NetworkManager, a))
	testclass.Golden(t, "testdata/rdma-table.network", text(netconf.Networkd, a))
	testclass.Golden(t, "testdata/interfaces-table", text(netconf.Ifupdown, a))
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
		said := text(s, a)
		for _, w := range words {
			if !strings.Contains(said, w) {
				t.Errorf("%s lacks %q:\n%s", s, w, said)
			}
		}
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
	for _, name := range []string{"RDMA-PG", "RDMA PG", "RDMA/PG", "RDMA%2fPG", "../../etc/passwd", "$(reboot)", "", "数据",
		strings.Repeat("x", 200), "a\nb", "a b"} {
		s := backends.Slug(name)
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
		p, _ := netconf.For(netconf.Netplan)
		if _, err := p.Add(nil, []netconf.Link{{Name: a.Name, MAC: a.MAC, Device: true}}, a); err != nil {
			t.Fatal(err)
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
		if own, _ := netconf.FileFor(s, a); err != nil || f.Path != own.Path {
			t.Fatalf("%s: %v %s", s, err, f.Path)
		}
		after, err := p.Effective([]netconf.File{f}, links)
		if err != nil {
			t.Fatal(err)
		}
		if is, ok := netconf.Of(after, a.Name); !ok || is.File != f.Path || is.MTU != a.MTU || len(is.Addresses) != 1 ||
			is.Addresses[0] != a.CIDR {
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

// A veth has no permanent MAC, so only here NetworkManager's device lists are by MAC (NetworkManager.conf(5), "Device List Format").
func TestUnmanagedByMAC(t *testing.T) {
	a := static()
	p, _ := netconf.For(netconf.NetworkManager)
	for text, refused := range map[string]bool{
		"[keyfile]\nunmanaged-devices=mac:" + a.MAC + "\n":                        true,
		"[keyfile]\nunmanaged-devices=*,except:mac:" + a.MAC + "\n":               false,
		"[device-x]\nmatch-device=" + a.MAC + ";\nmanaged=0\n":                    true,
		"[keyfile]\nunmanaged-devices=type:ethernet\nunmanaged-devices=type:wifi": false,
	} {
		f := netconf.File{Path: "/etc/NetworkManager/conf.d/10.conf", Content: text}
		_, err := p.Add([]netconf.File{f}, []netconf.Link{{Name: a.Name, MAC: a.MAC, Device: true}}, a)
		if is := err != nil && strings.HasPrefix(err.Error(), f.Path); is != refused {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What nothing in the guest would put in force is refused: ifupdown2 prints "ifupdown2:3.0.0-1.1" and ifupdown-ng "ifupdown-ng 0.11.3" for
// ifup --version, where ifupdown prints "ifup version 0.8.41" (Debian 12).
func TestToolsOfTheGuest(t *testing.T) {
	a := static()
	for _, test := range []struct {
		system           netconf.System
		tools            string
		file, text, want string
	}{
		{netconf.Ifupdown, "ifup", "/etc/network/interfaces", "source /etc/network/interfaces.d/*\n", ""},
		{netconf.Ifupdown, "ifup other-ifup", "/etc/network/interfaces", "source /etc/network/interfaces.d/*\n", "/etc/network/interfaces: "},
		{netconf.Netplan, "netplan NetworkManager", "/etc/netplan/1.yaml", "network: {renderer: NetworkManager}\n", ""},
		{netconf.Netplan, "netplan systemd-networkd", "/etc/netplan/1.yaml", "network: {renderer: NetworkManager}\n",
			"/etc/netplan/1.yaml: its renderer"},
		{netconf.Netplan, "netplan no-networkd", "/etc/netplan/1.yaml", "network: {version: 2}\n", "/etc/netplan/1.yaml: netplan's renderer"},
		{netconf.Netplan, "", "/etc/netplan/1.yaml", "network: {renderer: NetworkManager}\n", ""},
	} {
		p, _ := netconf.For(test.system, strings.Fields(test.tools)...)
		_, err := p.Add([]netconf.File{{Path: test.file, Content: test.text}}, []netconf.Link{{Name: a.Name, MAC: a.MAC, Device: true}}, a)
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s with %s: %v", test.text, test.tools, err)
		}
	}
}

// Files that no parser survives unless it counts are refused by name, and settings of the wrong type are left out.
func TestHostileNetplan(t *testing.T) {
	p, _ := netconf.For(netconf.Netplan)
	links := []netconf.Link{{Name: "ens192", MAC: "00:50:56:80:00:01", Device: true}}
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, " +
		"*b, *b, *b]\n" +
		"d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nnetwork: {version: 2, ethernets: " +
		"{ens192: {addresses: *e}}}\n"
	for text, refused := range map[string]bool{
		bomb: true,
		"network: &a {version: 2, ethernets: *a}\n": true,
		"network: {renderer: NetworkManager, ethernets: {ens192: {dhcp4: true, networkmanager: {passthrough: {connection.permissions: " +
			"[x]}}}}}\n": false,
	} {
		_, err := p.Effective([]netconf.File{{Path: "/etc/netplan/50.yaml", Content: text}}, links)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "/etc/netplan/50.yaml") {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// Links of containers come and go: files that fit any interface say nothing about them.
func TestLinksOfContainersAreNotNamed(t *testing.T) {
	links := []netconf.Link{{Name: "ens192", MAC: "00:50:56:80:00:01", Device: true}, {Name: "veth1a2b", MAC: "02:00:00:00:00:07"},
		{Name: "br0", MAC: "02:00:00:00:00:08"}}
	for system, files := range map[netconf.System][]netconf.File{
		netconf.Networkd: {{Path: "/etc/systemd/network/zz-default.network", Content: "[Match]\nName=*\n[Network]\nDHCP=yes\n"},
			{Path: "/etc/systemd/network/br0.network", Content: "[Match]\nName=br0\n[Network]\nDHCP=yes\n"}},
		netconf.NetworkManager: {{Path: "/etc/NetworkManager/system-connections/any.nmconnection",
			Content: "[connection]\nid=any\ntype=ethernet\n[ipv4]\nmethod=auto\n"},
			{Path: "/etc/NetworkManager/system-connections/br0.nmconnection",
				Content: "[connection]\nid=br0\ntype=bridge\ninterface-name=br0\n[ipv4]\nmethod=auto\n"}},
	} {
		p, _ := netconf.For(system)
		all, err := p.Effective(files, links)
		if err != nil {
			t.Fatal(err)
		}
		for link, want := range map[string]bool{"ens192": true, "veth1a2b": false, "br0": true} {
			if _, named := netconf.Of(all, link); named != want {
				t.Errorf("%s: %s is configured: %t", system, link, named)
			}
		}
	}
}

// netplan-generate(8): /run comes before /etc. netplan 0.106 of Debian 12 does so.
func TestRunHidesEtcOfNetplan(t *testing.T) {
	p, _ := netconf.For(netconf.Netplan)
	all, err := p.Effective(
		[]netconf.File{{Path: "/etc/netplan/50.yaml", Content: "network: {ethernets: {ens192: {addresses: [10.0.0.1/24]}}}\n"},
			{Path: "/run/netplan/50.yaml", Content: "network: {ethernets: {ens192: {addresses: [10.0.0.2/24]}}}\n"}},
		[]netconf.Link{{Name: "ens192", MAC: "00:50:56:80:00:01", Device: true}})
	if e, _ := netconf.Of(all, "ens192"); err != nil || e.File != "/run/netplan/50.yaml" ||
		!slices.Equal(e.Addresses, []string{"10.0.0.2/24"}) {
		t.Errorf("%v, %+v", err, e)
	}
}
