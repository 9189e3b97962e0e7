//go:build e2e

package realtest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// rail2MACs are the MACs that a lab of two VMs assigns to the adapters of its second rail.
var rail2MACs = []string{"00:50:56:82:00:00", "00:50:56:82:00:01"}

// inOneSubnet puts two interfaces of each guest into one subnet.
const inOneSubnet = `for i in ens192 ens224; do
	ip -4 -o addr show dev $i | awk '{print $2, $4}'
	echo "$i $(cat /proc/sys/net/ipv4/conf/$i/arp_ignore /proc/sys/net/ipv4/conf/$i/arp_announce /proc/sys/net/ipv4/conf/$i/rp_filter | xargs) mtu $(cat /sys/class/net/$i/mtu)"
	a=$(ip -4 -o addr show dev $i | awk '{sub("/.*", "", $4); print $4}')
	ip route get 192.168.50.99 from $a 2>&1 | grep -o 'dev [^ ]*' || :
done
ip -4 rule show | awk '$3 != "all" {print $1, $2, $3, $4, $5}'
for d in rxe0 rxe1; do cat /sys/class/infiniband/$d/ports/1/state; done`

// network prints what a rollback must restore beside the files: rules, routes, numbers below /proc/sys, links.
const network = `ip -4 rule show
ip -4 route show table all
ip -4 -o addr show | awk '{print $2, $4}'
for i in ens192 ens224; do
	echo "$i mtu $(cat /sys/class/net/$i/mtu) up $(($(cat /sys/class/net/$i/flags) & 1))"
	for k in arp_ignore arp_announce rp_filter; do echo "$i $k $(cat /proc/sys/net/ipv4/conf/$i/$k)"; done
done
cd /etc; find . -type f -print0 | sort -z | xargs -0 sha256sum; find . -printf '%p %m %U:%G\n' | sort`

// TestE2ERails sets up guests with two soft-RoCE interfaces in one subnet, which is one network, measures on both, and rolls
// everything back.
func TestE2ERails(t *testing.T) {
	testclass.Long(t)
	t.Parallel()
	s := serve(t, 2, false, rail2MACs...)
	before := make([]string, len(s.guests))
	var two *site
	var answers string
	ready := s.scenario("two soft-RoCE interfaces, whose rails share a subnet", func(t *testing.T) {
		two = lab(s.outer, "--hosts", "2", "--vms", "2", "--scenario", "rails")
		two.take(t)
		own := strings.Replace(string(two.read("answers-pvrdma.yaml")), "RDMA-PG-1", "RDMA-PG", 1)
		two.must(0, "apply", "-f", two.write("answers-adapters.yaml", strings.ReplaceAll(own, "user: ubuntu}", "user: ubuntu, manage: false}")),
			"--yes")
		for i, macs := range two.macs(len(s.guests), "pvrdma") {
			if want := []string{s.guests[i].mac, s.guests[i].rail2}; cmp.Diff(want, macs) != "" {
				t.Fatalf("the adapters have %s, the guest %s", macs, want)
			}
			own = strings.Replace(own, fmt.Sprintf("ip: 192.168.50.%d/24", 11+i),
				fmt.Sprintf("adapters: [{rail: rail-1, ip: 192.168.50.%d/24}, {rail: rail-2, ip: 192.168.50.%d/24}]", 11+i, 21+i), 1)
		}
		two.write("answers-pvrdma.yaml", own)
		two.guests = s.guests
		two.meet()
		two.write("id_ed25519", string(s.read("id_ed25519"))) // that of the lab for which the guests were started
		answers = two.answers("ubuntu", "ubuntu")
		for i, m := range s.guests {
			m.run("rdma link add rxe1 type rxe netdev ens224")
			before[i] = m.run(network)
		}
		out, errs := two.done("apply", "-f", answers, "--yes")
		two.says(out+errs, `arp_ignore 1, arp_announce 2, rp_filter 2`, `routing table 5002`)
		for i, m := range s.guests {
			want := fmt.Sprintf(`ens192 192.168.50.%[1]d/24
ens192 1 2 2 mtu 9000
dev ens192
ens224 192.168.50.%[2]d/24
ens224 1 2 2 mtu 9000
dev ens224
5001: from 192.168.50.%[1]d lookup 5001
5002: from 192.168.50.%[2]d lookup 5002
4: ACTIVE
4: ACTIVE`, 11+i, 21+i)
			if d := cmp.Diff(want, m.run(inOneSubnet)); d != "" {
				t.Errorf("%s (-want +got):\n%s", m.name, d)
			}
		}
		two.must(0, "plan", "-f", answers, "--detailed-exitcode")
		out, errs, _ = two.run("check", "-f", answers, "--only", "GST-POLICY-036", "-o", "json")
		var doc struct{ Results []finding }
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("%v in %s%s", err, out, errs)
		}
		judged := map[string]string{}
		for _, f := range doc.Results {
			rail, _, _ := strings.Cut(f.Evidence, ": ")
			judged[f.Target+" "+rail] = f.Status
		}
		if d := cmp.Diff(map[string]string{"guest/vm-01 rail-1": "pass", "guest/vm-01 rail-2": "pass", "guest/vm-02 rail-1": "pass",
			"guest/vm-02 rail-2": "pass"}, judged); d != "" {
			t.Errorf("check (-want +got):\n%s", d)
		}
	})
	if !ready {
		return
	}
	s.scenario("both rails are measured", func(t *testing.T) {
		two.take(t)
		s.both(fewer)
		defer s.both("rm /usr/local/bin/ib_send_bw /usr/local/bin/ib_send_lat")
		out, errs, _ := two.run("bench", "-f", two.measure(answers, "answers-rails.yaml", "\nmeasure: {bandwidth: false}\n"), "--pairs",
			"vm-01:vm-02", "-o", "json")
		var doc struct {
			Measurements []struct {
				From, To, Error string
				RailFrom        string           `json:"rail_from"`
				RailTo          string           `json:"rail_to"`
				Rows            []map[string]any `json:"rows"`
			}
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("%v in %s%s", err, out, errs)
		}
		measured := map[string]bool{}
		for _, m := range doc.Measurements {
			if m.Error != "" || len(m.Rows) == 0 {
				t.Errorf("%s to %s: %q with %d rows", m.RailFrom, m.RailTo, m.Error, len(m.Rows))
			}
			measured[m.RailFrom+" to "+m.RailTo] = true
		}
		if d := cmp.Diff(map[string]bool{"rail-1 to rail-1": true, "rail-2 to rail-2": true}, measured); d != "" {
			t.Errorf("measured (-want +got):\n%s", d)
		}
	})
	s.scenario("rollback takes both rails, their rules and routes back", func(t *testing.T) {
		two.take(t)
		two.must(0, "rollback", "--yes")
		for i, m := range s.guests {
			if d := cmp.Diff(strings.Split(before[i], "\n"), strings.Split(m.run(network), "\n")); d != "" {
				t.Errorf("%s is not what it was:\n%s", m.name, d)
			}
			m.run("rdma link delete rxe1")
		}
	})
}
