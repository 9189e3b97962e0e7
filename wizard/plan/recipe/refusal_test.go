package recipe_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

func refusals(t *testing.T, a *answers.Answers, inv *backends.Inventory, opts plan.Options) []plan.Refusal {
	t.Helper()
	_, err := recipe.Build(a, inv, opts)
	var r *plan.Refused
	if !errors.As(err, &r) {
		t.Fatalf("no refusal: %v", err)
	}
	for _, x := range r.Refusals {
		if x.Why == "" || x.Remedy == "" || x.Target.Type == "" {
			t.Errorf("a refusal says what, where, why and what next: %+v", x)
		}
	}
	return r.Refusals
}

// A remedy can be followed on the guest at hand: none names a package that would not help.
func TestRemedyOfKernelWithoutDriver(t *testing.T) {
	for version, want := range map[string]string{"8.8": "install kernel-modules-", "10.0": "no kernel package of RHEL 10"} {
		inv := newInventory(2)
		g := &inv.Guests[1]
		g.OS, g.Version, g.Like, g.Available = "rhel", version, nil, []string{"ib_umad"}
		r := refusals(t, newAnswers(inv), inv, plan.Options{})
		if len(r) != 1 || !strings.HasPrefix(r[0].Remedy, want) {
			t.Errorf("RHEL %s: %+v", version, r)
		}
	}
}

