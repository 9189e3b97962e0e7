package recipe_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// Waves: which VMs are shut down, which host is last, and which plans are refused.
func TestWavesDecideWhatHappensToBystanders(t *testing.T) {
	cluster := func(mode string, ha bool) []backends.Cluster {
		return []backends.Cluster{{Name: "compute", DRS: mode != "", DRSMode: mode, HA: ha}}
	}
	bystander := func(inv *backends.Inventory, edit func(*backends.VM)) {
		v := newVM(9, "esx-02")
		edit(&v)
		inv.VMs = append(inv.VMs, v)
	}
	for name, c := range map[string]struct {
		edit    func(*backends.Inventory)
		opts    plan.Options
		off     bool // vm-09 is shut down
		refused string
	}{
		"nobody said how the cluster is set": {func(inv *backends.Inventory) { bystander(inv, func(*backends.VM) {}) }, plan.Options{}, false,
			""},
		"DRS moves it": {func(inv *backends.Inventory) {
			inv.Clusters = cluster("fullyAutomated", true)
			bystander(inv, func(*backends.VM) {})
		}, plan.Options{}, false, ""},
		"manual DRS would stall": {func(inv *backends.Inventory) {
			inv.Clusters = cluster("manual", false)
			bystander(inv, func(*backends.VM) {})
		}, plan.Options{}, true, ""},
		"a device holds it": {func(inv *backends.Inventory) {
			bystander(inv, func(v *backends.VM) { v.Passthrough = []string{"0000:3d:00.0"} })
		}, plan.Options{}, true, ""},
		"it was left off": {func(inv *backends.Inventory) {
			inv.Clusters = cluster("fullyAutomated", true)
			bystander(inv, func(v *backends.VM) { v.Power = "poweredOff" })
		}, plan.Options{Held: []string{"vm-09"}}, true, ""},
		"it is off": {func(inv *backends.Inventory) {
			inv.Clusters = cluster("manual", true)
			bystander(inv, func(v *backends.VM) { v.Power = "poweredOff" })
		}, plan.Options{}, false, ""},
		"vCenter that cannot move": {func(inv *backends.Inventory) {
			inv.Clusters = cluster("manual", false)
			bystander(inv, func(v *backends.VM) { v.VCenterVM = true })
		}, plan.Options{}, false, "runs vCenter itself"},
		"ourselves": {func(inv *backends.Inventory) {
			inv.Clusters = cluster("", false)
			bystander(inv, func(v *backends.VM) { v.IPs = []string{"10.9.9.9"} })
		}, plan.Options{Ourselves: []string{"10.9.9.9"}}, false, "on which rdma-setup runs"},
		"HA's failover level would break": {func(inv *backends.Inventory) {
			inv.Clusters = cluster("fullyAutomated", true)
			inv.Clusters[0].Failover = 2
		}, plan.Options{}, false, "HA's failover level is 2 of 3 hosts"},
		"HA's memory would not be enough": {func(inv *backends.Inventory) {
			inv.Clusters = cluster("fullyAutomated", true)
			inv.Clusters[0].Failover = 1
			bystander(inv, func(v *backends.VM) { v.Reservation = inv.Hosts[1].MemoryMB })
		}, plan.Options{}, false, "while esx-01 reboots"},
		"HA's memory, overridden": {func(inv *backends.Inventory) {
			inv.Clusters = cluster("fullyAutomated", true)
			inv.Clusters[0].Failover = 1
			bystander(inv, func(v *backends.VM) { v.Reservation = inv.Hosts[1].MemoryMB })
		}, plan.Options{Skip: []string{"CL-HA-012"}}, false, ""},
		"HA has room": {func(inv *backends.Inventory) {
			inv.Clusters = cluster("fullyAutomated", true)
			inv.Clusters[0].Failover = 1
		}, plan.Options{}, false, ""},
		"HA would have nobody to fail over to": {func(inv *backends.Inventory) {
			inv.Clusters = cluster("fullyAutomated", true)
			for i := range inv.Hosts[:len(inv.Hosts)-1] {
				inv.Hosts[i].Cluster = "other"
			}
		}, plan.Options{}, false, "no host left for failover"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := withTools(newSRIOV(3))
			c.edit(inv)
			a := sriovAnswers(inv)
			a.VMs = slices.DeleteFunc(a.VMs, func(v answers.VM) bool { return v.Name == "vm-09" })
			a.Run.Bystanders = answers.BystandersShutdown
			p, err := recipe.Build(a, inv, c.opts)
			if c.refused != "" {
				if err == nil || !strings.Contains(refusedText(err), c.refused) {
					t.Errorf("want %q, got %v", c.refused, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			off := slices.ContainsFunc(p.Brackets, func(b plan.Bracket) bool {
				return b.ID() == "vm/vm-09/vm-power" && len(b.Around) == 1 && b.Leave.IsAbsent()
			})
			if off != c.off {
				t.Errorf("vm-09 is shut down: %t", off)
			}
		})
	}
}

// TestBystanders: running VMs that the answers do not list. KB 370222 (vCLS, embedded since 8.0 U3), vSphere Web Services API
// (ManagedByInfo, extension com.vmware.vim.eam).
func TestBystanders(t *testing.T) {
	manual := []backends.Cluster{{Name: "compute", DRS: true, DRSMode: "manual"}}
	full := []backends.Cluster{{Name: "compute", DRS: true, DRSMode: "fullyAutomated"}}
	plain := func(*backends.VM) {}
	local := func(v *backends.VM) { v.Datastores = []string{"shared", "local-2"} }
	device := func(v *backends.VM) { v.Passthrough = []string{"0000:3d:00.0"} }
	sharing := func(v *backends.VM) { v.BusSharing = "physicalSharing" }
	network := func(v *backends.VM) { v.Adapters[0].PortGroup, v.Adapters[0].Connected = "Backup", true }
	large := func(v *backends.VM) { v.MemoryMB = 1 << 20 }
	ruled := func(mode string, rules ...backends.DRSRule) []backends.Cluster {
		return []backends.Cluster{{Name: "compute", DRS: true, DRSMode: mode, Rules: rules}}
	}
	pinned := backends.DRSRule{Name: "licence", Kind: backends.RuleHosts, Mandatory: true, VMs: []string{"vm-09"}, Hosts: []string{"esx-02"}}
	wished := pinned
	wished.Mandatory = false
	apart := backends.DRSRule{Name: "apart", Kind: backends.RuleApart, VMs: []string{"vm-09", "vm-01", "vm-03"}}
	near := backends.DRSRule{Name: "near", Kind: backends.RuleTogether, VMs: []string{"vm-09", "vm-01", "vm-03"}}
	for name, c := range map[string]struct {
		how      answers.Bystanders
		clusters []backends.Cluster
		edit     func(*backends.VM)
		off      bool
		note     string
		refused  string
	}{
		"DRS moves it":                   {"drs", full, plain, false, "is moved to another host by vCenter", ""},
		"DRS is manual":                  {"drs", manual, plain, false, "", "vm-09: is not in vms and runs on esx-02"},
		"DRS cannot move a device":       {"drs", full, device, false, "", "it uses a device of its host"},
		"DRS cannot move a local disk":   {"drs", full, local, false, "", "it has a local disk"},
		"migrate what DRS moves":         {"migrate", full, plain, false, "is moved to another host by vCenter", ""},
		"migrate what DRS does not move": {"migrate", manual, plain, false, "moved to another host by vMotion", ""},
		"migrate no device":              {"migrate", manual, device, false, "", "it uses a device of its host"},
		"migrate no local disk":          {"migrate", manual, local, false, "", "it has a local disk"},
		"DRS cannot move a shared bus":   {"drs", full, sharing, false, "", "it shares a SCSI bus with other VMs (physicalSharing)"},
		"migrate no shared bus":          {"migrate", manual, sharing, false, "", "it shares a SCSI bus with other VMs (physicalSharing)"},
		"migrate to no missing network": {"migrate", manual, network, false, "",
			"can run it: esx-01 has no network Backup, esx-03 has no network Backup"},
		"migrate to no full host":     {"migrate", manual, large, false, "", "esx-01 has 524288 MB of free memory, 1048576 are needed"},
		"DRS balances memory":         {"drs", full, large, false, "is moved to another host by vCenter", ""},
		"a mandatory rule pins it":    {"migrate", ruled("manual", pinned), plain, false, "", "esx-01 is excluded by the DRS rule licence"},
		"a rule pins it, with DRS":    {"drs", ruled("fullyAutomated", pinned), plain, false, "", "excluded by the DRS rule licence"},
		"a rule that is a wish":       {"migrate", ruled("manual", wished), plain, false, "moved to another host by vMotion", ""},
		"its like are everywhere":     {"migrate", ruled("manual", apart), plain, false, "", "excluded by the DRS rule apart"},
		"its like are not together":   {"migrate", ruled("manual", near), plain, false, "", "excluded by the DRS rule near"},
		"refuse":                      {"refuse", full, plain, false, "", "run.bystanders is refuse"},
		"shut down":                   {"shutdown", manual, plain, true, "is shut down while its host reboots", ""},
		"shut down, but DRS moves it": {"shutdown", full, plain, false, "is moved to another host by vCenter", ""},
		"shut down with a local disk": {"shutdown", full, local, true, "it has a local disk", ""},
		"vCLS of ESX Agent Manager":   {"refuse", manual, func(v *backends.VM) { v.Name = "vCLS-4c4c4544" }, false, "is left to vCenter", ""},
		"an agent VM": {"drs", manual, func(v *backends.VM) { v.ManagedBy = "com.vmware.vim.eam" }, false,
			"ESX Agent Manager", ""},
		"a VM of another solution is one": {"drs", manual, func(v *backends.VM) { v.ManagedBy = "com.example.cloud" }, false, "",
			"is not in vms"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := withTools(newSRIOV(3))
			inv.Clusters = c.clusters
			for i := range inv.Hosts {
				inv.Hosts[i].Datastores = []string{"shared", fmt.Sprintf("local-%d", i+1)}
				inv.Hosts[i].Networks = []string{"VM Network"}
			}
			inv.Hosts[1].Networks = append(inv.Hosts[1].Networks, "Backup")
			v := newVM(9, "esx-02")
			v.Datastores = []string{"shared"}
			c.edit(&v)
			a := sriovAnswers(inv)
			inv.VMs = append(inv.VMs, v)
			a.Run.Bystanders = c.how
			p, err := recipe.Build(a, inv, plan.Options{})
			if c.refused != "" {
				if err == nil || !strings.Contains(refusedText(err), c.refused) {
					t.Errorf("want %q, got %v", c.refused, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(p.Notes, "\n"), c.note) {
				t.Errorf("notes %q", p.Notes)
			}
			if off := slices.ContainsFunc(p.Brackets, func(b plan.Bracket) bool { return b.ID() == "vm/"+v.Name+"/vm-power" }); off != c.off {
				t.Errorf("it is shut down: %t", off)
			}
		})
	}
}

func TestHostOfVCenterGoesLast(t *testing.T) {
	inv := withTools(newSRIOV(3))
	inv.Clusters = []backends.Cluster{{Name: "compute", DRS: true, DRSMode: "fullyAutomated"}}
	v := newVM(9, "esx-01")
	v.VCenterVM = true
	a := sriovAnswers(inv)
	inv.VMs = append(inv.VMs, v)
	p, err := recipe.Build(a, inv, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range p.Brackets {
		if b.ID() == "host/esx-01/host-reboot" &&
			(!slices.Contains(b.After, "host/esx-02/host-reboot") || !slices.Contains(b.After, "host/esx-03/host-reboot")) {
			t.Errorf("after %q", b.After)
		}
	}
}

func TestLockdownExceptionUser(t *testing.T) {
	inv := newSRIOV(1)
	inv.Hosts[0].Lockdown, inv.Hosts[0].System.Exceptions = "strict", backends.FactOf([]string{"svc-rdma"})
	a := sriovAnswers(inv)
	if _, err := recipe.Build(a, inv, plan.Options{}); err == nil ||
		!strings.Contains(refusedText(err), "is in lockdown mode (strict), root is not one of its exception users") {
		t.Errorf("%v", err)
	}
	inv.Hosts[0].System.Exceptions = backends.ReadFact([]string(nil), errors.New("no permission: Global.Settings"))
	if _, err := recipe.Build(a, inv, plan.Options{}); err == nil || strings.Contains(refusedText(err), "is not one of") ||
		!strings.Contains(refusedText(err), "could not be read") {
		t.Errorf("unread is not absent: %v", err)
	}
	inv.Hosts[0].System.Exceptions = backends.FactOf([]string{"svc-rdma"})
	a.ESXi.User = "svc-rdma"
	p := mustBuild(t, a, inv, plan.Options{})
	if !slices.ContainsFunc(p.Notes, func(n string) bool {
		return strings.Contains(n, "which is not changed: svc-rdma is one of its exception users")
	}) {
		t.Errorf("%q", p.Notes)
	}
}

// TestCanary checks that no other host goes down before the first one is back, has its VFs and runs its VMs again.
func TestCanary(t *testing.T) {
	for name, c := range map[string]struct {
		off     bool
		vcenter string // host
		dpu     string // host with a card that has a CPU
		first   string
	}{
		"first host":                {false, "", "", "esx-01"},
		"switched off":              {true, "", "", ""},
		"never the host of vCenter": {false, "esx-01", "", "esx-02"},
		"a BlueField goes first":    {true, "", "esx-03", "esx-03"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := withTools(newSRIOV(3))
			inv.Clusters = []backends.Cluster{{Name: "compute", DRS: true, DRSMode: "fullyAutomated"}}
			a := sriovAnswers(inv)
			a.Run.Reboot.Canary = !c.off
			if c.vcenter != "" {
				v := newVM(9, c.vcenter)
				v.VCenterVM = true
				inv.VMs = append(inv.VMs, v)
			}
			if h := inv.Host(c.dpu); h != nil {
				n := h.NIC("vmnic2")
				n.Vendor, n.PCIDeviceID = "15b3", "a2d6"
			}
			p := mustBuild(t, a, inv, plan.Options{})
			for _, b := range p.Brackets {
				if b.Kind != backends.BracketReboot || b.Target.Name == c.vcenter {
					continue
				}
				want := []string(nil)
				if c.first != "" && b.Target.Name != c.first {
					n := strings.TrimPrefix(c.first, "esx-")
					want = []string{"host/" + c.first + "/host-reboot", "host/" + c.first + "/active-vfs/0000:3b:00.0", "vm/vm-" + n + "/vm-power"}
				}
				for _, id := range want {
					if !slices.Contains(b.After, id) {
						t.Errorf("%s waits for %q, not for %s", b.ID(), b.After, id)
					}
				}
				if want == nil && slices.ContainsFunc(b.After, func(id string) bool { return strings.HasSuffix(id, "host-reboot") }) {
					t.Errorf("%s waits for %q", b.ID(), b.After)
				}
			}
			if said := slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "first and alone") }); said == (c.first == "") {
				t.Errorf("notes: %q", p.Notes)
			}
		})
	}
}

