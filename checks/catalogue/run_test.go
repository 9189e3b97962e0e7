package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func run(f *checks.Facts, sel checks.Selection) []checks.Finding {
	sel.Uses = f.Answers.Uses()
	return catalogue.Run(context.Background(), f, sel)
}

// belongs reports whether a row is about something that a site uses.
func belongs(id string, uses ...answers.Mode) bool {
	within := func(modes []answers.Mode) bool {
		return slices.ContainsFunc(modes, func(m answers.Mode) bool { return slices.Contains(uses, m) })
	}
	return slices.ContainsFunc(catalogue.Checks(), func(c checks.Check) bool {
		return c.ID == id && (len(c.Modes) == 0 || within(c.Modes)) && !within(c.Except)
	})
}

func ids(found []checks.Finding) []string {
	var out []string
	for _, r := range found {
		if !slices.Contains(out, r.ID) {
			out = append(out, r.ID)
		}
	}
	return out
}

func TestEveryRowOfTheModeAnswers(t *testing.T) {
	for _, mode := range modes() {
		f := healthy(mode)
		told := run(f, checks.Selection{})
		if got := ids(told); len(got) != len(catalogue.Checks()) {
			t.Errorf("%s: %d of %d rows answer", mode, len(got), len(catalogue.Checks()))
		}
		for _, r := range told {
			if r.Status != checks.NotApplicable && !belongs(r.ID, f.Answers.Uses()...) {
				t.Errorf("%s: %s is %s", mode, r.ID, r.Status)
			}
		}
	}
}

// What a site uses decides which rows apply, not the word in mode: GPUs beside PVRDMA adapters or VFs have the rows of both, but
// PVRDMA has none of those for a card in the guest.
func TestRowsFollowWhatIsUsed(t *testing.T) {
	for name, c := range map[string]struct {
		mode answers.Mode
		nic  string
		gpus map[string]answers.VMGPUs
		has  []string
		not  []string
	}{
		"PVRDMA": {mode: answers.PVRDMA, has: []string{"HOST-VMKNIC-SET-001"},
			not: []string{"GST-VGPULIC-038", "VM-SNAP-005"}},
		"PVRDMA and GPUs": {mode: answers.PVRDMA, nic: answers.NICPVRDMA, has: []string{"HOST-VMKNIC-SET-001", "GST-VGPULIC-038",
			"GST-NVSMI-027", "HOST-VGPUMGR-019", "VM-SNAP-005"}, not: []string{"GST-PEERMEM-028", "GST-MOD-S-008", "PAIR-GDR-012"}},
		"PVRDMA, and GPUs by VM": {mode: answers.PVRDMA, gpus: map[string]answers.VMGPUs{"vm-01": {}},
			has: []string{"HOST-VMKNIC-SET-001", "GST-VGPULIC-038"}},
		"VFs and GPUs": {mode: answers.GPUDirect, nic: "sriov", has: []string{"GST-VGPULIC-038", "HOST-VF-COUNT-010",
			"DVS-EXIST-001", "GST-PEERMEM-028"}, not: []string{"HOST-VMKNIC-SET-001"}},
		"cards and GPUs, without a DVS": {mode: answers.GPUDirect, nic: "passthrough", has: []string{"GST-PEERMEM-028"},
			not: []string{"HOST-VF-COUNT-010", "DVS-EXIST-001"}},
	} {
		f := healthy(c.mode)
		a := *f.Answers
		a.GPUDirect.NIC, f.Answers = c.nic, &a
		if c.gpus != nil {
			a.GPUDirect.GPUs = c.gpus
		}
		found, _ := checks.Applied(run(f, checks.Selection{}))
		told := ids(found)
		for _, id := range c.has {
			if !slices.Contains(told, id) && !belongs(id, f.Answers.Uses()...) { // it may have no target here
				t.Errorf("%s: %s is not asked", name, id)
			}
		}
		for _, id := range c.not {
			if slices.Contains(told, id) {
				t.Errorf("%s: %s is asked", name, id)
			}
		}
	}
}

