package answers_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

const twoRails = `mode: sriov
rails:
  - {name: rail-1, nic: {device: "0000:3b:00.0"}, switch: {name: RDMA-DVS-1, portgroup: RDMA-PG-1, mtu: 9000, vlan: 0}, sriov: {vfs: 8}, optional: false}
  - {name: rail-2, nic: {device: "0000:3b:00.1"}, sriov: {vfs: 7}}
vms:
  - {name: vm-01, ip: 192.168.50.11/24}
  - {name: vm-02, adapters: [{rail: rail-2, ip: 192.168.77.12/24}]}
`

func loaded(t *testing.T, text string) *answers.Answers {
	t.Helper()
	a, err := load(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// networks formats adapters as rail=address@port group.
func networks(a *answers.Answers, v answers.VM) string {
	var out []string
	for _, n := range a.Networks(v) {
		out = append(out, n.Rail+"="+n.IP.String()+"@"+n.PortGroup)
	}
	return strings.Join(out, " ")
}

func TestRails(t *testing.T) {
	a := loaded(t, twoRails)
	rails := a.AllRails()
	if len(rails) != 2 || rails[1].Switch.Name != "RDMA-DVS-2" || rails[1].Switch.MTU != 9000 || rails[1].SRIOV.VFs != 7 {
		t.Errorf("%+v", rails)
	}
	if got := networks(a, a.VMs[0]); got != "rail-1=192.168.50.11/24@RDMA-PG-1 rail-2=192.168.51.11/24@RDMA-PG-2" {
		t.Errorf("an ip alone is one on each rail: %s", got)
	}
	if got := networks(a, a.VMs[1]); got != "rail-2=192.168.77.12/24@RDMA-PG-2" {
		t.Error(got)
	}
	one := a.ForRail(1)
	if one.Switch.Name != "RDMA-DVS-2" || one.NIC.Device != "0000:3b:00.1" || one.SRIOV.VFs != 7 ||
		networks(one, one.VMs[0]) != "rail-2=192.168.51.11/24@RDMA-PG-2" {
		t.Errorf("%+v", one)
	}
	if one = a.ForRail(0); len(one.VMs) != 1 || one.VMs[0].Name != a.VMs[0].Name {
		t.Errorf("vm-02 has no adapter on rail-1: %+v", one.VMs)
	}
	if got := strings.Join(a.PortGroups(), " "); got != "RDMA-PG-1 RDMA-PG-2" {
		t.Error(got)
	}
	a = loaded(t, strings.Replace(twoRails, "sriov: {vfs: 7}", "sriov: {vfs: 7}, network: 10.7.0.0/16", 1))
	if got := networks(a, a.VMs[0]); got != "rail-1=192.168.50.11/24@RDMA-PG-1 rail-2=10.7.0.11/16@RDMA-PG-2" {
		t.Error(got)
	}
}

// A list of one rail is another notation of nic and switch.
func TestOneRailIsNICAndSwitch(t *testing.T) {
	old := loaded(t, "mode: pvrdma\nnic: {speed: 100G}\nswitch: {mtu: 4200}\nvms: [{name: vm-01, ip: 192.168.50.11/24}]\n")
	one := loaded(t,
		"mode: pvrdma\nrails: [{name: fast, nic: {speed: 100G}, switch: {mtu: 4200}}]\nvms: [{name: vm-01, ip: 192.168.50.11/24}]\n")
	if one.ForRail(0) != one || len(old.AllRails()) != 1 {
		t.Error("with one rail the answers are those of the rail")
	}
	one.Rails = nil
	if diff := cmp.Diff(old, one, cmp.Comparer(func(a, b answers.VM) bool { return a.Name == b.Name && a.IP == b.IP })); diff != "" {
		t.Error(diff)
	}
}

func TestRailsLoadAsTheyWereSaved(t *testing.T) {
	a := loaded(t, twoRails)
	var b bytes.Buffer
	if err := answers.Save(&b, a); err != nil {
		t.Fatal(err)
	}
	again := loaded(t, b.String())
	var c bytes.Buffer
	if err := answers.Save(&c, again); err != nil || c.String() != b.String() {
		t.Errorf("%v\n%s", err, cmp.Diff(b.String(), c.String()))
	}
	a.NIC = answers.NIC{Device: "vmnic7"} // as the wizard does
	b.Reset()
	if err := answers.Save(&b, a); err != nil || loaded(t, b.String()).AllRails()[0].NIC.Device != "vmnic7" ||
		a.ForRail(0).NIC.Device != "vmnic7" {
		t.Errorf("%v: NIC is not that of the first rail\n%s", err, b.String())
	}
	for _, key := range []string{"\nnic:", "\nswitch:"} {
		if strings.Contains(b.String(), key) {
			t.Errorf("%q is saved beside rails", key)
		}
	}
}

func TestWrongRails(t *testing.T) {
	rails := func(lines ...string) string {
		return "mode: pvrdma\nrails:\n  - " + strings.Join(lines, "\n  - ") + "\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"nic beside rails":    {"mode: pvrdma\nnic: {speed: 100G}\nrails: [{name: a}]\n", "f.yaml:2:6: nic: cannot be combined with rails"},
		"switch beside rails": {"mode: pvrdma\nrails: [{name: a}]\nswitch: {mtu: 9000}\n", "f.yaml:3:9: switch: cannot be combined with rails"},
		"whole cards": {strings.Replace(rails("{name: a}", "{name: b}"), "pvrdma", "gpudirect", 1),
			"rails[0].nic.device: \"\": with several rails a whole card can only be identified by its PCI address"},
		"no name":      {rails("{nic: {speed: 100G}}"), "rails[0].name: is missing"},
		"a name twice": {rails("{name: a}", "{name: a}"), `f.yaml:4:12: rails[1].name: "a" is also used by rails[0]`},
		"a switch twice": {rails("{name: a, switch: {name: S}}", "{name: b, switch: {name: S}}"),
			`rails[1].switch.name: "S" is also used by rails[0]`},
		"a device twice": {rails("{name: a, nic: {device: vmnic2}}", "{name: b, nic: {device: vmnic2}}"),
			`rails[1].nic.device: "vmnic2" is also used by rails[0]`},
		"a MAC twice": {rails(`{name: a, nic: {macs: {h: "0c:42:a1:00:00:01"}}}`, `{name: b, nic: {macs: {h: "0c:42:a1:00:00:01"}}}`),
			`rails[1].nic.macs{h}: "0c:42:a1:00:00:01" is also used by rails[0]`},
		"an unknown key": {rails("{name: a, swich: {}}"), "rails[0].swich: unknown key"},
		"too many VFs":   {rails("{name: a, sriov: {vfs: 128}}"), "rails[0].sriov.vfs: 128 is not between 0 and 127"},
		"a slot":         {rails("{name: a, nic: {slot: left}}"), `rails[0].nic.slot: "left" is not a PCI slot`},
		"a node":         {rails("{name: a, nic: {numa: x}}"), `rails[0].nic.numa: "x" is not a NUMA node`},
		"a network": {rails("{name: a}", "{name: b, network: 192.168.51.7/24}"),
			"rails[1].network: 192.168.51.7/24 is not an IPv4 network"},
		"an unknown rail": {rails("{name: rail-1}", "{name: rail-2}") + "vms: [{name: v, adapters: [{rail: rail-3, ip: 10.1.0.2/24}]}]\n",
			`vms[0].adapters[0].rail: "rail-3" is none of the rails`},
		"no rail": {rails("{name: rail-1}", "{name: rail-2}") + "vms: [{name: v, adapters: [{ip: 10.1.0.2/24}]}]\n",
			"vms[0].adapters[0].rail: the rail is missing"},
		"a rail without rails": {"mode: pvrdma\nvms: [{name: v, adapters: [{rail: a, ip: 10.1.0.2/24}]}]\n",
			`vms[0].adapters[0].rail: "a": the answers have no rails`},
		"an adapter on another rail's port group": {rails("{name: rail-1}", "{name: rail-2}") +
			"vms: [{name: v, adapters: [{rail: rail-1, portgroup: RDMA-PG-2, ip: 10.1.0.2/24}]}]\n",
			`vms[0].adapters[0].portgroup: "RDMA-PG-2" belongs to the rail rail-2`},
		"a number too large for the network": {rails("{name: rail-1}", "{name: rail-2, network: 10.1.0.0/28}") +
			"vms: [{name: v, ip: 192.168.50.99/24}]\n",
			"vms[0].ip: its number does not fit into 10.1.0.0/28 of rail-2"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			for _, p := range problems(t, c.text) {
				all = append(all, fmt.Sprint(p))
			}
			if !strings.Contains(strings.Join(all, "\n"), c.want) {
				t.Errorf("%s\nwant %s", strings.Join(all, "\n"), c.want)
			}
		})
	}
}

// A nic with any description is not open: no pNIC is proposed for it.
func TestOpenNIC(t *testing.T) {
	if !(answers.NIC{}).Open() || !(answers.NIC{MACs: map[string]answers.MAC{}}).Open() {
		t.Error("an empty description is not open")
	}
	for _, n := range []answers.NIC{{Speed: 100000}, {MACs: map[string]answers.MAC{"h": "0c:42:a1:00:00:01"}}, {Driver: "nic_driver"},
		{Device: "vmnic2"},
		{Slot: "0000:3b:00"}, {NUMA: "0"}, {Position: 1}} {
		if n.Open() {
			t.Errorf("%+v is open", n)
		}
	}
}