// TestRefusalsByInventory: each case breaks one thing; exactly one refusal names target and check.
func TestRefusalsByInventory(t *testing.T) {
	type world struct {
		inv *backends.Inventory
		a   *answers.Answers
	}
	nic := func(w world) *backends.NIC { return &w.inv.Hosts[1].NICs[1] }
	for name, c := range map[string]struct {
		change        func(w world)
		target, check string
		why           string
	}{
		"no RDMA device": {func(w world) { nic(w).RDMADevice = "" }, "host/esx-02", "HOST-PNIC-RDMA-001", "vmnic2 has no RDMA device"},
		"iWARP only": {func(w world) { nic(w).RoCEv1, nic(w).RoCEv2, nic(w).IWARP = false, false, true },
			"host/esx-02", "HOST-PNIC-ROCEV2-002", "supports iWARP only"},
		"link down": {func(w world) { nic(w).SpeedMbps = 0 }, "host/esx-02", "HOST-PNIC-STATE-003", "has no link"},
		"carries management": {func(w world) { nic(w).Switch, nic(w).Roles = "vSwitch0", []string{"management"} }, "host/esx-02",
			"HOST-PNIC-USED-012", "carries management on vSwitch0"},
		"NVMe over RDMA": {func(w world) { nic(w).Roles = []string{"nvmeRdma"} }, "host/esx-02", "HOST-PNIC-USED-012",
			"carries nvmeRdma"},
		"uplink of another switch": {func(w world) { nic(w).Switch = "vSwitch9" }, "host/esx-02", "HOST-PNIC-USED-012",
			"is an uplink of vSwitch9"},
		"DPU": {func(w world) { nic(w).DPU = "dpu-1" }, "host/esx-02", "HOST-PNIC-RDMA-001", "belongs to the DPU"},
		"wrong speed everywhere": {func(w world) { w.a.NIC.Speed = 200000; w.inv.Hosts = w.inv.Hosts[1:2]; w.a.VMs = w.a.VMs[1:] }, "host/esx-02",
			"HOST-PNIC-SPEED-004", "vmnic2 runs at 100G"},
		"wrong MAC": {func(w world) { w.a.NIC.MACs = map[string]answers.MAC{"esx-02": "02:00:00:00:00:01"} }, "host/esx-02",
			"HOST-PNIC-MAC-005", "has MAC"},
		"two fit":        {func(w world) { w.inv.Hosts[1].NICs[2].SpeedMbps = 100000 }, "host/esx-02", "", "several pNICs match: vmnic2, vmnic3"},
		"no pNIC at all": {func(w world) { w.inv.Hosts[1].NICs = nil }, "host/esx-02", "HOST-PNIC-RDMA-001", "no pNIC"},
		"unknown host": {func(w world) { w.a.Hosts.Names = []string{"esx-01", "esx-02", "esx-99"} }, "host/esx-99", "HOST-CONN-001",
			"no such host"},
		"named host away": {func(w world) {
			w.inv.Hosts[1].State = "notResponding"
			w.a.Hosts.Names = []string{"esx-01", "esx-02"}
			w.a.VMs = w.a.VMs[:1]
		},
			"host/esx-02", "HOST-CONN-001", "notResponding"},
		"no datacenter": {func(w world) { w.inv.Hosts, w.a.VMs, w.inv.VCenter.NoHosts = nil, nil, "vCenter has no datacenter" }, "vcenter/DC",
			"CL-HOSTS-001", "no host was found: vCenter has no datacenter"},
		"no host to see": {func(w world) { w.inv.Hosts, w.a.VMs, w.inv.VCenter.User = nil, nil, "ops" }, "vcenter/DC", "CL-HOSTS-001",
			"the account ops cannot see any"},
		"no host connected": {func(w world) {
			w.inv.Hosts[0].State, w.inv.Hosts[1].State, w.a.VMs = "disconnected", "notResponding", nil
		}, "vcenter/DC", "CL-HOSTS-001", "not connected to any of its hosts: esx-01 (disconnected), esx-02 (notResponding)"},
		"no DVS version in common": {func(w world) { w.inv.VCenter.DVSVersions = []string{"9.0.0"} }, "dvs/RDMA-DVS", "DVS-VERSION-002",
			"no version that vCenter offers (9.0.0)"},
		"several datacenters": {func(w world) { w.inv.Hosts[1].Datacenter = "DC2"; w.a.Hosts.Datacenter = "" }, "vcenter/vCenter",
			"VC-DC-005", "DC, DC2"},
		"vmknic missing":         {func(w world) { w.inv.Hosts[1].VMKs = nil }, "host/esx-02", "HOST-VMKNIC-EXIST-002", "has no vmknic vmk0"},
		"vmknic without address": {func(w world) { w.inv.Hosts[1].VMKs[0].IP = "" }, "host/esx-02", "HOST-VMKNIC-EXIST-002", "no IP address"},
		"vmknic on another stack": {func(w world) { w.inv.Hosts[1].VMKs[0].NetStack = "vmotion" }, "host/esx-02", "HOST-VMKNIC-EXIST-002",
			"TCP/IP stack vmotion"},
		"vmknic address twice": {func(w world) { w.inv.Hosts[1].VMKs[0].IP = "10.0.1.1" }, "host/esx-02", "HOST-VMKNIC-DUP-004", "of esx-01 too"},
		"option unread":        {func(w world) { w.inv.Hosts[1].Options = nil }, "host/esx-02", "HOST-VMKNIC-SET-001", "could not be read"},
		"firewall unread":      {func(w world) { w.inv.Hosts[1].Firewall = nil }, "host/esx-02", "HOST-FW-PVRDMA-007", "could not be read"},
		"ruleset shuts peers out": {func(w world) { w.inv.Hosts[1].Firewall["pvrdma"] = backends.Ruleset{Networks: []string{"10.9.0.0/16"}} },
			"host/esx-02", "HOST-FW-ALLOW-008", "not allowed: 10.0.1.1"},
		"VM unknown":      {func(w world) { w.a.VMs[1].Name = "vm-99" }, "vm/vm-99", "", "no such VM"},
		"VM elsewhere":    {func(w world) { w.inv.VMs[1].Host = "esx-77" }, "vm/vm-02", "", "is on esx-77"},
		"template":        {func(w world) { w.inv.VMs[1].Template = true }, "vm/vm-02", "VM-POWER-001", "template"},
		"suspended":       {func(w world) { w.inv.VMs[1].Power = "suspended" }, "vm/vm-02", "VM-POWER-001", "suspended"},
		"inaccessible":    {func(w world) { w.inv.VMs[1].State = "inaccessible" }, "vm/vm-02", "VM-POWER-001", "inaccessible"},
		"vCenter":         {func(w world) { w.inv.VMs[1].VCenterVM = true }, "vm/vm-02", "VM-POWER-001", "vCenter itself"},
		"fault tolerance": {func(w world) { w.inv.VMs[1].FaultTolerant = true }, "vm/vm-02", "VM-FT-028", "fault tolerance"},
		"off on a host in maintenance": {func(w world) { w.inv.VMs[1].Power = "poweredOff"; w.inv.Hosts[1].InMaintenance = true },
			"vm/vm-02", "HOST-MAINT-002", "cannot be powered on"},
		"no ordinary adapter": {func(w world) { w.inv.VMs[1].Adapters = nil }, "vm/vm-02", "VM-NIC-FIRST-014", "first adapter"},
		"PVRDMA first":        {func(w world) { w.inv.VMs[1].Adapters[0].Type = "pvrdma" }, "vm/vm-02", "VM-NIC-FIRST-014", "first adapter"},
		"PVRDMA on another port group of the switch": {func(w world) {
			w.inv.VMs[1].Adapters = append(w.inv.VMs[1].Adapters, backends.Adapter{Type: "pvrdma", PortGroup: "old", Switch: "RDMA-DVS", MAC: "m"})
		}, "vm/vm-02", "VM-NIC-DVS-019", `on "old" already`},
		"two PVRDMA before 7.0 U2 (KB 328676)": {func(w world) {
			w.inv.Hosts[0].Version = "7.0.1"
			w.inv.VMs[1].Adapters = append(w.inv.VMs[1].Adapters, backends.Adapter{Type: "pvrdma", PortGroup: "x", Switch: "other", MAC: "m"})
		}, "vm/vm-02", "VM-NIC-PVCOUNT-016", "2 PVRDMA adapters"},
		"memory does not fit": {func(w world) { w.inv.Hosts[1].MemoryMB = 8192 }, "host/esx-02", "VM-MEMFIT-008", "16384 MB"},
		"address of a vmknic": {func(w world) { w.inv.Hosts[0].VMKs[0].IP = "192.168.50.11" }, "vm/vm-02", "GST-DUPIP-016", "vmk0 on esx-01"},
		"address of a VM": {func(w world) { w.inv.VMs[0].IPs = []string{"192.168.50.11"} }, "vm/vm-02", "GST-DUPIP-016",
			"in use by the VM vm-01"},
		"subnets overlap": {func(w world) { w.a.VMs[1].IP.Prefix = netip.MustParsePrefix("192.168.50.11/16") }, "vm/vm-02", "GST-IP-014",
			"192.168.0.0/16 overlaps with"},
		"guest unreachable": {func(w world) { w.inv.Guests[1] = backends.Guest{VM: "vm-02", Error: "connection refused"} }, "guest/vm-02", "",
			"connection refused"},
		"unread packages": {func(w world) { w.inv.Guests[1].Packages = nil }, "guest/vm-02", "GST-PKG-005",
			"the package manager does not answer"},
		"guest without sudo": {func(w world) { w.inv.Guests[1].Sudo = "none" }, "guest/vm-02", "GST-SUDO-002", "may not use sudo"},
		"guest whose sudo password is wrong": {func(w world) {
			w.inv.Guests[1].Sudo, w.inv.Guests[1].SudoError, w.inv.Guests[1].Hint = "none", "become root: sudo did not accept the password",
				"set RDMA_SETUP_SUDO_PASSWORD"
		}, "guest/vm-02", "GST-SUDO-002", "did not accept the password"},
		"MOFED in the guest (PVRDMA and vSphere Bitfusion, NGC)": {func(w world) { w.inv.Guests[1].MOFED = "MLNX_OFED_LINUX-5.8" }, "guest/vm-02",
			"GST-MOFED-006", "MLNX_OFED_LINUX-5.8"},
		"kernel without driver": {func(w world) { w.inv.Guests[1].Available = []string{"ib_umad"} }, "guest/vm-02", "GST-OS-001",
			"no driver vmw_pvrdma"},
		"unknown distribution": {func(w world) { g := &w.inv.Guests[1]; g.OS, g.Version, g.Like = "alpine", "3.19", nil }, "guest/vm-02",
			"GST-PKG-005", "alpine 3.19"},
		"a file that nothing runs stands before any new adapter": {func(w world) {
			w.inv.Guests[1].NetRivals = map[string]backends.FileProblem{"": {File: "/etc/netplan/00.yaml", Why: "its renderer does not run",
				Remedy: "change it"}}
		}, "guest/vm-02", "GST-NETFILES-044", "/etc/netplan/00.yaml: its renderer"},
		"a new adapter's file would be that of another interface": {func(w world) {
			w.inv.Guests[1].Interfaces[0].Config = "/etc/netplan/60-rdma-setup-RDMA-PG.yaml"
		},
			"guest/vm-02", "GST-IPPERSIST-018", "60-rdma-setup-RDMA-PG.yaml: this program wrote it for ens192"},
		"renamed port group": {func(w world) {
			w.inv.VMs[1].Adapters = append(w.inv.VMs[1].Adapters, backends.Adapter{Type: "pvrdma", PortGroup: "RDMA-PG", Switch: "RDMA-DVS",
				MAC: "00:50:56:00:99:01"})
			w.inv.Guests[1].Interfaces = append(w.inv.Guests[1].Interfaces, backends.Interface{Name: "ens224", MAC: "00:50:56:00:99:01",
				Config: "/etc/systemd/network/05-rdma-setup-OLD.network"})
		}, "guest/vm-02", "GST-IPPERSIST-018", "05-rdma-setup-OLD.network: this program wrote it for ens224 when"},
		"second interface in the subnet": {func(w world) { w.inv.Guests[1].Interfaces[0].Addresses = []string{"192.168.50.200/24"} },
			"guest/vm-02", "GST-SUBNET-015", "in the subnet of ens192"},
		"switch version not offered": {func(w world) { w.a.Switch.Version = "6.0.0" }, "dvs/RDMA-DVS", "DVS-VERSION-002", "does not offer"},
		"switch version too new": {func(w world) { w.a.Switch.Version = "8.0.3"; w.inv.Hosts[1].Version = "8.0.1" }, "dvs/RDMA-DVS",
			"DVS-VERSION-002", "newer than ESXi 8.0.1 of esx-02"},
		"no version fits": {func(w world) { w.inv.Hosts[1].Version = "6.7.0" }, "dvs/RDMA-DVS", "DVS-VERSION-002", "no version"},
		"versions unread": {func(w world) {
			w.inv.VCenter.DVSVersions, w.inv.Gaps = nil, []backends.Gap{{What: backends.GapDVSVersions, Why: "permission denied"}}
		}, "dvs/RDMA-DVS", "DVS-VERSION-002", "could not be read: permission denied"},
		"network of that name": {func(w world) { w.inv.VMs[1].Adapters[0].PortGroup = "RDMA-PG" }, "portgroup/RDMA-PG", "DVS-PG-007",
			"the VM vm-02 is on it"},
		"vmknic's network": {func(w world) { w.inv.Hosts[1].VMKs[0].PortGroup = "RDMA-PG" }, "portgroup/RDMA-PG", "DVS-PG-007",
			"vmk0 of esx-02 is on it"},
		"MTU too large": {func(w world) { w.a.Switch.MTU = 9100 }, "dvs/RDMA-DVS", "DVS-MTU-006", "9100"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{inv: newInventory(2)}
			w.a = newAnswers(w.inv)
			c.change(w)
			got := refusals(t, w.a, w.inv, plan.Options{})
			if len(got) != 1 || got[0].Target.String() != c.target || got[0].Check != c.check || !strings.Contains(got[0].Why, c.why) {
				t.Errorf("want one for %s, %s, %q; got:", c.target, c.check, c.why)
				for _, r := range got {
					t.Errorf("  %s %s %q (%s)", r.Target, r.Check, r.Why, r.Remedy)
				}
			}
		})
	}
}

