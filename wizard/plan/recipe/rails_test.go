package recipe_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// bothPorts connects the second port of the ConnectX-5.
func bothPorts(inv *backends.Inventory) *backends.Inventory {
	for i := range inv.Hosts {
		inv.Hosts[i].NIC("vmnic3").SpeedMbps = 100000
	}
	return inv
}

// onRails changes answers to use two rails, one for each port.
func onRails(a *answers.Answers, rails ...answers.Rail) *answers.Answers {
	for i := range rails {
		rails[i].Switch.Uplinks, rails[i].Switch.MTU = 1, 9000
	}
	a.FromRails(rails)
	return a
}

func port(name, device string) answers.Rail {
	return answers.Rail{Name: name, NIC: answers.NIC{Device: device}}
}

func changes(p *plan.Plan, kind backends.Kind) []string {
	var out []string
	for _, c := range p.Changes {
		if c.Kind == kind {
			out = append(out, c.ID()+" "+c.To.String())
		}
	}
	slices.Sort(out)
	return out
}

// A DVS, a port group and an adapter for each rail, and one tagged vmknic for all; applied, then rolled back.
func TestRailsOfPVRDMA(t *testing.T) {
	inv := bothPorts(newInventory(2))
	before := clone(t, inv)
	a := onRails(newAnswers(inv), port("rail-1", "vmnic2"), port("rail-2", "vmnic3"))
	p := mustBuild(t, a, inv, plan.Options{})
	for kind, want := range map[backends.Kind][]string{
		backends.KindMember: {`host/esx-01/member/RDMA-DVS-1 pnics vmnic2`, `host/esx-01/member/RDMA-DVS-2 pnics vmnic3`,
			`host/esx-02/member/RDMA-DVS-1 pnics vmnic2`, `host/esx-02/member/RDMA-DVS-2 pnics vmnic3`},
		backends.KindOption: {`host/esx-01/option/Net.PVRDMAVmknic vmk0`, `host/esx-02/option/Net.PVRDMAVmknic vmk0`},
	} {
		if got := changes(p, kind); !slices.Equal(got, want) {
			t.Errorf("%s: %q", kind, got)
		}
	}
	got := strings.Join(changes(p, backends.KindAdapter), "\n")
	for _, want := range []string{`vm/vm-01/adapter/RDMA-PG-1`, `port_group RDMA-PG-2; protocol rocev2; start_connected on; switch RDMA-DVS-2`,
		`vm/vm-02/adapter/RDMA-PG-2`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	if got := strings.Join(changes(p, backends.KindAddress), "\n"); !strings.Contains(got,
		`guest/vm-02/address/RDMA-PG-2 cidr 192.168.51.11/24; mtu 9000`) {
		t.Error(got)
	}
	back := apply(t, a, inv)
	takeBack(t, inv, back)
	for i := range before.Hosts {
		if was, is := before.Hosts[i].NIC("vmnic3").Switch, inv.Hosts[i].NIC("vmnic3").Switch; was != is {
			t.Errorf("%s: vmnic3 is on %q after the rollback", inv.Hosts[i].Name, is)
		}
	}
	if len(inv.Switches) != 0 || len(inv.VMs[0].Adapters) != len(before.VMs[0].Adapters) {
		t.Errorf("left: %d switches, %d adapters of vm-01", len(inv.Switches), len(inv.VMs[0].Adapters))
	}
}

// Rails that share a subnet get a rule and a table each, and answer ARP only for their own addresses; rails with their own subnets
// get none.
func TestRailsInOneSubnet(t *testing.T) {
	inv := bothPorts(newInventory(1))
	a := onRails(newAnswers(inv), port("rail-1", "0000:3b:00.0"), port("rail-2", "0000:3b:00.1"))
	if p := mustBuild(t, a, inv, plan.Options{}); len(changes(p, backends.KindARP)) != 0 ||
		strings.Contains(strings.Join(changes(p, backends.KindAddress), ""), "table") {
		t.Errorf("rails with subnets of their own: %q", changes(p, backends.KindARP))
	}
	for i := range a.VMs {
		one, two := answers.Adapter{Rail: "rail-1", IP: a.VMs[i].IP}, answers.Adapter{Rail: "rail-2", IP: a.VMs[i].IP}
		two.IP.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, 50, byte(101 + i)}), 24)
		a.VMs[i].IP, a.VMs[i].Adapters = answers.Address{}, []answers.Adapter{one, two}
	}
	p := mustBuild(t, a, inv, plan.Options{})
	for _, group := range []string{"RDMA-PG-1", "RDMA-PG-2"} {
		arp := p.Change("guest/vm-01/arp/" + group)
		address := p.Change("guest/vm-01/address/" + group)
		if arp == nil || arp.To != backends.ValueOf(backends.OneSubnet()) || address == nil || !slices.Contains(address.After, arp.ID()) {
			t.Fatalf("%s: %+v before %+v", group, arp, address)
		}
		want := map[string]int{"RDMA-PG-1": 5001, "RDMA-PG-2": 5002}[group]
		if got := decode[backends.AddressSpec](t, address.To); got.Table != want || got.MTU != 9000 {
			t.Errorf("%s: %+v, want table %d", group, got, want)
		}
	}
}

