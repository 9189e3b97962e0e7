package guest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// PFC, trust and ECN of a card that the guest was given whole: by dcb, and by mlnx_qos where MLNX_OFED is. They are in force and
// come back after a boot; half done they read so; what is restored is as it was, also where somebody had set the port before.
func TestPortQoS(t *testing.T) {
	testclass.Plain(t)
	const showDCB = "dcb pfc show dev $nic prio-pfc; dcb -N app show dev $nic dscp-prio"
	const showOFED = "mlnx_qos -i $nic; grep . /sys/class/net/$nic/ecn/roce_*/enable/*"
	for name, c := range map[string]struct {
		ofed         bool
		before, half string
		says         string // of the port, once it is set
	}{
		"dcb": {half: "rm /usr/local/sbin/rdma-setup-qos", says: "dscp-prio 26:3"},
		"dcb, set before": {before: "dcb app replace dev $nic dscp-prio 26:4 48:6; dcb pfc set dev $nic prio-pfc all:off 4:on",
			half: "systemctl disable $unit", says: "26:3 48:6"},
		"dcb, another DSCP before": {before: "dcb app replace dev $nic dscp-prio 48:6", half: "rm /etc/systemd/system/$unit", says: "26:3 48:6"},
		"mlnx_qos":                 {ofed: true, half: "mlnx_qos -i $nic --pfc=0,0,0,0,0,0,0,0", says: "Priority trust state: dscp"},
		"mlnx_qos, ECN was off": {ofed: true,
			before: "echo 0 >/sys/class/net/$nic/ecn/roce_np/enable/3; echo 0 >/sys/class/net/$nic/ecn/roce_rp/enable/3",
			half:   "mlnx_qos -i $nic --trust=pcp", says: "enable/3:1"},
		"mlnx_qos, DSCP was mapped": {ofed: true, before: "mlnx_qos -i $nic --trust=dscp --dscp2prio=set,26,5",
			half: "rm /etc/systemd/system/multi-user.target.wants/$unit", says: "dscp:31,30,29,28,27,26,"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: "ubuntu-22.04", card: true})
			show := showDCB
			if c.ofed {
				show = showOFED
				if err := m.Setters()[backends.KindOFED].Set(t.Context(), m.setting(backends.KindOFED, ""), ofedOf(ofedNow, "ubuntu22.04", "x86_64"),
					nil); err != nil {
					t.Fatal(err)
				}
			}
			g := m.Survey(t.Context(), m.vm)
			nic := "nic=" + g.Interface(m.mac).Name + "\nunit=rdma-setup-qos-" + strings.ReplaceAll(m.mac, ":", "") + ".service\n"
			if d := g.Verbs(m.mac); d == nil || d.QoS == nil || d.QoS.Trust != "pcp" || len(d.QoS.PFC) > 0 || d.QoS.Kept != nil {
				t.Fatalf("as it comes: %+v", d)
			}
			m.root(t, nic+c.before)
			state := func() string { return m.listing(t) + m.root(t, nic+show+" || :") }
			before := state()
			a := backends.Assignment{Setting: m.setting(backends.KindPortQoS, m.group),
				To: backends.ValueOf(backends.QoSSpec{Priority: 3, DSCP: 26, ECN: true})}
			set := m.Setters()[a.Kind]
			k, _ := backends.As[backends.Keeper](set)
			kept, err := k.Keep(t.Context(), a.Setting, a.To)
			testclass.OK(t, err)
			if now, err := set.Read(t.Context(), a.Setting); err != nil || !now.IsAbsent() {
				t.Errorf("before it reads %s, %v", now, err)
			}
			testclass.OK(t, set.Set(t.Context(), a.Setting, a.To, nil))
			if out := m.root(t, nic+show); !strings.Contains(out, c.says) ||
				!strings.Contains(out, "3:on") && !strings.Contains(out, "enabled     0   0   0   1   0   0   0   0") {
				t.Errorf("set, the port is\n%s", out)
			}
			if c.before == "" { // what only lives in the port does not come back
				m.reboot(t)
			}
			if now, err := set.Read(t.Context(), a.Setting); err != nil || now != a.To {
				t.Errorf("set it reads %s, %v", now, err)
			}
			m.root(t, nic+c.half)
			if now, err := set.Read(t.Context(), a.Setting); err != nil || !now.IsPartial() {
				t.Errorf("half done it reads %s, %v", now, err)
			}
			for range 2 {
				testclass.OK(t, k.Restore(t.Context(), a.Setting, kept, nil))
			}
			if d := m.differs(t, a, kept); len(d) > 0 {
				t.Errorf("restored there differ %v", d)
			}
			if d := cmp.Diff(strings.Split(before, "\n"), strings.Split(state(), "\n")); d != "" {
				t.Errorf("left (-before +after):\n%s", d)
			}
		})
	}
}

// Ubuntu 20.04 has an iproute2 without dcb.
func TestNoQoSTool(t *testing.T) {
	for os, none := range map[string]bool{"ubuntu-20.04": true, "ubuntu-22.04": false} {
		m := newMachine(t, config{os: os})
		if g := m.Survey(t.Context(), m.vm); g.Error != "" || g.NoQoSTool != none {
			t.Errorf("%s: no tool %t, %s", os, g.NoQoSTool, g.Error)
		}
	}
}