// TestSharedSwitchIsNeverEdited checks that a switch in use that rdma-setup did not create is refused.
func TestSharedSwitchIsNeverEdited(t *testing.T) {
	for name, share := range map[string]func(inv *backends.Inventory, sw *backends.Switch){
		"vmknic":           func(_ *backends.Inventory, sw *backends.Switch) { sw.VMKs = []string{"esx-01/vmk2"} },
		"other port group": func(_ *backends.Inventory, sw *backends.Switch) { sw.PortGroups = []string{"Production"} },
		"LAG":              func(_ *backends.Inventory, sw *backends.Switch) { sw.LAGs = 1 },
		"NSX":              func(_ *backends.Inventory, sw *backends.Switch) { sw.NSX = true },
		"offload":          func(_ *backends.Inventory, sw *backends.Switch) { sw.OffloadID = "nvidia-bf-2" },
		"second uplink": func(_ *backends.Inventory, sw *backends.Switch) {
			sw.Members["esx-09"] = backends.Member{PNICs: []string{"vmnic4", "vmnic5"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newInventory(2)
			inv.Switches = []backends.Switch{{Name: "Prod-DVS", Datacenter: "DC", Version: "8.0.0", Uplinks: []string{"u1"}, MTU: 9000,
				Members: map[string]backends.Member{}}}
			a := newAnswers(inv)
			a.Switch.Name = "Prod-DVS"
			share(inv, &inv.Switches[0])
			got := refusals(t, a, inv, plan.Options{})
			if len(got) != 1 || got[0].Target.String() != "dvs/Prod-DVS" || !strings.Contains(got[0].Remedy, "RDMA-DVS") {
				t.Errorf("%+v", got)
			}
			inv.Switches[0].Note = backends.SwitchMark
			mustBuild(t, a, inv, plan.Options{})
		})
	}
}

func TestForeignPVRDMAVMKeepsTheUplinkAsItIs(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	apply(t, a, inv)
	inv.Switches[0].MTU = 1500
	a.VMs = a.VMs[:1]
	got := refusals(t, a, inv, plan.Options{})
	if len(got) != 1 || got[0].Target.String() != "vm/vm-02" || got[0].Check != "VM-POWER-001" {
		t.Errorf("KB 328676: %+v", got)
	}
}

func TestEveryBadHostIsNamedAtOnce(t *testing.T) {
	inv := newInventory(5)
	inv.Hosts[1].NICs[1].RDMADevice = ""
	inv.Hosts[2].NICs[1].RoCEv1, inv.Hosts[2].NICs[1].RoCEv2 = false, false
	inv.Hosts[3].NICs[1].SpeedMbps = 0
	inv.Hosts[4].NICs[1].Roles = []string{"vsan"}
	a := newAnswers(inv)
	var names []string
	for _, r := range refusals(t, a, inv, plan.Options{}) {
		names = append(names, r.Target.Name)
	}
	if want := []string{"esx-02", "esx-03", "esx-04", "esx-05"}; !slices.Equal(names, want) {
		t.Errorf("named %v, want %v", names, want)
	}
	p := mustBuild(t, a, inv, plan.Options{Limit: []string{"esx-01"}})
	for _, c := range p.Changes {
		if strings.Contains(c.Target.Name, "-02") {
			t.Errorf("--limit lets %s in", c.ID())
		}
	}
	p = mustBuild(t, a, inv, plan.Options{Limit: []string{"esx-01", "esx-05"}, ForceNIC: []string{"esx-05/vmnic2"}})
	if p.Change("host/esx-05/member/RDMA-DVS") == nil ||
		!slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "because of --force-nic") }) {
		t.Errorf("--force-nic: notes %q", p.Notes)
	}
}