// One VF on each of the two ports (RoCE SR-IOV Setup and Performance Study on vSphere 7.x, VMware, 2022: max_vfs=0,0,8,7): one
// list for all ports of the driver, the firmware of the one card once, one reboot after the one that brings the tools.
func TestRailsOfSRIOV(t *testing.T) {
	inv := bothPorts(newSRIOV(1))
	rails := []answers.Rail{port("rail-1", "0000:3b:00.0"), port("rail-2", "0000:3b:00.1")}
	rails[1].SRIOV.VFs = 7
	a := onRails(sriovAnswers(inv), rails...)
	p := mustBuild(t, a, inv, plan.Options{})
	if c := p.Change(hostChange("esx-01", backends.KindModuleParams, connectX.Driver())); c == nil ||
		!strings.Contains(c.To.String(), `max_vfs 0,0,8,7`) {
		t.Errorf("%+v", c)
	}
	fw := p.Change(hostChange("esx-01", backends.KindFirmware, cardCX5))
	if fw == nil || !strings.Contains(fw.Late.String(), `NUM_OF_VFS 16`) || len(changes(p, backends.KindFirmware)) != 1 {
		t.Errorf("%+v", fw)
	}
	if n := reboots(p, "esx-01"); n != 2 {
		t.Errorf("%d reboots of a bare host", n)
	}
	if got := changes(p, backends.KindActiveVFs); !slices.Equal(got,
		[]string{"host/esx-01/active-vfs/0000:3b:00.0 8", "host/esx-01/active-vfs/0000:3b:00.1 7"}) {
		t.Errorf("%q", got)
	}
	var pfs []string
	for _, pg := range []string{"RDMA-PG-1", "RDMA-PG-2"} {
		pfs = append(pfs, decode[backends.AdapterSpec](t, p.Change(vmChange("vm-01", backends.KindAdapter, pg)).To).PF)
	}
	if !slices.Equal(pfs, []string{"0000:3b:00.0", "0000:3b:00.1"}) {
		t.Errorf("PFs of the VM's adapters: %v", pfs)
	}
	if n := reboots(mustBuild(t, onRails(sriovAnswers(inv), port("a", "0000:3b:00.0"), port("b", "0000:3b:00.1")),
		withFirmware(withTools(inv), 16), plan.Options{}), "esx-01"); n != 1 {
		t.Errorf("%d reboots where tools and firmware are there", n)
	}
}

