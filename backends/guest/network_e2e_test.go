//go:build e2e

package guest

import (
	"embed"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/guest/realtest"
)

//go:embed testdata/network
var networkSources embed.FS

// What is written for a guest's network is read by the real programs, NetworkManager, systemd-networkd, ifupdown and
// netplan of Debian, in namespaces of their own: a turn gives the interface its address and MTU, a second one changes
// nothing, the address comes back when the interface does, and the turn back takes it away. ifcfg files are for
// NetworkManager's plugin of Enterprise Linux, which Debian does not have; netplan with networkd runs in the guests of realtest.
func TestE2ENetworkFiles(t *testing.T) {
	root := networkRoot(t)
	for _, test := range []struct {
		system netconf.System
		start  string // the daemon
		again  string // what a boot does
	}{
		{netconf.NetworkManager, `printf '[main]\nno-auto-default=*\n' >/etc/NetworkManager/conf.d/test.conf
NetworkManager --no-daemon >/turn/log 2>&1 &
until_true 120 NetworkManager nmcli -t general status`, ""},
		{netconf.Networkd, `install -d -o systemd-network -g systemd-network /run/systemd/netif /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp
/lib/systemd/systemd-networkd >/turn/log 2>&1 &
until_true 120 "networkd on the bus" networkctl reload`, ""},
		{netconf.Ifupdown, "", "rm -f /run/network/ifstate*; ifup -a"},
	} {
		t.Run(string(test.system), func(t *testing.T) {
			a := netconf.Static{NIC: netconf.NIC{Name: "ens224f0", MAC: "00:50:56:9a:0b:0c"}, PortGroup: "RDMA PG", CIDR: "192.168.60.21/24",
				MTU: 9000, Table: 5001}
			f, ok := netconf.FileFor(test.system, a)
			if !ok {
				t.Fatal("nothing to write")
			}
			there := turn{nonce: "1", system: test.system, nic: a.NIC, slug: backends.Slug(a.PortGroup), uuid: netconf.ConnectionUUID(a),
				file: f.Path, content: f.Content, address: a.CIDR, mtu: a.MTU, table: a.Table}
			again := there // each turn has a nonce of its own: the watch of the first may still sleep, and then removes its directory
			again.nonce = "3"
			back := there
			back.nonce, back.content, back.address, back.mtu, back.stale = "2", "", "", 0, []string{a.CIDR}
			back.table, back.rules = 0, []string{"192.168.60.21 5001"}
			out := inNetwork(t, root, map[string]string{
				"there": there.script(2*time.Minute, time.Minute), "keep": there.confirm(),
				"again": again.script(2*time.Minute, time.Minute), "keep-again": again.confirm(),
				"back": back.script(2*time.Minute, time.Minute), "keep-back": back.confirm(),
				"main": `. /turn/lib.sh
` + test.start + `
sh /turn/there || { echo "the turn failed" >&2; cat /turn/log >&2; exit 1; }
sh /turn/keep || exit 1
until_true 120 "the address is there" routed 192.168.60.21/24 9000
show @there
sh /turn/again && sh /turn/keep-again || exit 1
until_true 120 "the address is still there" routed 192.168.60.21/24 9000
show @twice
ip link del ens224f0
plug
` + test.again + `
until_true 120 "the address is back" routed 192.168.60.21/24 9000
show @again
sh /turn/back && sh /turn/keep-back || exit 1
until_true 120 "the address is gone" hasnt 192.168.60.21/24
! ip -4 rule show | grep 5001 || { echo "the rule is still there" >&2; exit 1; }
[ ! -e '` + f.Path + `' ] || { echo "the file is still there" >&2; exit 1; }
echo @end
`})
			for _, when := range []string{"@there", "@twice", "@again"} {
				_, state, _ := strings.Cut(out, when+"\n")
				state, _, _ = strings.Cut(state, "\n@")
				for _, want := range []string{" 192.168.60.21/24 ", " mtu 9000 ", "192.168.60.0/24 dev ens224f0", "from 192.168.60.21 lookup 5001",
					"192.168.60.0/24 dev ens224f0 table 5001"} {
					if !strings.Contains(state, want) {
						t.Errorf("%s: no %q in\n%s", when, want, state)
					}
				}
				if strings.Contains(state, "default via") || strings.Contains(state, "default dev") {
					t.Errorf("%s: a default route:\n%s", when, state)
				}
			}
		})
	}
}

// netplan takes the file for either of its renderers, and NetworkManager what netplan makes of it; systemd takes the units.
func TestE2ENetworkFilesOfNetplanAndUnits(t *testing.T) {
	a := netconf.Static{NIC: netconf.NIC{Name: "ens224f0", MAC: "00:50:56:9a:0b:0c"}, PortGroup: "RDMA-PG", CIDR: "192.168.60.21/24",
		MTU: 9000, Table: 5001}
	f, _ := netconf.FileFor(netconf.Netplan, a)
	class, classText := ClassUnit(a.MAC, 106)
	out := inNetwork(t, networkRoot(t), map[string]string{
		"plan": f.Content, UnitName("vmw_pvrdma"): UnitText("vmw_pvrdma"), class: classText, "class": ClassScript(),
		"main": `. /turn/lib.sh
install -m 600 /turn/plan ` + f.Path + `
netplan generate || exit 1
cat /run/systemd/network/10-netplan-*.network || exit 1
printf 'network: {version: 2, renderer: NetworkManager}\n' >/etc/netplan/00-renderer.yaml
chmod 600 /etc/netplan/00-renderer.yaml
netplan generate || exit 1
printf '[main]\nno-auto-default=*\n' >/etc/NetworkManager/conf.d/test.conf
NetworkManager --no-daemon >/turn/log 2>&1 &
until_true 120 NetworkManager nmcli -t general status
nmcli --wait 60 connection up netplan-0-rdma-setup-RDMA-PG || { cat /turn/log >&2; exit 1; }
until_true 120 "the address is there" has 192.168.60.21/24 9000
install -m 755 /turn/class ` + classUnit.script + `
cp /turn/*.service ` + unitDir + `
for u in /turn/*.service; do systemd-analyze verify "` + unitDir + `${u##*/}" 2>&1 || exit 1; done
echo @end
`})
	for _, want := range []string{"MTUBytes=9000", "Address=192.168.60.21/24", "[RoutingPolicyRule]\nFrom=192.168.60.21\n",
		"PreferredSource=192.168.60.21\n", "Table=5001"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// inNetwork runs files["main"] in namespaces of its own, beside the other files in /turn.
func inNetwork(t *testing.T, root string, files map[string]string) string {
	t.Helper()
	work := t.TempDir()
	lib, err := networkSources.ReadFile("testdata/network/lib.sh")
	if err != nil {
		t.Fatal(err)
	}
	files["lib.sh"] = string(lib)
	for _, dir := range []string{"turn", "layer"} {
		if err := os.Mkdir(filepath.Join(work, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(work, "turn", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := realtest.AsRoot(t.Context(), "unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "sh",
		"testdata/network/enter.sh", root, work)
	if err != nil || !strings.Contains(out, "@end\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// networkRoot returns the root of a Debian.
func networkRoot(t *testing.T) string { return suiteRoot(t, "bookworm") }
