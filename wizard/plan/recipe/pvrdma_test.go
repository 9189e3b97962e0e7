package recipe_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// worlds are initial states from which an apply leads to a plan without changes, and a rollback back to the initial state.
var worlds = map[string]func(inv *backends.Inventory){
	"bare":                           func(*backends.Inventory) {},
	"VM off":                         func(inv *backends.Inventory) { inv.VMs[1].Power = "poweredOff" },
	"old hardware version":           func(inv *backends.Inventory) { inv.VMs[0].Hardware = 14 },
	"one option set by somebody":     func(inv *backends.Inventory) { inv.Hosts[0].Options["Net.PVRDMAVmknic"] = "vmk9" },
	"option with the guides' quotes": func(inv *backends.Inventory) { inv.Hosts[0].Options["Net.PVRDMAVmknic"] = `"vmk0"` },
	"ruleset open already": func(inv *backends.Inventory) {
		inv.Hosts[1].Firewall["pvrdma"] = backends.Ruleset{Enabled: true, AllIP: true}
	},
	"EL guest": func(inv *backends.Inventory) {
		g := &inv.Guests[0]
		g.OS, g.Version, g.Like, g.Packages = "rhel", "9.4", []string{"fedora"}, map[string]string{"rdma-core": "1"}
	},
	"empty switch made by hand": func(inv *backends.Inventory) {
		inv.Switches = []backends.Switch{{Name: "RDMA-DVS", Datacenter: "DC", Version: "7.0.3", Uplinks: []string{"a", "b", "c", "d"}, MTU: 1500,
			NIOC: true, Discovery: "cdp listen", Members: map[string]backends.Member{}}}
	},
}

func TestApplyEndsInNothingToDoAndRollbackAtTheStart(t *testing.T) {
	for name, change := range worlds {
		t.Run(name, func(t *testing.T) {
			inv := newInventory(3)
			change(inv)
			start := clone(t, inv)
			back := apply(t, newAnswers(inv), inv)
			if len(back.priors) == 0 {
				t.Fatal("nothing was changed")
			}
			p := takeBack(t, inv, back)
			if len(p.Conflicts) > 0 {
				t.Fatalf("conflicts: %v", p.Conflicts)
			}
			reboot(start, inv) // a power cycle may load modules other than before
			if diff := cmp.Diff(start, inv, equateEmpty); diff != "" {
				t.Errorf("rollback did not restore (-start +now):\n%s", diff)
			}
		})
	}
}

func TestSecondRollbackDoesNothing(t *testing.T) {
	inv := newInventory(2)
	back := apply(t, newAnswers(inv), inv)
	takeBack(t, inv, back)
	if p := takeBack(t, inv, back); !p.Empty() || len(p.Brackets) > 0 {
		t.Errorf("second rollback: %d changes, %d brackets", len(p.Changes), len(p.Brackets))
	}
}

