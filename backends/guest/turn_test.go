package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
)

// A box is a directory that acts as the guest for the scripts of a turn, which run in a real shell: netplan configures the
// interface as the files say, ip prints and changes its configuration.
type box struct {
	t   *testing.T
	dir string
}

func newBox(t *testing.T) box {
	b := box{t, t.TempDir()}
	b.write("sys/ens224f0/mtu", "1500\n")
	b.write("sys/ens224f0/flags", "0x1002\n")
	b.write("addresses", "")
	for name, script := range map[string]string{
		"netplan": `[ "$1" = apply ] || exit 0
while [ -e BOX/hold ]; do sleep 0.05; done
[ -e BOX/broken ] && { echo 'netplan: broken' >&2; exit 1; }
sed -n 's/.*- "\(.*\)"/\1/p' BOX/etc/netplan/*.yaml >BOX/addresses 2>/dev/null
echo 9000 >BOX/sys/ens224f0/mtu; exit 0`,
		"ip": `case "$*" in
"-o addr show dev ens224f0") while read -r a; do echo "3: ens224f0    inet $a brd x scope global ens224f0"; done <BOX/addresses ;;
"addr del "*) grep -vxF "$3" BOX/addresses >BOX/new; mv BOX/new BOX/addresses ;;
"link set dev ens224f0 mtu "*) echo "$6" >BOX/sys/ens224f0/mtu ;;
"link set dev ens224f0 up") echo 0x1003 >BOX/sys/ens224f0/flags ;;
"link set dev ens224f0 down") echo 0x1002 >BOX/sys/ens224f0/flags ;;
*) echo "ip $*" >&2; exit 1 ;;
esac`,
		"chown": "exit 0",
	} {
		b.write("bin/"+name, "#!/bin/sh\n"+strings.ReplaceAll(script, "BOX", b.dir)+"\n")
		if err := os.Chmod(filepath.Join(b.dir, "bin", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b box) write(name, text string) {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b box) read(name string) string {
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		return "none"
	}
	return string(text)
}

// run runs a script of a turn with the box instead of the guest's directories.
func (b box) run(script string) (string, error) {
	b.t.Helper()
	script = strings.NewReplacer("/run/rdma-setup", b.dir+"/run", "/sys/class/net", b.dir+"/sys", "/etc/netplan", b.dir+"/etc/netplan",
		"/run/systemd/network", b.dir+"/none").Replace(script)
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = []string{"PATH=" + b.dir + "/bin:/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (b box) eventually(what string, is func() bool) {
	b.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(15 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			b.t.Fatalf("still not: %s", what)
		}
	}
}

const planFile = "etc/netplan/60-rdma-setup-RDMA-PG.yaml"

func newTurn(nonce string) turn {
	a := netconf.Static{NIC: netconf.NIC{Name: "ens224f0", MAC: "00:50:56:9a:0b:0c"}, PortGroup: "RDMA-PG", CIDR: "192.168.60.21/24",
		MTU: 9000}
	f, _ := netconf.FileFor(netconf.Netplan, a)
	return turn{nonce: nonce, system: netconf.Netplan, nic: a.NIC, slug: "RDMA-PG", file: f.Path, content: f.Content, address: a.CIDR,
		mtu: a.MTU}
}

func TestUnconfirmedAddressChangeIsUndone(t *testing.T) {
	for name, old := range map[string]string{"there was no file": "none", "there was a file": "network: {version: 2}\n"} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			if old != "none" {
				b.write(planFile, old)
			}
			turn := newTurn("a")
			if out, err := b.run(turn.script(time.Second, time.Second)); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if b.read("addresses") != "192.168.60.21/24\n" || b.read("sys/ens224f0/flags") != "0x1003\n" {
				t.Fatalf("it did not work: addresses %q", b.read("addresses"))
			}
			if out, _ := b.run(turn.pending()); strings.TrimSpace(out) == "" {
				t.Error("nobody watches")
			}
			b.eventually("the watch has gone", func() bool { return b.read("run/address-RDMA-PG-a/watch") == "none" })
			if b.read(planFile) != old || b.read("addresses") != "" || b.read("sys/ens224f0/mtu") != "1500\n" ||
				b.read("sys/ens224f0/flags") != "0x1002\n" {
				t.Errorf("left: file %q, addresses %q, MTU %q, flags %q", b.read(planFile), b.read("addresses"), b.read("sys/ens224f0/mtu"),
					b.read("sys/ens224f0/flags"))
			}
			if out, err := b.run(turn.confirm()); err == nil {
				t.Errorf("confirmed too late, and nobody complains: %s", out)
			}
		})
	}
}