func TestSelection(t *testing.T) {
	byID := map[string]checks.Check{}
	for _, c := range catalogue.Checks() {
		byID[c.ID] = c
	}
	for _, r := range run(healthy(s), checks.Selection{Quick: true}) {
		if c := byID[r.ID]; r.Status != checks.NotApplicable && (!c.Quick || c.HostCall) {
			t.Errorf("the quick check asks %s", r.ID)
		}
	}
	for _, id := range []string{"HOST-PFC-001", "HOST-VF-FREE-011", "HOST-PNIC-PAUSE-014", "HOST-PNIC-ERR-016", "SW-LLDP-011",
		"CL-PARAM-009"} {
		if c := byID[id]; !c.HostCall {
			t.Errorf("%s takes a call per host", id)
		}
	}
	if got := ids(run(healthy(p), checks.Selection{Only: []string{"VM-FIRMWARE-022", "GST-OS-001"}, Quick: true})); !slices.Equal(got,
		[]string{"VM-FIRMWARE-022", "GST-OS-001"}) {
		t.Errorf("only these were asked for, whatever the mode: %v", got)
	}
	if got := ids(run(healthy(p), checks.Selection{Skip: []string{"VC-CONN-001"}})); slices.Contains(got, "VC-CONN-001") || len(got) < 100 {
		t.Errorf("skipped: %v", got)
	}
	for _, r := range run(healthy(g), checks.Selection{Preflight: true}) {
		if r.Status != checks.NotApplicable && !byID[r.ID].Preflight {
			t.Errorf("%s is no preflight", r.ID)
		}
	}
}

func TestWhatWasNotReadIsUnknownNeverPass(t *testing.T) {
	for _, mode := range modes() {
		f := healthy(mode)
		f.Pairs, f.Baseline, f.Changed, f.Inventory.Clusters = nil, nil, nil, nil
		for i := range f.Inventory.Hosts {
			f.Inventory.Hosts[i].System = nil
		}
		for i := range f.Inventory.Guests {
			g := &f.Inventory.Guests[i]
			g.PCI, g.KernelLog, g.Headers, g.SecureBoot, g.HugePages, g.Firewall, g.NVIDIA, g.Containers, g.Forwarding = nil, nil, nil, nil, nil,
				nil, nil, nil, nil
			g.Available, g.Loaded = nil, nil
		}
		found := run(f, checks.Selection{})
		for _, r := range found {
			unread := strings.HasPrefix(r.ID, "PAIR-") && r.ID != "PAIR-HOSTS-005" ||
				slices.Contains([]string{"CL-PARAM-009", "CL-DRS-011", "CL-EVC-014", "HOST-PFC-001", "HOST-NUMVFS-008",
					"HOST-ACCEPT-014", "HOST-INTR-015", "HOST-UPTIME-018", "GST-OS-001", "GST-LSPCI-003", "GST-DMESG-051", "GST-NVSMI-027", "GST-KHDR-034",
					"GST-FWD-032", "SW-LLDP-011", "SW-MTU-013"}, r.ID)
			if unread && r.Status != checks.Unknown && r.Status != checks.NotApplicable {
				t.Errorf("%s: %s is %s: %s", mode, r.ID, r.Status, r.Evidence)
			}
			if r.Status == checks.Unknown && !r.Quiet {
				t.Errorf("%s: %s raises a warning, though nobody tried to read it: %s", mode, r.ID, r.Evidence)
			}
		}
	}
}

func TestUnreadFactsNeedAttention(t *testing.T) {
	f := healthy(p)
	sys, why := theHost(f).System, errors.New("the host did not answer")
	sys.Modules[connectX.Driver()] = backends.ReadFact(backends.Module{}, why)
	sys.DCB["vmnic4"] = backends.ReadFact(backends.DCB{}, why)
	f.Inventory.Guests[2] = backends.Guest{VM: "node-2", Error: "connection refused"}
	for _, id := range []string{"HOST-PFC-001", "HOST-PNIC-DCB-015", "GST-OS-001", "GST-PORT-010", "GST-GID-019", "GST-MEMLOCK-020"} {
		loud := 0
		for _, r := range run(f, checks.Selection{Only: []string{id}}) {
			if r.Status == checks.Unknown && !r.Quiet {
				loud++
			}
		}
		if loud != 1 {
			t.Errorf("%s: %d targets worry, want the one that did not answer", id, loud)
		}
	}
}