func TestBarePlanHoldsEveryStepOfTheGuide(t *testing.T) {
	inv := newInventory(2)
	p := mustBuild(t, newAnswers(inv), inv, plan.Options{})
	want := []string{
		"dvs/RDMA-DVS/switch", "portgroup/RDMA-PG/portgroup",
		"host/esx-01/member/RDMA-DVS", "host/esx-01/option/Net.PVRDMAVmknic", "host/esx-01/firewall/pvrdma",
		"host/esx-02/member/RDMA-DVS", "host/esx-02/option/Net.PVRDMAVmknic", "host/esx-02/firewall/pvrdma",
		"vm/vm-01/memory", "vm/vm-01/adapter/RDMA-PG", "vm/vm-02/memory", "vm/vm-02/adapter/RDMA-PG",
		"guest/vm-01/packages/rdma", "guest/vm-01/modules/rdma", "guest/vm-01/persist", "guest/vm-01/address/RDMA-PG",
		"guest/vm-01/memlock", "guest/vm-01/port/RDMA-PG", "guest/vm-01/restart",
		"guest/vm-02/packages/rdma", "guest/vm-02/modules/rdma", "guest/vm-02/persist", "guest/vm-02/address/RDMA-PG",
		"guest/vm-02/memlock", "guest/vm-02/port/RDMA-PG",
	}
	var got []string
	for _, c := range p.Changes {
		got = append(got, c.ID())
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes:\n%s", diff)
	}
	for id, value := range map[string]any{
		"dvs/RDMA-DVS/switch": backends.SwitchSpec{Datacenter: "DC", Version: "8.0.3", Uplinks: 1, MTU: 9000,
			Discovery: "lldp listen"},
		"portgroup/RDMA-PG/portgroup":         backends.PortGroupSpec{Switch: "RDMA-DVS", Binding: "earlyBinding", Active: []string{"Uplink 1"}},
		"host/esx-01/member/RDMA-DVS":         backends.MemberSpec{PNICs: []string{"vmnic2"}},
		"host/esx-01/option/Net.PVRDMAVmknic": "vmk0",
		"host/esx-01/firewall/pvrdma":         true,
		"vm/vm-01/memory":                     backends.MemorySpec{Locked: true, ReservationMB: 16384},
		"vm/vm-01/adapter/RDMA-PG": backends.AdapterSpec{Type: "pvrdma", PortGroup: "RDMA-PG", Switch: "RDMA-DVS", Protocol: "rocev2",
			Start: true},
		"guest/vm-01/address/RDMA-PG": backends.AddressSpec{CIDR: "192.168.50.10/24", MTU: 9000},
		"guest/vm-01/persist":         backends.Persist{Modules: []string{"ib_umad", "rdma_cm", "rdma_ucm"}, Reload: "vmw_pvrdma"},
		"guest/vm-01/memlock":         "unlimited",
		"guest/vm-01/port/RDMA-PG":    "PORT_ACTIVE",
	} {
		if c := p.Change(id); c == nil || c.To != backends.ValueOf(value) {
			t.Errorf("%s: %+v", id, c)
		}
	}
	if n := p.Ceiling(); n.HostReboots != 0 || n.PowerCycles != 2 {
		t.Errorf("rules: no host reboot, one power cycle a VM; got %d and %d", n.HostReboots, n.PowerCycles)
	}
	if p.Stages != 1 || p.Change("guest/vm-01/modules/rdma").From.Known() {
		t.Error("what lives in a kernel that is about to be restarted counts as known")
	}
	if c := p.Change("guest/vm-01/packages/rdma"); !c.From.Known() {
		t.Error("packages survive a reboot and are known now")
	}
}

func TestConfiguredWorldWithoutAskingMore(t *testing.T) {
	inv := newInventory(4)
	apply(t, newAnswers(inv), inv)
	p := mustBuild(t, newAnswers(inv), inv, plan.Options{})
	if !p.Empty() || len(p.Brackets) > 0 || len(p.Notes) > 1 {
		t.Errorf("%d changes, %d brackets, notes %q", len(p.Changes), len(p.Brackets), p.Notes)
	}
}

func TestSamePlanWhateverTheOrderOfTheInventory(t *testing.T) {
	inv := newInventory(6)
	want := mustBuild(t, newAnswers(inv), inv, plan.Options{})
	a := newAnswers(inv)
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		shuffled := clone(t, inv)
		r.Shuffle(len(shuffled.Hosts), func(i, j int) { shuffled.Hosts[i], shuffled.Hosts[j] = shuffled.Hosts[j], shuffled.Hosts[i] })
		r.Shuffle(len(shuffled.VMs), func(i, j int) { shuffled.VMs[i], shuffled.VMs[j] = shuffled.VMs[j], shuffled.VMs[i] })
		r.Shuffle(len(shuffled.Guests), func(i, j int) { shuffled.Guests[i], shuffled.Guests[j] = shuffled.Guests[j], shuffled.Guests[i] })
		if got := mustBuild(t, a, shuffled, plan.Options{}); got.Hash() != want.Hash() {
			t.Fatal("the hash depends on the order of the inventory")
		}
	}
}