// TestCanaryAfterAnInterruption: the first host has rebooted and its VM is still off: no other host goes down before the VM runs.
func TestCanaryAfterAnInterruption(t *testing.T) {
	inv := withTools(newSRIOV(3))
	inv.Clusters = []backends.Cluster{{Name: "compute", DRS: true, DRSMode: "fullyAutomated"}}
	a := sriovAnswers(inv)
	inv.Hosts[0] = ready(clone(t, inv)).Hosts[0]
	inv.VMs[0].Power = "poweredOff"
	p := mustBuild(t, a, inv, plan.Options{Held: []string{"vm-01"}})
	seen := 0
	for _, b := range p.Brackets {
		if b.Kind != backends.BracketReboot {
			continue
		}
		seen++
		if !slices.Contains(b.After, "vm/vm-01/vm-power") {
			t.Errorf("%s waits for %q, not for the VM of the first host", b.ID(), b.After)
		}
	}
	if seen != 2 {
		t.Errorf("%d hosts reboot, want 2", seen)
	}
}

func TestWhatForbidsVFs(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*backends.Inventory, *answers.Answers)
		want string
	}{
		"no tools and none named": {func(inv *backends.Inventory, _ *answers.Answers) { inv.Hosts[0].System.Offers = nil },
			"mft and nmst is not installed"},
		"file that the host cannot read": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.Hosts[0].System.Offers = []backends.Component{{Path: "/vmfs/volumes/x/mft.vib", Error: "No such file"}}
		}, "No such file"},
		"acceptance level": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.Hosts[0].System.Acceptance = backends.FactOf("VMwareCertified")
		}, "accepts only VMwareCertified and above"},
		"lockdown mode": {func(inv *backends.Inventory, _ *answers.Answers) { inv.Hosts[0].Lockdown = "normal" }, "is in lockdown mode (normal)"},
		"Intel NIC": {func(inv *backends.Inventory, _ *answers.Answers) { inv.Hosts[0].NIC("vmnic2").Driver = "irdman" },
			"VFs are set up on ConnectX"},
		"esxcli does not answer": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.Hosts[0].System.Modules[connectX.Driver()] = backends.ReadFact(backends.Module{}, errors.New("timed out"))
		}, "timed out"},
		"the list of VIBs does not come": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.Hosts[0].System.VIBs = backends.ReadFact(map[string]backends.VIB(nil), errors.New("the image is locked"))
		}, "the image is locked"},
		"driver without PFC": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.Hosts[0].System.Modules[connectX.Driver()] = backends.FactOf(backends.Module{Known: []string{"max_vfs"}})
		}, "no parameter " + connectX.Driver() + " pfcrx"},
		"vSAN relies on pause (Mellanox DOC-2581)": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.Hosts[0].NIC("vmnic0").Roles = []string{"vsan"}
		}, "PFC would disable global pause"},
		"more VMs than VFs": {func(inv *backends.Inventory, a *answers.Answers) {
			a.SRIOV.VFs = 1
			v := newVM(9, "esx-01")
			v.Adapters = append(v.Adapters, backends.Adapter{Type: "sriov", PF: portCX5, PortGroup: "x"})
			inv.VMs = append(inv.VMs, v)
		}, "2 VFs are needed on vmnic2 (by vm-01; in use by VMs that the answers do not list: vm-09), 1 asked for"},
		"more VFs than interrupt vectors (vSphere Networking)": {func(inv *backends.Inventory, a *answers.Answers) {
			a.SRIOV.VFs = 127
			var list []string
			for i := range 12 {
				inv.Hosts[0].NICs = append(inv.Hosts[0].NICs,
					backends.NIC{Device: fmt.Sprintf("vmnic1%d", i), PCI: fmt.Sprintf("0000:%02x:00.0", 0x40+i), Driver: connectX.Driver()})
			}
			for range 16 {
				list = append(list, "100")
			}
			inv.Hosts[0].System.Modules[connectX.Driver()].Value.Params["max_vfs"] = strings.Join(list, ",")
		}, "interrupt vectors"},
		"list that is no list": {func(inv *backends.Inventory, _ *answers.Answers) {
			inv.Hosts[0].System.Modules[connectX.Driver()].Value.Params["max_vfs"] = "8,many"
		}, "max_vfs cannot be worked out"},
		"guest kernel without the driver": {func(inv *backends.Inventory, _ *answers.Answers) { inv.Guests[0].Available = []string{"ib_umad"} },
			"has no driver mlx5_ib"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newSRIOV(1)
			a := sriovAnswers(inv)
			c.edit(inv, a)
			_, err := recipe.Build(a, inv, plan.Options{})
			if err == nil || !strings.Contains(refusedText(err), c.want) {
				t.Errorf("want %q, got %s", c.want, refusedText(err))
			}
		})
	}
}

func refusedText(err error) string {
	if err == nil {
		return "no refusal"
	}
	var text []string
	if r, is := err.(*plan.Refused); is {
		for _, one := range r.Refusals {
			text = append(text, one.String())
		}
		return strings.Join(text, "; ")
	}
	return err.Error()
}
