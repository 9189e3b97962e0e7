//go:build e2e

package realtest_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A drift is a change that happens to a guest which is set up; apply has to correct it.
type drift struct {
	name  string
	guest int    // 0 or 1
	cause string // script
	check string // id of the check that fails because of it
	plan  string // expected text of the plan
}

// drifted are drifts that do not hide each other, so they are found and corrected together.
var drifted = []drift{
	{"the address was removed", 0, "ip addr flush dev NIC", "GST-IP", `set address`},
	{"the memlock limit was taken away, on a clock that is years behind", 0,
		"rm /etc/security/limits.d/60-rdma-setup.conf; date +%s >/var/tmp/now; date -s 2019-01-01 >/dev/null", "GST-MEMLOCK", `locked-memory`},
	{"the RDMA interface was taken down: PORT_DOWN", 1, "ip link set NIC down", "GST-PORT", `bring RDMA port up`},
	{"MTU 1500 on one end", 1, "ip link set NIC mtu 1500", "GST-MTU", `set address`},
	{"perftest was removed, in a guest that speaks German", 1,
		"DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge perftest >/dev/null 2>&1; cp -p /etc/default/locale /var/tmp/locale; echo " +
			"LANG=de_DE.UTF-8 >/etc/default/locale",
		"GST-PERFTEST", `install packages`},
}

// drifts breaks the guests and has them repaired: first by an apply that cannot and says why, then by one that can.
func (s *site) drifts(good string, sound map[string]finding) {
	first, second := s.guests[0], s.guests[1]
	defer first.run("[ ! -e /var/tmp/now ] || date -s @$(cat /var/tmp/now) >/dev/null; rm -f /var/tmp/now")
	defer second.run("[ ! -e /var/tmp/locale ] || { cp -p /var/tmp/locale /etc/default/locale; rm /var/tmp/locale; }")
	var fresh, said string
	s.scenario("a cable that is pulled and a file system that is read-only are named", func(t *testing.T) {
		for _, d := range drifted {
			s.guests[d.guest].run(strings.ReplaceAll(d.cause, "NIC", s.guests[d.guest].nic()))
		}
		for key, f := range s.check(good) {
			if f.bad() && !sound[key].bad() {
				fresh += key + ": " + f.Evidence + "\n"
			}
		}
		defer second.run("mount -o remount,rw /")
		defer first.link(true)
		first.link(false)
		second.run("sync; echo u >/proc/sysrq-trigger; for i in $(seq 60); do touch /var/tmp/x 2>/dev/null || exit 0; sleep 1; done; exit 1")
		out, errs, code := s.run("apply", "-f", good, "--yes")
		if code != 1 && code != 5 {
			t.Errorf("exit %d:\n%s%s", code, out, errs)
		}
		said = out + errs
		s.says(said, `vm-01: .*ens192 did not get .*no carrier`, `vm-02.*Read-only file system`)
	})
	s.scenario("a clock that is years behind is told", func(*testing.T) { s.says(fresh, `VC-TIME-004 .*vm-01`) })
	s.scenario("one apply then puts right all that has drifted", func(*testing.T) {
		s.late = true
		out, errs := s.done("apply", "-f", good, "--yes")
		s.late = false
		said += out + errs
		s.configured()
	})
	for _, d := range drifted {
		s.scenario(d.name, func(t *testing.T) {
			vm := fmt.Sprintf("vm-%02d", d.guest+1)
			if !regexp.MustCompile(d.check + `\S* guest/` + vm).MatchString(fresh) {
				t.Errorf("no check %s of %s fails:\n%s", d.check, vm, fresh)
			}
			s.says(said, vm+`.*`+d.plan+`|`+d.plan+`.*`+vm)
		})
	}
}

// block closes the guest's SSH port as soon as its network configuration changes, and opens it when the configuration is restored.
// To the operator, a wrong address has the same effect.
const block = `cat >/var/tmp/block <<'END'
nft 'add table inet lockout; add chain inet lockout in { type filter hook input priority 0; }; add rule inet lockout in tcp dport 22 drop'
touch /var/tmp/blocked
for i in $(seq 600); do cat /etc/netplan/*.yaml | sha256sum | cmp -s - /var/tmp/unblocked && break; sleep 1; done
nft delete table inet lockout
END
cat /etc/netplan/*.yaml | sha256sum >/var/tmp/unblocked
systemd-run --quiet --unit=block --path-property=PathChanged=/etc/netplan sh /var/tmp/block`

// unblock removes block again. It fails if nothing was blocked, or still is. When the file is restored, the path unit starts the
// script once more, which has nothing to wait for.
const unblock = `for i in $(seq 300); do nft list tables | grep -q lockout || break; sleep 1; done
systemctl stop block.path
for i in $(seq 60); do case $(systemctl is-active block.service) in active | activating) sleep 1 ;; *) break ;; esac; done
[ -e /var/tmp/blocked ] && ! nft list tables | grep lockout && rm /var/tmp/block /var/tmp/blocked /var/tmp/unblocked`

const management = `ip -o addr show dev ens160 | awk '{print $2, $4}'
cat /sys/class/net/ens160/ifindex /sys/class/net/ens160/mtu /sys/class/net/ens160/carrier_changes
ip route show default
sha256sum /etc/netplan/01-management.yaml
stat -c %Y /etc/netplan/01-management.yaml`

const rdma = `cat /etc/netplan/*.yaml | sha256sum
ip -4 -o addr show dev NIC | awk '{print $4}'
cat /sys/class/net/NIC/mtu`

// lockout makes the last guest unreachable by changing its address.
func (s *site) lockout(answers string) {
	s.scenario("a guest that no longer answers undoes the change of its address by itself, and its management NIC stays as it was",
		func(t *testing.T) {
			guest, vm := s.guests[len(s.guests)-1], fmt.Sprintf("vm-%02d", len(s.guests))
			text, own := string(s.read(filepath.Base(answers))), fmt.Sprintf("192.168.50.%d/24", 10+len(s.guests))
			if strings.Count(text, own) != 1 {
				t.Fatalf("%s is not in the answers once:\n%s", own, text)
			}
			moved := s.write("answers-moved.yaml", strings.Replace(text, own, strings.Replace(own, ".50.", ".60.", 1), 1))
			rdma := strings.ReplaceAll(rdma, "NIC", guest.nic())
			nic, address := guest.run(management), guest.run(rdma)
			guest.run(block)
			var out, errs string
			var code int
			// The guest waits this long before it restores its old address.
			s.with("RDMA_SETUP_GUEST_TIMEOUT", "60s", func() { out, errs, code = s.run("apply", "-f", moved, "--yes") })
			guest.run(unblock)
			if code != 1 && code != 5 {
				t.Errorf("exit %d:\n%s%s", code, out, errs)
			}
			s.says(strings.Join(strings.Fields(out+errs), " "),
				vm+`.*guest could not be reached after the address of .*it undid the change by itself`)
			if now := guest.run(management); now != nic {
				t.Errorf("the management NIC was\n%s\nand is\n%s", nic, now)
			}
			if now := guest.run(rdma); now != address {
				t.Errorf("the RDMA NIC was\n%s\nand is\n%s", address, now)
			}
			s.configured()
		})
}