// The guest may be reachable again as soon as its old file is restored, long before the restore is complete.
func TestAddressChangeBeingUndoneIsNotConfirmed(t *testing.T) {
	b := newBox(t)
	turn := newTurn("a")
	if out, err := b.run(turn.script(time.Second, time.Second)); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.write("hold", "")
	b.eventually("it is being taken back", func() bool { return b.read("run/address-RDMA-PG-a/undoing") != "none" })
	if out, err := b.run(turn.confirm()); err == nil {
		t.Errorf("confirmed: %s", out)
	}
	if out, _ := b.run(turn.pending()); strings.TrimSpace(out) == "" {
		t.Error("nothing is pending")
	}
	if err := os.Remove(filepath.Join(b.dir, "hold")); err != nil {
		t.Fatal(err)
	}
	b.eventually("the watch has gone", func() bool { return b.read("run/address-RDMA-PG-a/watch") == "none" })
	if b.read(planFile) != "none" || b.read("addresses") != "" {
		t.Errorf("left: file %q, addresses %q", b.read(planFile), b.read("addresses"))
	}
}

func TestConfirmedAddressChangeStays(t *testing.T) {
	b := newBox(t)
	first, second := newTurn("a"), newTurn("b")
	for _, turn := range []turn{first, second} {
		if out, err := b.run(turn.script(20*time.Second, time.Second)); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if out, err := b.run(turn.confirm()); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if out, _ := b.run(turn.pending()); out != "" {
			t.Errorf("still pending: %s", out)
		}
	}
	if left, err := os.ReadDir(filepath.Join(b.dir, "run")); !os.IsNotExist(err) {
		t.Errorf("left: %v, %v", left, err)
	}
	if b.read("addresses") != "192.168.60.21/24\n" || b.read(planFile) == "none" {
		t.Errorf("addresses %q, file %q", b.read("addresses"), b.read(planFile))
	}
}

func TestFailedNetworkChangeIsRevertedAtOnce(t *testing.T) {
	b := newBox(t)
	b.write("broken", "")
	out, err := b.run(newTurn("a").script(20*time.Second, time.Second))
	if err == nil || !strings.Contains(out, "netplan: broken") {
		t.Fatalf("%v: %s", err, out)
	}
	if b.read(planFile) != "none" || b.read("sys/ens224f0/mtu") != "1500\n" {
		t.Errorf("left: %q, MTU %q", b.read(planFile), b.read("sys/ens224f0/mtu"))
	}
	b.eventually("the watch has gone", func() bool { return b.read("run/address-RDMA-PG-a/watch") == "none" })
}

// ifupdown has no option to ignore the server's default route and DNS servers (interfaces(5)).
func TestDHCPWithIfupdownIsRefused(t *testing.T) {
	i := &backends.Interface{Name: "ens224", MAC: "00:50:56:9a:0b:0c"}
	s := backends.Setting{Target: backends.GuestRef("vm-01"), Kind: backends.KindAddress, Name: "RDMA-PG"}
	to := backends.ValueOf(backends.AddressSpec{CIDR: backends.DHCP, MTU: 9000})
	for system, refused := range map[netconf.System]bool{netconf.Ifupdown: true, netconf.Networkd: false} {
		_, err := address{}.turn(s, &network{system: system}, i, to)
		if refused != (backends.KindOf(err) == backends.KindRefused) {
			t.Errorf("%s: %v", system, err)
		}
	}
}
