package guest_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

func TestHarmedGuestIsRepaired(t *testing.T) {
	m := newMachine(t, config{os: "ubuntu-22.04"})
	m.root(t,
		"rm -f /etc/netplan/*.yaml; umask 077; printf 'network:\\n  version: 2\\n  ethernets:\\n    all:\\n      match:\\n        name: e*\\n  "+
			"    dhcp4: yes\\n' >/etc/netplan/01-netcfg.yaml")
	m.reboot(t)
	original := m.disk(t)
	m.root(t, `umask 077; cat >/etc/netplan/60-rdma-setup-RDMA-PG.yaml <<'END'
# Written by rdma-setup: the RDMA adapter on RDMA-PG. Its rollback takes it away again.
network:
  version: 2
  ethernets:
    all:
      match:
        macaddress: "`+m.mac+`"
      set-name: ens224f0
      dhcp4: false
      dhcp6: false
      mtu: 9000
      addresses:
        - "192.168.50.11/24"
END
netplan generate; ip link set dev ens224f0 up mtu 9000; ip addr add 192.168.50.11/24 dev ens224f0`)
	g := m.Survey(t.Context(), m.vm)
	t.Logf("shared %v persistent %v value %v", g.NetShared, g.Interface(m.mac).Persistent,
		g.Interface(m.mac).Address(backends.AddressSpec{CIDR: "192.168.50.11/24"}))
	a := backends.Assignment{Setting: m.setting(backends.KindAddress, m.group),
		To: backends.ValueOf(backends.AddressSpec{CIDR: "192.168.50.11/24", MTU: 9000})}
	set := m.Setters()[a.Kind]
	v, err := set.Read(t.Context(), a.Setting)
	t.Logf("reads %v %v", v, err)
	k, _ := backends.As[backends.Keeper](set)
	kept, err := k.Keep(t.Context(), a.Setting, a.To)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Set(t.Context(), a.Setting, a.To, nil); err != nil {
		t.Fatal(err)
	}
	m.reboot(t)
	g = m.Survey(t.Context(), m.vm)
	t.Logf("after: shared %v interfaces %+v", g.NetShared, g.Interfaces)
	if err := k.Restore(t.Context(), a.Setting, kept, nil); err != nil {
		t.Fatal(err)
	}
	if m.disk(t) != original {
		t.Error("not the original")
	}
}