func TestWhichPortServesWhichRail(t *testing.T) {
	members := func(p *plan.Plan) string {
		return strings.Join(changes(p, backends.KindMember), "\n")
	}
	for name, c := range map[string]struct {
		rails []answers.Rail
		edit  func(*backends.Host)
		want  []string // of the members
		bad   string   // of the refusal
	}{
		"by position": {rails: []answers.Rail{{Name: "a", NIC: answers.NIC{Speed: 100000, Position: 1}},
			{Name: "b", NIC: answers.NIC{Speed: 100000, Position: 2}}},
			want: []string{`member/RDMA-DVS-1 pnics vmnic2`, `member/RDMA-DVS-2 pnics vmnic3`}},
		"by slot and position": {rails: []answers.Rail{{Name: "a", NIC: answers.NIC{Slot: "3b:00", Position: 2}},
			{Name: "b", NIC: answers.NIC{Slot: "0000:3b:00", Position: 1}}},
			want: []string{`member/RDMA-DVS-1 pnics vmnic3`, `member/RDMA-DVS-2 pnics vmnic2`}},
		"by NUMA node": {rails: []answers.Rail{{Name: "a", NIC: answers.NIC{Speed: 100000, NUMA: "0"}},
			{Name: "b", NIC: answers.NIC{Speed: 100000, NUMA: "1"}}},
			edit: func(h *backends.Host) { h.NIC("vmnic3").NUMA = 1 },
			want: []string{`member/RDMA-DVS-1 pnics vmnic2`, `member/RDMA-DVS-2 pnics vmnic3`}},
		"by MAC": {rails: []answers.Rail{{Name: "a", NIC: answers.NIC{MACs: map[string]answers.MAC{"esx-01": "0c:42:a1:3b:01:01"}}},
			port("b", "vmnic2")},
			want: []string{`member/RDMA-DVS-1 pnics vmnic3`, `member/RDMA-DVS-2 pnics vmnic2`}},
		"the same pNIC twice": {rails: []answers.Rail{port("a", "vmnic2"), port("b", "0000:3b:00.0")},
			bad: "vmnic2 matches the rails a and b; rails never share a pNIC"},
		"none at a position": {rails: []answers.Rail{port("a", "vmnic2"), {Name: "b", NIC: answers.NIC{Speed: 100000, Position: 3}}},
			bad: "no pNIC matches (rail b): "},
		"a port without link": {rails: []answers.Rail{port("a", "vmnic2"), port("b", "vmnic3")},
			edit: func(h *backends.Host) { h.NIC("vmnic3").SpeedMbps = 0 },
			bad:  "no pNIC matches (rail b): vmnic0 is not vmnic3; vmnic2 is not vmnic3; vmnic3 has no link"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := bothPorts(newInventory(1))
			if c.edit != nil {
				c.edit(&inv.Hosts[0])
			}
			a := onRails(newAnswers(inv), c.rails...)
			if c.bad != "" {
				var all []string
				for _, r := range refusals(t, a, inv, plan.Options{}) {
					all = append(all, r.Why)
				}
				if !strings.Contains(strings.Join(all, "\n"), c.bad) {
					t.Errorf("%q", all)
				}
				return
			}
			got := members(mustBuild(t, a, inv, plan.Options{}))
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s is not in\n%s", want, got)
				}
			}
		})
	}
}

// A host without a port for an optional rail skips the rail; its VMs get no adapter there.
func TestOptionalRail(t *testing.T) {
	inv := bothPorts(newInventory(2))
	inv.Hosts[1].NIC("vmnic3").SpeedMbps = 0
	rails := []answers.Rail{port("rail-1", "vmnic2"), port("rail-2", "vmnic3")}
	rails[1].Optional = true
	p := mustBuild(t, onRails(newAnswers(inv), rails...), inv, plan.Options{})
	if p.Change("host/esx-01/member/RDMA-DVS-2") == nil || p.Change("host/esx-02/member/RDMA-DVS-2") != nil ||
		p.Change(vmChange("vm-01", backends.KindAdapter, "RDMA-PG-2")) == nil ||
		p.Change(vmChange("vm-02", backends.KindAdapter, "RDMA-PG-2")) != nil {
		t.Errorf("members %q, adapters %q", changes(p, backends.KindMember), changes(p, backends.KindAdapter))
	}
	notes := strings.Join(p.Notes, "\n")
	for _, want := range []string{"esx-02: leaves the optional rail rail-2 out: no pNIC matches (rail rail-2)",
		"vm-02: gets no adapter on rail-2, which esx-02 leaves out"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in\n%s", want, notes)
		}
	}
}

// A host that has joined the rail's switch does not skip an optional rail when its port goes down: its VMs have adapters there.
func TestOptionalRailThatIsSetUp(t *testing.T) {
	inv := bothPorts(newInventory(1))
	rails := []answers.Rail{port("rail-1", "vmnic2"), port("rail-2", "vmnic3")}
	rails[1].Optional = true
	a := onRails(newAnswers(inv), rails...)
	apply(t, a, inv)
	inv.Hosts[0].NIC("vmnic3").SpeedMbps = 0
	all := refusals(t, a, inv, plan.Options{})
	if len(all) != 1 || all[0].Target.Name != "esx-01" || !strings.Contains(all[0].Why, "vmnic3 has no link") {
		t.Errorf("%v", all)
	}
}

// --force-nic applies to the rail that describes the pNIC; a pNIC that no rail describes is refused, not ignored.
func TestForcedPNICOfRails(t *testing.T) {
	inv := bothPorts(newInventory(1))
	a := onRails(newAnswers(inv), port("rail-1", "vmnic2"), port("rail-2", "vmnic3"))
	mustBuild(t, a, inv, plan.Options{ForceNIC: []string{"esx-01/vmnic3"}})
	all := refusals(t, a, inv, plan.Options{ForceNIC: []string{"esx-01/vmnic0"}})
	if len(all) != 1 || all[0].Why != "--force-nic vmnic0: none of the rails describes it" {
		t.Errorf("%v", all)
	}
}