// TestAPairToTryIsNamedBeforeTheFirstRun: the plan suggests a pair of hosts to try first, but not with --limit or after the first
// run.
func TestAPairToTryIsNamedBeforeTheFirstRun(t *testing.T) {
	inv := newInventory(3)
	a := newAnswers(inv)
	tries := func(o plan.Options) (out []string) {
		for _, n := range mustBuild(t, a, inv, o).Notes {
			if strings.HasPrefix(n, plan.TryFirst) {
				out = append(out, n)
			}
		}
		return out
	}
	if got := tries(plan.Options{}); !slices.Equal(got, []string{"to try one pair of hosts first: --limit esx-01,esx-02"}) {
		t.Errorf("before the first run: %q", got)
	}
	if got := tries(plan.Options{Limit: []string{"esx-01", "esx-02"}}); got != nil {
		t.Errorf("with --limit: %q", got)
	}
}

func TestNoForceCutsManagement(t *testing.T) {
	inv := newInventory(2)
	h := &inv.Hosts[1]
	h.NICs[1].Switch, h.NICs[1].Roles = "vSwitch0", []string{"management"}
	h.NICs[0].Switch, h.NICs[0].Roles = "", nil
	a := newAnswers(inv)
	force := plan.Options{ForceNIC: []string{"esx-02/vmnic2"}}
	for state, prepare := range map[string]func(){
		"its only uplink":        func() {},
		"the other has no link":  func() { h.NICs[0].Switch, h.NICs[0].SpeedMbps = "vSwitch0", 0 },
		"the other is elsewhere": func() { h.NICs[0].Switch, h.NICs[0].SpeedMbps = "vSwitch1", 25000 },
	} {
		prepare()
		got := refusals(t, a, inv, force)
		if len(got) != 1 || got[0].Target.Name != "esx-02" || !strings.Contains(got[0].Why, "vCenter would lose the host") ||
			!strings.Contains(got[0].Remedy, "another uplink") {
			t.Errorf("%s: %+v", state, got)
		}
	}
	h.NICs[0].Switch, h.NICs[0].SpeedMbps, h.NICs[0].Roles = "vSwitch0", 25000, []string{"management"}
	p := mustBuild(t, a, inv, force)
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "vmnic2 is used because of --force-nic") }) {
		t.Errorf("with another uplink that has link: notes %q", p.Notes)
	}
}

