package guest

import (
	"fmt"
	"strings"
	"testing"
)

// Of one card with 10.0.0.5/24, or none: which files are refused because nobody has put them in force. What is not certain is not refused.
func TestFilesNotInForce(t *testing.T) {
	const (
		nm       = "/etc/NetworkManager/system-connections/"
		initrd   = "/run/NetworkManager/system-connections/default_connection.nmconnection"
		ifcfg    = "/etc/sysconfig/network-scripts/ifcfg-ens192"
		unit     = "/etc/systemd/network/"
		match    = "[Match]\nName=ens192\n"
		ethernet = "[connection]\nid=a\ntype=ethernet\ninterface-name=ens192\n[ipv4]\n"
	)
	for _, test := range []struct {
		name, tools, now string
		files            []string // path, text
		want             string
	}{
		{"another address", "systemd-networkd", unit + "1.network", []string{unit + "1.network", match + "[Network]\nAddress=10.9.9.9/24\n"},
			"ens192 does not have 10.9.9.9/24"},
		{"a lease without end (RFC 2131)", "systemd-networkd", unit + "1.network",
			[]string{unit + "1.network", match + "[Network]\nDHCP=yes\n"}, ""},
		{"another file", "systemd-networkd", unit + "2.network", []string{unit + "1.network", match, unit + "2.network", match},
			unit + "2.network decides"},
		{"a file for another host (systemd.network(5), Host=)", "systemd-networkd", unit + "2.network",
			[]string{unit + "1.network", match + "Host=other\n", unit + "2.network", match}, ""},
		{"a file for a property (Property=)", "systemd-networkd", unit + "1.network",
			[]string{unit + "1.network", match + "Property=A=b\n", unit + "2.network", match}, ""},
		{"a condition after the one that decides", "systemd-networkd", unit + "3.network",
			[]string{unit + "1.network", match, unit + "3.network", match + "Firmware=uefi\n"}, unit + "3.network decides"},
		{"link-local, and no prefix", "systemd-networkd", unit + "1.network",
			[]string{unit + "1.network", match + "[Network]\nAddress=169.254.1.1/16\nAddress=10.9.9.9\nAddress=0.0.0.0/24\n"}, ""},
		{"ifcfg with comments", "nmcli NetworkManager", ifcfg,
			[]string{ifcfg, "DEVICE=ens192\nBOOTPROTO=none\nIPADDR=10.0.0.5 # mgmt\nNETMASK=\"255.255.255.0\" # x\n"}, ""},
		{"ifcfg with another address", "nmcli NetworkManager", ifcfg, []string{ifcfg, "DEVICE='ens192'\nIPADDR=10.0.0.6\t# mgmt\nPREFIX=24\n"},
			"10.0.0.6/24"},
		{"ifcfg without prefixes", "nmcli NetworkManager", ifcfg,
			[]string{ifcfg, "DEVICE=ens192\nBOOTPROTO=bootp\nIPADDR=10.0.0.6\nIPV6ADDR=2001:db8::1\n"}, ""},
		{"addresses of old keyfiles (nm-settings-keyfile(5))", "nmcli NetworkManager", nm + "a",
			[]string{nm + "a", ethernet + "method=manual\naddresses1=10.0.0.5;24;10.0.0.1;\n"}, ""},
		{"another address of an old keyfile", "nmcli NetworkManager", nm + "a",
			[]string{nm + "a", ethernet + "method=manual\naddresses1=10.0.0.6;24;10.0.0.1;\n"}, "10.0.0.6/24"},
		{"a VPN over the card", "nmcli NetworkManager", nm + "vpn " + nm + "a", []string{nm + "a", ethernet + "method=auto\n"}, ""},
		{"a profile of the initrd (nm-initrd-generator(8))", "nmcli NetworkManager", initrd,
			[]string{initrd, ethernet + "method=auto\n", nm + "a", strings.Replace(ethernet, "id=a\n", "id=a\nautoconnect-priority=9\n", 1) +
				"method=manual\naddress1=10.0.0.5/24\n"}, ""},
		{"a profile of the initrd, and another address", "nmcli NetworkManager", initrd,
			[]string{nm + "a", ethernet + "method=manual\naddress1=10.0.0.6/24\n"}, "10.0.0.6/24"},
		{"a profile for a command line (nm-settings(5), match.kernel-command-line)", "nmcli NetworkManager", nm + "b",
			[]string{nm + "a", ethernet + "method=auto\n[match]\nkernel-command-line=x\n"}, ""},
	} {
		f := facts{"netconfig": test.tools, "links": "ens192|00:50:56:80:00:01|1500|0x1003|up|device|-|vmxnet3||\n",
			"addresses": "2: ens192: <BROADCAST,UP> mtu 1500 state UP\n    link/ether 00:50:56:80:00:01\n    inet 10.0.0.5/24 scope global ens192\n"}
		for file := range strings.FieldsSeq(test.now) {
			f["netnow"] += "ens192 " + file + "\n"
		}
		for i := 0; i < len(test.files); i += 2 {
			f["netfiles"] += fmt.Sprintf("file 600|0:0|%d|%s\n%s\n", len(test.files[i+1]), test.files[i], test.files[i+1])
		}
		n := f.network()
		p := n.pending()
		if (p == nil) != (test.want == "") || p != nil && !strings.Contains(p.Why, test.want) {
			t.Errorf("%s: %v", test.name, p)
		}
		if len(n.interfaces) != 1 || len(n.interfaces[0].Addresses) != 1 {
			t.Errorf("%s: %+v", test.name, n.interfaces)
		}
	}
}