// The number of available VFs is checked for each port.
func TestVFsOfEachRail(t *testing.T) {
	inv := bothPorts(newSRIOV(1))
	for i := 2; i <= 3; i++ {
		inv.VMs = append(inv.VMs, newVM(i, "esx-01"))
	}
	rails := []answers.Rail{port("rail-1", "vmnic2"), port("rail-2", "vmnic3")}
	rails[1].SRIOV.VFs = 2
	all := refusals(t, onRails(sriovAnswers(inv), rails...), inv, plan.Options{})
	if len(all) != 1 || !strings.HasPrefix(all[0].Why, "3 VFs are needed on vmnic3") {
		t.Errorf("%v", all)
	}
}

// A VM and its VFs are on one NUMA node if that is possible, and the plan says where it is not.
func TestNUMANodesOfRails(t *testing.T) {
	for _, c := range []struct {
		nodes      [2]int // of the two ports
		numa, want string
		set        bool
	}{
		{[2]int{0, 0}, "none", "vm-01: its rails are on NUMA node 0 of esx-01; ESXi may run it on another one: tuning.numa: nic keeps it there",
			false},
		{[2]int{0, 1}, "none", "vm-01: its rails are on NUMA nodes 0 and 1 of esx-01: no node is near to all its VFs", false},
		{[2]int{0, -1}, "none", "vm-01: the NUMA node of vmnic3 on esx-01 is not known", false},
		{[2]int{0, 1}, "nic", "vm-01: its rails are on NUMA nodes 0 and 1 of esx-01: no node is near to all, and none is set", false},
		{[2]int{1, 1}, "nic", "", true},
	} {
		inv := bothPorts(newSRIOV(1))
		inv.Hosts[0].NIC("vmnic2").NUMA, inv.Hosts[0].NIC("vmnic3").NUMA = c.nodes[0], c.nodes[1]
		a := onRails(sriovAnswers(inv), port("rail-1", "vmnic2"), port("rail-2", "vmnic3"))
		a.Tuning.NUMA = c.numa
		p := mustBuild(t, a, inv, plan.Options{})
		if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, c.want) {
			t.Errorf("%v %s: %q is not in\n%s", c.nodes, c.numa, c.want, notes)
		}
		if bound := p.Change(vmChange("vm-01", backends.KindExtra, backends.NodeAffinityKey)); (bound != nil) != c.set {
			t.Errorf("%v %s: %+v", c.nodes, c.numa, bound)
		}
	}
}

// Before ESXi 7.0 U2 a VM can have one PVRDMA adapter, from then on ten (KB 328676; vSphere Virtual Machine Administration,
// "Hardware Features Available with Virtual Machine Compatibility Settings"), and ten network adapters of any kind.
func TestPVRDMAAdaptersOfRails(t *testing.T) {
	for version, want := range map[string]string{
		"7.0.1": "would have 2 PVRDMA adapters; before ESXi 7.0 U2 a VM has one, from then on up to ten (KB 328676; vSphere Virtual Machine " +
			"Administration, Hardware Features)",
		"8.0.3": "",
	} {
		inv := bothPorts(newInventory(2))
		inv.Hosts[1].Version = version
		a := onRails(newAnswers(inv), port("rail-1", "vmnic2"), port("rail-2", "vmnic3"))
		if want == "" {
			mustBuild(t, a, inv, plan.Options{})
			continue
		}
		var all []string
		for _, r := range refusals(t, a, inv, plan.Options{}) {
			all = append(all, r.Target.Name+": "+r.Why)
		}
		if !slices.Contains(all, "vm-02: "+want) {
			t.Errorf("%s: %q", version, all)
		}
	}
	inv := bothPorts(newInventory(1))
	for len(inv.VMs[0].Adapters) < 9 {
		inv.VMs[0].Adapters = append(inv.VMs[0].Adapters, backends.Adapter{Type: "vmxnet3", PortGroup: "VM Network"})
	}
	r := refusals(t, onRails(newAnswers(inv), port("rail-1", "vmnic2"), port("rail-2", "vmnic3")), inv, plan.Options{})
	if len(r) != 1 ||
		!strings.Contains(r[0].Why, "would have 11 adapters; a VM has at most ten (vSphere Virtual Machine Administration, Hardware Features)") {
		t.Errorf("%+v", r)
	}
}
