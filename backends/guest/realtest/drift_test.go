//go:build e2e

package realtest_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// A drift is something that happens to a guest which is set up; apply has to put it right.
type drift struct {
	name  string
	guest int    // 0 or 1
	cause string // script
	check string // id that fails because of it; "" none
	plan  string // what the plan says then
}

// drifted are drifts that do not hide each other, and so are looked for and put right together.
var drifted = [][]drift{
	{
		{"the RDMA interface was taken down: PORT_DOWN", 0, "ip link set NIC down", "GST-PORT", `bring RDMA port up`},
		{"the memlock limit was taken away", 0, "rm /etc/security/limits.d/60-rdma-setup.conf", "GST-MEMLOCK", `locked-memory`},
		{"MTU 1500 on one end", 1, "ip link set NIC mtu 1500", "GST-MTU", `set address`},
		{"perftest was removed", 1, "DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge perftest >/dev/null 2>&1", "GST-PERFTEST", `install packages`},
	},
	{
		{"the address was removed", 0, "ip addr flush dev NIC", "GST-IP", `set address`},
		{"a clock that is years behind", 1, "date +%s >/var/tmp/now; date -s 2019-01-01 >/dev/null; rm /etc/security/limits.d/60-rdma-setup.conf", "GST-MEMLOCK", `locked-memory`},
		{"guests that speak German", 1, "cp -p /etc/default/locale /var/tmp/locale; echo LANG=de_DE.UTF-8 >/etc/default/locale", "", ""},
	},
}

// drifts breaks the guests and has them repaired.
func (s *site) drifts(good string, sound map[string]finding) {
	defer func() {
		s.pair[1].run("[ ! -e /var/tmp/locale ] || { cp -p /var/tmp/locale /etc/default/locale; rm /var/tmp/locale; }; [ ! -e /var/tmp/now ] || date -s @$(cat /var/tmp/now) >/dev/null; rm -f /var/tmp/now")
	}()
	for i, round := range drifted {
		var fresh, said string
		s.scenario(fmt.Sprintf("drift %d is put right by one apply", i+1), func(t *testing.T) {
			for _, d := range round {
				s.pair[d.guest].run(strings.ReplaceAll(d.cause, "NIC", s.pair[d.guest].nic()))
			}
			for id, f := range s.check(good) {
				if _, old := sound[id]; !old {
					fresh += id + ": " + f.Evidence + "\n"
				}
			}
			out, errs := s.must(0, "apply", "-f", good, "--yes")
			said = out + errs
			s.configured()
		})
		for _, d := range round {
			s.scenario(d.name, func(t *testing.T) {
				vm := fmt.Sprintf("vm-%02d", d.guest+1)
				if d.check != "" && !regexp.MustCompile(d.check+`\S* guest/`+vm).MatchString(fresh) {
					t.Errorf("no check %s of %s fails:\n%s", d.check, vm, fresh)
				}
				if d.plan != "" {
					s.says(said, d.plan)
				}
			})
		}
	}
	first, second := s.pair[0], s.pair[1]
	s.scenario("a cable that is pulled and a file system that is read-only are named, and a later apply is whole", func(t *testing.T) {
		first.link(false)
		second.run("rm /etc/security/limits.d/60-rdma-setup.conf; sync; echo u >/proc/sysrq-trigger; for i in $(seq 60); do touch /var/tmp/x 2>/dev/null || exit 0; sleep 1; done; exit 1")
		out, errs, code := s.run("apply", "-f", good, "--yes")
		first.link(true)
		second.run("mount -o remount,rw /")
		if code == 0 {
			t.Errorf("exit 0:\n%s%s", out, errs)
		}
		s.says(out+errs, `vm-01: .*ens192 did not get .*no carrier`, `vm-02.*Read-only file system`)
		s.must(0, "apply", "-f", good, "--yes")
		s.configured()
	})
}

// block shuts the guest's SSH as soon as its network configuration changes, and opens it when that is as it was: what a
// mistake in an address does to the operator.
const block = `cat >/var/tmp/block <<'END'
state() { cat /etc/netplan/*.yaml | sha256sum; }
old=$(state)
for i in $(seq 6000); do [ "$(state)" != "$old" ] && break; sleep 0.1; done
nft 'add table inet lockout; add chain inet lockout in { type filter hook input priority 0; }; add rule inet lockout in tcp dport 22 drop'
for i in $(seq 6000); do [ "$(state)" = "$old" ] && break; sleep 0.1; done
nft delete table inet lockout
END
systemd-run --quiet --unit=block sh /var/tmp/block`

const management = `ip -o addr show dev ens160 | awk '{print $2, $4}'
cat /sys/class/net/ens160/ifindex /sys/class/net/ens160/mtu /sys/class/net/ens160/carrier_changes
ip route show default
sha256sum /etc/netplan/01-management.yaml
stat -c %Y /etc/netplan/01-management.yaml`

const rdma = `cat /etc/netplan/*.yaml | sha256sum
ip -4 -o addr show dev ens192 | awk '{print $4}'
cat /sys/class/net/ens192/mtu`

// lockout has guest-2 become unreachable by the change of its address.
func (s *site) lockout() {
	s.scenario("a guest that no longer answers takes the new address back by itself, and its management NIC is not touched", func(t *testing.T) {
		second := s.pair[1]
		moved := s.write("answers-moved.yaml", strings.Replace(string(s.read("answers-ubuntu-ubuntu.yaml")), "192.168.50.12/24", "192.168.60.12/24", 1))
		nic, address := second.run(management), second.run(rdma)
		second.run(block)
		var out, errs string
		var code int
		// The guest waits for it before it takes the address back.
		s.with("RDMA_SETUP_GUEST_TIMEOUT", "90s", func() { out, errs, code = s.run("apply", "-f", moved, "--yes") })
		second.run("for i in $(seq 100); do systemctl is-active --quiet block || break; sleep 1; done; rm /var/tmp/block; ! nft list tables | grep lockout")
		if code != 1 && code != 5 {
			t.Errorf("exit %d:\n%s%s", code, out, errs)
		}
		s.says(strings.Join(strings.Fields(out+errs), " "), `vm-02.*(took the change back|taken the change back)`)
		if now := second.run(management); now != nic {
			t.Errorf("the management NIC was\n%s\nand is\n%s", nic, now)
		}
		if now := second.run(rdma); now != address {
			t.Errorf("the RDMA NIC was\n%s\nand is\n%s", address, now)
		}
		s.configured()
	})
}