// TestOnlyDriftIsPlanned breaks one setting of a configured world and checks the plan.
func TestOnlyDriftIsPlanned(t *testing.T) {
	for name, c := range map[string]struct {
		drift func(inv *backends.Inventory)
		want  []string
		cycle int
	}{
		"firewall shut": {func(inv *backends.Inventory) { inv.Hosts[1].Firewall["pvrdma"] = backends.Ruleset{AllIP: true} },
			[]string{"host/esx-02/firewall/pvrdma"}, 0},
		"vmknic cleared": {func(inv *backends.Inventory) { inv.Hosts[0].Options["Net.PVRDMAVmknic"] = "" },
			[]string{"host/esx-01/option/Net.PVRDMAVmknic"}, 0},
		"VLAN changed": {func(inv *backends.Inventory) { inv.PortGroups[0].VLAN = "7" }, []string{"portgroup/RDMA-PG/portgroup"}, 0},
		"MTU lowered: all PVRDMA VMs off (KB 328676)": {func(inv *backends.Inventory) { inv.Switches[0].MTU = 1500 },
			[]string{"dvs/RDMA-DVS/switch", "guest/vm-01/modules/rdma", "guest/vm-01/port/RDMA-PG", "guest/vm-02/modules/rdma",
				"guest/vm-02/port/RDMA-PG"}, 2},
		"NIOC switched on our switch": {func(inv *backends.Inventory) { inv.Switches[0].NIOC = true }, []string{"dvs/RDMA-DVS/switch"}, 0},
		"port down": {func(inv *backends.Inventory) { inv.Guests[0].RDMA[0].State = "PORT_DOWN" },
			[]string{"guest/vm-01/port/RDMA-PG"}, 0},
		"address lost": {func(inv *backends.Inventory) { inv.Guests[0].Interfaces[1].Addresses = nil },
			[]string{"guest/vm-01/address/RDMA-PG"}, 0},
		"address not kept": {func(inv *backends.Inventory) { inv.Guests[0].Interfaces[1].Persistent = false },
			[]string{"guest/vm-01/address/RDMA-PG"}, 0},
		"unit gone": {func(inv *backends.Inventory) { inv.Guests[1].Persist.Reload = "" }, []string{"guest/vm-02/persist"}, 0},
		"package removed": {func(inv *backends.Inventory) { delete(inv.Guests[1].Packages, "perftest") }, []string{"guest/vm-02/packages/rdma"},
			0},
		"limit lowered": {func(inv *backends.Inventory) { inv.Guests[0].MemlockKB = 64 }, []string{"guest/vm-01/memlock"}, 0},
		"reservation dropped": {func(inv *backends.Inventory) { inv.VMs[0].MemoryLocked, inv.VMs[0].Reservation = false, 0 },
			[]string{"guest/vm-01/modules/rdma", "guest/vm-01/port/RDMA-PG", "vm/vm-01/memory"}, 1},
		"adapter not connected at power-on": {func(inv *backends.Inventory) { inv.VMs[1].Adapters[1].Start = false },
			[]string{"guest/vm-02/modules/rdma", "guest/vm-02/port/RDMA-PG", "vm/vm-02/adapter/RDMA-PG"}, 1},
		"second uplink added": {func(inv *backends.Inventory) {
			inv.Switches[0].Members["esx-01"] = backends.Member{PNICs: []string{"vmnic2", "vmnic3"}}
			inv.Hosts[0].NICs[2].Switch = "RDMA-DVS"
		}, []string{"guest/vm-01/modules/rdma", "guest/vm-01/port/RDMA-PG", "host/esx-01/member/RDMA-DVS"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newInventory(2)
			a := newAnswers(inv)
			apply(t, a, inv)
			c.drift(inv)
			p := mustBuild(t, a, inv, plan.Options{})
			var got []string
			for _, ch := range p.Changes {
				got = append(got, ch.ID())
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("changes:\n%s", diff)
			}
			if n := p.Ceiling().PowerCycles; n != c.cycle {
				t.Errorf("%d power cycles, want %d", n, c.cycle)
			}
			carryOut(t, inv, p, nil)
			apply(t, a, inv)
		})
	}
}