func TestSkipOverridesWhatCanBeOverridden(t *testing.T) {
	inv := newInventory(2)
	inv.Hosts[1].VMKs[0].IP = "10.0.1.1"
	a := newAnswers(inv)
	p := mustBuild(t, a, inv, plan.Options{Skip: []string{"HOST-VMKNIC-DUP-004"}})
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "HOST-VMKNIC-DUP-004 skipped") }) {
		t.Errorf("notes %q", p.Notes)
	}
	inv.Hosts[1].VMKs = nil
	if got := refusals(t, a, inv, plan.Options{Skip: []string{"HOST-VMKNIC-EXIST-002"}}); len(got) != 1 {
		t.Errorf("a vmknic that does not exist cannot be skipped: %+v", got)
	}
}

func TestAmbiguousVMIsAUsageErrorWithThePaths(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	for i := range inv.VMs {
		inv.VMs[i].Name = "/DC/vm/team" + string(rune('a'+i)) + "/train"
		inv.VMs[i].Path = inv.VMs[i].Name
		inv.Guests[i].VM = inv.VMs[i].Name
	}
	a.VMs = a.VMs[:1]
	a.VMs[0].Name = "train"
	_, err := recipe.Build(a, inv, plan.Options{})
	if backends.KindOf(err) != backends.KindUsage || !strings.Contains(err.Error(), "/DC/vm/teama/train, /DC/vm/teamb/train") {
		t.Errorf("%v", err)
	}
	a.VMs[0].Name = "/DC/vm/teamb/train"
	if p := mustBuild(t, a, inv, plan.Options{}); p.Change("vm//DC/vm/teamb/train/memory") == nil {
		t.Error("the path does not find the VM")
	}
}