// A fact that was not read is neither absent nor its zero value: the row is unknown, and the site is not called untouched.
func TestUnreadIsNotAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		id     string
		mode   answers.Mode
		unread func(h *backends.Host)
	}{
		"services":     {"HOST-SSH-011", s, func(h *backends.Host) { h.Services = nil }},
		"NTP servers":  {"HOST-NTP-004", p, func(h *backends.Host) { h.NTP, h.Services = nil, nil }},
		"power policy": {"HOST-POWER-009", s, func(h *backends.Host) { h.PowerPolicy = "" }},
		"lockdown":     {"HOST-LOCKDOWN-012", s, func(h *backends.Host) { h.Lockdown = "" }},
		"ruleset":      {"HOST-FW-PVRDMA-007", p, func(h *backends.Host) { h.Firewall = nil }},
		"option":       {"HOST-VMKNIC-SET-001", p, func(h *backends.Host) { h.Options = nil }},
		"VIBs beside secure boot": {"HOST-SECBOOT-013", s, func(h *backends.Host) {
			h.System.SecureBoot, h.System.VIBs = ptr(true), backends.ReadFact(map[string]backends.VIB(nil), errors.New("no answer"))
		}},
		"VIBs beside the acceptance level": {"HOST-ACCEPT-014", s, func(h *backends.Host) {
			h.System.VIBs = backends.ReadFact(map[string]backends.VIB(nil), errors.New("no answer"))
		}},
		"graphics type": {"HOST-GPU-GFX-018", g, func(h *backends.Host) { h.GraphicsType = "" }},
	} {
		f := healthy(c.mode)
		c.unread(theHost(f))
		for _, r := range run(f, checks.Selection{Only: []string{c.id}}) {
			if r.Target.Name == theHost(f).Name && r.Status != checks.Unknown {
				t.Errorf("%s: %s is %s: %s", name, c.id, r.Status, r.Evidence)
			}
		}
	}
	bare := &backends.Inventory{
		Hosts: []backends.Host{{Name: "esx-01", State: "connected", Firewall: map[string]backends.Ruleset{"sshServer": {}}}}}
	if a := answers.Default(p); !checks.Untouched(a, bare) {
		t.Error("a bare host is not untouched")
	} else if bare.Hosts[0].Firewall = nil; checks.Untouched(a, bare) {
		t.Error("a host whose rulesets were not read is untouched")
	}
}

func TestPanicInOneRowDoesNotStopTheOthers(t *testing.T) {
	f := healthy(p)
	f.Answers = nil // the rows that compare with the requested values must not fail without answers
	found := catalogue.Run(context.Background(), f, checks.Selection{})
	if len(found) < len(catalogue.Checks()) {
		t.Fatalf("%d findings for %d rows", len(found), len(catalogue.Checks()))
	}
	passed, broken := 0, 0
	for _, r := range found {
		switch {
		case r.Status == checks.Pass:
			passed++
		case r.Status == checks.Unknown && strings.Contains(r.Evidence, "the check itself failed") && !r.Quiet:
			broken++
		default:
			t.Errorf("%s is %s: %s", r.ID, r.Status, r.Evidence)
		}
	}
	if passed == 0 || broken == 0 {
		t.Errorf("%d passed, %d broken", passed, broken)
	}
}

func TestStoppedRunIsReported(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, r := range catalogue.Run(ctx, healthy(p), checks.Selection{Uses: []answers.Mode{p}}) {
		if r.Status != checks.NotApplicable && r.Status != checks.Unknown || r.Quiet {
			t.Fatalf("%s is %s after a stop", r.ID, r.Status)
		}
	}
}

func TestEmptyInventoryBreaksNoRow(t *testing.T) {
	for _, mode := range modes() {
		f := &checks.Facts{Answers: answers.Default(mode), Inventory: &backends.Inventory{}}
		f.Answers.VMs = []answers.VM{{Name: "ghost"}}
		for _, r := range run(f, checks.Selection{}) {
			if r.Status == checks.NotApplicable {
				continue
			}
			if strings.Contains(r.Evidence, "broke") || r.Evidence == "" || r.Target.Type == "" {
				t.Errorf("%s: %s at %s: %q", mode, r.ID, r.Target, r.Evidence)
			}
		}
	}
}

// A check that was not requested is listed, and does not count as a failure.
func TestLossyFabricPassesWhateverTheParameters(t *testing.T) {
	f := healthy(p)
	f.Answers.QoS.Lossless, f.Answers.Confirmed.SwitchPFC = answers.LosslessNone, false
	for i := range f.Inventory.Hosts {
		h := f.Inventory.Hosts[i].System
		h.Modules[connectX.Driver()] = backends.FactOf(backends.Module{Params: map[string]string{"pfctx": "0x10", "trust_state": "0",
			"ecn": "0"}})
		h.Modules[connectX.RDMA()] = backends.FactOf(backends.Module{})
		h.Pause.Value["vmnic4"], h.DCB["vmnic4"] = backends.PauseSpec{Rx: true}, backends.FactOf(backends.DCB{})
	}
	for id, status := range amiss(f, true) {
		t.Errorf("%s is %s: %s", id, status, evidence(f, id))
	}
}