func TestSwitchVersion(t *testing.T) {
	for name, c := range map[string]struct {
		lowest, asked, want string
	}{
		"newest that all hosts support":    {"8.0.3", "", "8.0.3"},
		"an older host lowers it":          {"7.0.3", "", "7.0.3"},
		"between two offers":               {"8.0.1", "", "8.0.0"},
		"asked for":                        {"8.0.3", "7.0.2", "7.0.2"},
		"7.0 U1 has no version of its own": {"7.0.1", "", "7.0.0"},
	} {
		inv := newInventory(2)
		inv.Hosts[1].Version = c.lowest
		a := newAnswers(inv)
		a.Switch.Version = c.asked
		p := mustBuild(t, a, inv, plan.Options{})
		if got := decode[backends.SwitchSpec](t, p.Change("dvs/RDMA-DVS/switch").To).Version; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestHardwareVersion: KB 328676 (13 for PVRDMA), vSphere API 6.7 (deviceProtocol, hence 14 for RoCE v2), KB 315655 (versions that
// an ESXi release runs), KB 407595 (slots of EFI VMs from 20 on).
func TestHardwareVersion(t *testing.T) {
	for name, c := range map[string]struct {
		esxi, protocol, firmware string
		has                      int
		wish                     answers.Hardware
		skip                     []string
		get                      int    // 0: no change
		refused                  string // part of the refusal
	}{
		"13 is too old for RoCE v2":           {"8.0.3", "rocev2", "efi", 13, "", nil, 0, "vmx-14"},
		"keep refuses by word too":            {"8.0.3", "rocev2", "efi", 12, "keep", nil, 0, "vmx-14"},
		"13 is enough for RoCE v1":            {"8.0.3", "rocev1", "efi", 13, "", nil, 0, ""},
		"upgrade takes the lowest":            {"8.0.3", "rocev2", "efi", 11, "upgrade", nil, 14, ""},
		"upgrade to 13 for RoCE v1":           {"6.5.0", "rocev1", "efi", 10, "upgrade", nil, 13, ""},
		"upgrade has nothing to do":           {"8.0.3", "rocev2", "efi", 21, "upgrade", nil, 0, ""},
		"a number":                            {"7.0.0", "rocev2", "efi", 14, "17", nil, 17, ""},
		"a number is there already":           {"7.0.0", "rocev2", "efi", 17, "17", nil, 0, ""},
		"a number below its own":              {"8.0.3", "rocev2", "efi", 19, "15", nil, 0, "cannot be lowered"},
		"a number below what RoCE v2 needs":   {"8.0.3", "rocev2", "efi", 12, "13", nil, 0, "vmx-14 or later"},
		"a number that the host does not run": {"7.0.0", "rocev2", "bios", 14, "19", nil, 0, "runs vmx-17 at most"},
		"EFI across 20":                       {"8.0.3", "rocev2", "efi", 19, "21", nil, 21, ""}, // see TestNamesAreKeptBeforeSlotsMove
		"EFI across 20, skipped":              {"8.0.3", "rocev2", "efi", 19, "21", []string{"VM-HWVER-SLOT-004"}, 21, ""},
		"BIOS across 20":                      {"8.0.3", "rocev2", "bios", 19, "20", nil, 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newInventory(2)
			inv.VCenter.DVSVersions = append([]string{"6.5.0", "6.6.0"}, inv.VCenter.DVSVersions...)
			inv.Hosts[0].Version, inv.VMs[0].Hardware, inv.VMs[0].Firmware = c.esxi, c.has, c.firmware
			a := newAnswers(inv)
			a.PVRDMA.Protocol, a.VMs[0].Hardware = c.protocol, c.wish
			p, err := recipe.Build(a, inv, plan.Options{Skip: c.skip})
			if c.refused != "" {
				var r *plan.Refused
				if !errors.As(err, &r) || !slices.ContainsFunc(r.Refusals, func(r plan.Refusal) bool {
					return r.Target == backends.VMRef("vm-01") && strings.Contains(r.Why, c.refused) && r.Remedy != ""
				}) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			ch := p.Change("vm/vm-01/hardware")
			if c.get == 0 && ch != nil {
				t.Errorf("planned %s", ch.To)
			}
			if c.get != 0 && (ch == nil || ch.To != backends.ValueOf(c.get) || ch.Irreversible == "") {
				t.Errorf("%+v", ch)
			}
			if told := slices.ContainsFunc(p.Notes, func(n string) bool {
				return strings.Contains(n, "vm-01") && strings.Contains(n, "native endpoints (bare-metal peers) need vmx-18")
			}); told != (max(c.has, c.get) < 18) {
				t.Errorf("native endpoints: %t, %q", told, p.Notes)
			}
		})
	}
}

// TestHostileNames: names are treated as data; ids remain distinct and everything still works.
func TestHostileNames(t *testing.T) {
	for i, name := range []string{"a b", `q"uo'te`, "$(reboot)", "slash/inside", "ünï-çødé", "`id`", "a%2fb", "-rf", "open vm/x"} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			inv := newInventory(2)
			inv.VMs[0].Name, inv.Guests[0].VM, inv.VMs[0].Path = name, name, ""
			a := newAnswers(inv)
			a.Switch.Name, a.Switch.PortGroup = "S "+name, "P "+name
			start := clone(t, inv)
			back := apply(t, a, inv)
			takeBack(t, inv, back)
			reboot(start, inv)
			if diff := cmp.Diff(start, inv, equateEmpty); diff != "" {
				t.Errorf("rollback did not restore:\n%s", diff)
			}
		})
	}
}

func TestAVMThatIsOffIsSaidToBePoweredOn(t *testing.T) {
	inv := newInventory(2)
	inv.VMs[1].Power = "poweredOff"
	p := mustBuild(t, newAnswers(inv), inv, plan.Options{})
	for _, want := range []string{"vm-02: powered off; will be powered on", "Only then can the log-in to its guest be tried",
		"1 running VM is shut down"} {
		if !strings.Contains(strings.Join(p.Notes, "\n"), want) {
			t.Errorf("no note %q in %q", want, p.Notes)
		}
	}
}
