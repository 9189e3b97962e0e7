//go:build e2e

package realtest_test

import (
	"strings"
	"testing"
)

// A drift is something that happens to a guest which is set up; apply has to put it right.
type drift struct {
	name  string
	cause string // script on guest-2
	check string // id that fails because of it
	plan  string // what the plan says then
}

// drifts breaks guest-2 and has it repaired.
func (s *site) drifts(good string, sound map[string]finding) {
	second := s.pair[1]
	for _, d := range []drift{
		{"the RDMA interface was taken down: PORT_DOWN", "ip link set ens192 down", "GST-PORT", `bring RDMA port up`},
		{"MTU 1500 on one end", "ip link set ens192 mtu 1500", "GST-MTU", `set address`},
		{"the address was removed", "ip addr flush dev ens192", "GST-", `set address`},
		{"perftest was removed", "DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge perftest >/dev/null 2>&1", "GST-", `install packages`},
		{"the memlock limit was taken away", "rm /etc/security/limits.d/60-rdma-setup.conf", "GST-MEMLOCK", `locked-memory`},
	} {
		s.scenario(d.name, func(t *testing.T) {
			second.run(d.cause)
			var fresh []string
			for id, f := range s.check(good) {
				if _, old := sound[id]; !old {
					fresh = append(fresh, id+": "+f.Evidence)
				}
			}
			if !strings.Contains(strings.Join(fresh, "\n"), d.check) {
				t.Errorf("no check %s fails: %q", d.check, fresh)
			}
			t.Logf("%q", fresh)
			out, errs := s.must(0, "apply", "-f", good, "--yes")
			s.says(out+errs, d.plan)
			s.configured()
		})
	}
	s.scenario("the cable is pulled: apply says so and a plan after it is empty", func(t *testing.T) {
		second.link(false)
		defer second.link(true)
		out, errs, code := s.run("apply", "-f", good, "--yes")
		if code == 0 {
			t.Errorf("exit 0:\n%s%s", out, errs)
		}
		s.says(out+errs, `vm-02.*(carrier|link)`)
	})
	s.scenario("the cable is back", func(t *testing.T) {
		second.run("for i in $(seq 20); do ibv_devinfo | grep -q PORT_ACTIVE && exit 0; sleep 1; done; exit 1")
		s.must(0, "plan", "-f", good, "--detailed-exitcode")
	})
	s.scenario("a file system that is read-only", func(t *testing.T) {
		second.run("rm /etc/security/limits.d/60-rdma-setup.conf; sync; echo u >/proc/sysrq-trigger; sleep 1; ! touch /var/tmp/x 2>/dev/null")
		out, errs, code := s.run("apply", "-f", good, "--yes")
		second.run("mount -o remount,rw /")
		if code == 0 {
			t.Errorf("exit 0:\n%s%s", out, errs)
		}
		s.says(out+errs, `vm-02.*Read-only file system`)
		s.must(0, "apply", "-f", good, "--yes")
		s.configured()
	})
	s.scenario("guests that speak German", func(t *testing.T) {
		s.both("echo LANG=de_DE.UTF-8 >/etc/default/locale")
		defer s.both("rm /etc/default/locale")
		s.must(0, "plan", "-f", good, "--detailed-exitcode")
		for id, f := range s.check(good) {
			if _, old := sound[id]; !old {
				t.Errorf("%s: %s", id, f.Evidence)
			}
		}
	})
}

// block shuts the guest's SSH as soon as its network configuration changes, and opens it when that is as it was: what a
// mistake in an address does to the operator.
const block = `cat >/var/tmp/block <<'END'
state() { cat /etc/netplan/*.yaml | sha256sum; }
old=$(state)
for i in $(seq 600); do [ "$(state)" != "$old" ] && break; sleep 0.1; done
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
		out, errs, code := s.run("apply", "-f", moved, "--yes")
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