// Before a run, guests of VMs that are off are surveyed later.
func TestGuestsOfVMsThatAreOff(t *testing.T) {
	for _, before := range []bool{true, false} {
		f := healthy(p)
		f.Before, f.Inventory.VMs[2].Power, f.Inventory.Guests = before, "poweredOff", f.Inventory.Guests[:2]
		for _, r := range run(f, checks.Selection{Only: []string{"GST-OS-001"}}) {
			if r.Target.Name == "node-2" && (r.Status != checks.Unknown || r.Quiet != before) {
				t.Errorf("before %t: %s, quiet %t", before, r.Status, r.Quiet)
			}
		}
	}
}

// A guest whose distribution builds no kernel with the driver is told what it can use, not which package to install.
func TestDriverThatNoKernelHas(t *testing.T) {
	f := healthy(p)
	g := &f.Inventory.Guests[0]
	g.OS, g.Version, g.Like, g.Available, g.Loaded = "debian", "12", nil, []string{"mlx5_core"}, nil
	r := run(f, checks.Selection{Only: []string{"GST-OS-001"}})[0]
	if r.Status != checks.Fail || !strings.HasPrefix(r.Remedy, "No kernel package of Debian 11 to 13 has it: ") ||
		!strings.HasSuffix(r.Remedy, "or mode sriov.") {
		t.Errorf("%s: %s", r.Status, r.Remedy)
	}
}

// A check without answers surveys no guest, which does not raise the status.
func TestGuestsThatNobodyAsked(t *testing.T) {
	f := healthy(p)
	f.Inventory.Guests, f.Inventory.VMs[2].Power = nil, "poweredOff"
	for _, r := range run(f, checks.Selection{}) {
		if strings.HasPrefix(r.ID, "GST-") && r.Status != checks.NotApplicable && (r.Status != checks.Unknown || !r.Quiet) {
			t.Errorf("%s at %s: %s, quiet %t", r.ID, r.Target, r.Status, r.Quiet)
		}
	}
	f = healthy(p)
	f.Inventory.Guests[1].Error = "no route to host"
	if r := run(f, checks.Selection{Only: []string{"GST-OS-001"}})[1]; r.Status != checks.Unknown || r.Quiet {
		t.Errorf("a guest that failed: %s, quiet %t", r.Status, r.Quiet)
	}
}

func BenchmarkThousandVMs(b *testing.B) {
	f := healthy(p)
	for i := range 497 {
		h := host(fmt.Sprintf("x-%d", i), i%200, p)
		f.Inventory.Hosts = append(f.Inventory.Hosts, h)
		f.Inventory.Switches[0].Members[h.Name] = backends.Member{PNICs: []string{"vmnic4"}}
		f.Answers.Hosts.Names = append(f.Answers.Hosts.Names, h.Name)
		for j := range 2 {
			name := fmt.Sprintf("v-%d-%d", i, j)
			f.Inventory.VMs = append(f.Inventory.VMs, machine(name, h.Name, i%200, p, f.Answers))
			f.Inventory.Guests = append(f.Inventory.Guests, system(name, i%200, p))
			f.Answers.VMs = append(f.Answers.VMs, answers.VM{Name: name, IP: f.Answers.VMs[0].IP})
		}
	}
	for b.Loop() {
		run(f, checks.Selection{})
	}
}

// VF lists with the same meaning differ on a host with one card less: no finding requests to make them equal.
func TestVFsOfHostsWithOtherPorts(t *testing.T) {
	for list, want := range map[string]checks.Status{"8": checks.Pass, "4": checks.Warn} {
		f := healthy(s)
		h := theHost(f)
		h.NICs[0].Driver = "bnxtnet"
		parameter(connectX.Driver(), "max_vfs", list)(f)
		for _, r := range run(f, checks.Selection{Only: []string{"CL-PARAM-009"}}) {
			if r.Target.Name == h.Name && r.Status != want || r.Target.Name != h.Name && r.Status != checks.Pass {
				t.Errorf("max_vfs %s: %s is %s: %s", list, r.Target.Name, r.Status, r.Evidence)
			}
		}
	}
}