// Names of switches and port groups are unique relative to their folder only (vSphere Web Services API, ManagedEntity.name).
func TestAmbiguousSwitchIsAUsageErrorWithThePaths(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	wanted := a.Switch.Name
	inv.Switches = []backends.Switch{{Name: "/DC/network/" + wanted, Path: "/DC/network/" + wanted},
		{Name: "/DC/network/a/" + wanted, Path: "/DC/network/a/" + wanted}}
	_, err := recipe.Build(a, inv, plan.Options{})
	if backends.KindOf(err) != backends.KindUsage || !strings.Contains(err.Error(), "/DC/network/"+wanted+", /DC/network/a/"+wanted) {
		t.Errorf("%v", err)
	}
	inv.Switches[0].Name, inv.PortGroups = wanted,
		[]backends.PortGroup{{Name: "/DC/network/a/RDMA-PG", Path: "/DC/network/a/RDMA-PG", Switch: wanted}}
	a.Switch.PortGroup = "RDMA-PG"
	if _, err := recipe.Build(a, inv, plan.Options{}); backends.KindOf(err) != backends.KindUsage ||
		!strings.Contains(err.Error(), `port group: "RDMA-PG"`) {
		t.Errorf("%v", err)
	}
}

// A name that two port groups share would be refused by the setters, after other changes: the plan refuses it first, whatever
// switch they are on.
func TestPortGroupNameOfTwoOtherSwitches(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	a.Switch.PortGroup = "RDMA-PG"
	for _, dc := range []string{"/DC2", "/DC3"} {
		path := dc + "/network/RDMA-PG"
		inv.PortGroups = append(inv.PortGroups, backends.PortGroup{Name: path, Path: path, Switch: "DSwitch-of-" + dc[1:]})
	}
	_, err := recipe.Build(a, inv, plan.Options{})
	if backends.KindOf(err) != backends.KindUsage || !strings.Contains(err.Error(), "/DC2/network/RDMA-PG, /DC3/network/RDMA-PG") {
		t.Errorf("%v", err)
	}
}

func TestAModeThatDoesNotExist(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	a.Mode = "roce"
	if _, err := recipe.Build(a, inv, plan.Options{}); backends.KindOf(err) != backends.KindUsage {
		t.Error(err)
	}
}
