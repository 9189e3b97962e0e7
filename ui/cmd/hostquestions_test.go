package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// said returns, for each row of a check in a mode, the first finding with the worst status.
func (b *bench) said(mode string) map[string]checks.Finding {
	b.t.Helper()
	_, out, errs := b.run("check", "-f", filepath.Join(b.lab.Dir(), "answers-"+mode+".yaml"), "-o", "json")
	var doc struct{ Results []checks.Finding }
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		b.t.Fatalf("%v: %s", err, errs)
	}
	rank := map[checks.Status]int{checks.Pass: 1, checks.Unknown: 2, checks.Warn: 3, checks.Fail: 4}
	worst := map[string]checks.Finding{}
	for _, f := range doc.Results {
		if rank[f.Status] > rank[worst[f.ID].Status] {
			worst[f.ID] = f
		}
	}
	return worst
}

func TestHostFactsInChecks(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "sriov-ready", Hosts: 2, VMs: 2})
	for i, host := range []string{"esx-01", "esx-02"} {
		b.change(world.Event{What: world.HostHardware, Host: host}, func(s *world.State) {
			s.Hosts[i].PCI = append(s.Hosts[i].PCI, &world.PCIDevice{Address: "0000:00:14.0", Class: 0x0c03, Vendor: 0x8086, Device: 0xa1af,
				PassthruCapable: true, PassthruEnabled: true})
		})
	}
	type row struct {
		status   checks.Status
		evidence string
	}
	for mode, rows := range map[string]map[string]row{
		"sriov": {
			"SW-LLDP-011":        {checks.Pass, "is on leaf-01 port Eth1/"},
			"HOST-PNIC-ERR-016":  {checks.Pass, "no errors and no drops between two readings"},
			"HOST-PNIC-DCB-015":  {checks.Pass, "vmnic2: DCB supported true, PFC on priorities: 3, wanted 3"},
			"HOST-ACCEPT-014":    {checks.Pass, "the host accepts PartnerSupported"},
			"HOST-VF-FREE-011":   {checks.Pass, "0 of 8 VFs in use, 1 more VMs need one"},
			"HOST-UPTIME-018":    {checks.Pass, "no run of this program changed its parameters"},
			"CL-DRS-011":         {checks.Warn, "DRS of Cluster-01 for this VM: fullyAutomated"},
			"CL-HA-012":          {checks.Pass, "HA of Cluster-01 is off"},
			"CL-VSAN-015":        {checks.Pass, "no vmknic carries vSAN"},
			"HOST-PNIC-NUMA-011": {checks.Pass, "is on node 0, and no VM here is pinned to another"},
		},
		"gpudirect": {
			"HOST-GPU-GFX-018":  {checks.Pass, "default graphics type shared"},
			"VM-CPURES-012":     {checks.Pass, ""},
			"HOST-USBBOOT-017":  {checks.Pass, "the USB controller 0000:00:14.0 is passed through, ESXi boots from disk"},
			"HOST-PNIC-ERR-016": {}, // not applicable: a card in passthrough mode is not a pNIC of the host
		},
	} {
		said := b.said(mode)
		for id, want := range rows {
			if f := said[id]; f.Status != want.status || !strings.Contains(f.Evidence, want.evidence) {
				t.Errorf("%s %s: %s %q, want %s %q", mode, id, f.Status, f.Evidence, want.status, want.evidence)
			}
		}
	}
}

// The firmware is read over SSH if SSH is running and the operator allows it; a check does not start SSH.
func TestFirmwareIsReadOnlyIfSSHRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "sriov-ready", Hosts: 2, VMs: 2})
	testclass.OK(t, b.lab.World().SetService("esx-01", "TSM-SSH", true))
	rows := func(flags ...string) map[string]checks.Finding {
		t.Helper()
		_, out, errs := b.run(append([]string{"check", "-f", filepath.Join(b.lab.Dir(), "answers-sriov.yaml"), "-o", "json", "--only",
			"HOST-SRIOVEN-009,HOST-PNIC-PSID-008,HOST-NUMVFS-008,HOST-PNIC-PCIE-010,HOST-SECBOOT-013,HOST-INTR-015"}, flags...)...)
		var doc struct{ Results []checks.Finding }
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("%v: %s", err, errs)
		}
		found := map[string]checks.Finding{}
		for _, f := range doc.Results {
			found[f.ID+" "+f.Target.Name] = f
		}
		return found
	}
	for row, f := range rows() {
		if f.Status != checks.Unknown || !f.Quiet {
			t.Errorf("nobody allowed it, and %s says %s: %s", row, f.Status, f.Evidence)
		}
	}
	b.lab.World().View(func(s *world.State) {
		s.Hosts[0].KernelLog = []string{s.Hosts[0].BootTime.Add(-time.Hour).UTC().Format("2006-01-02T15:04:05.000Z") +
			" cpu3:2097)Out of interrupt vectors: of the boot before"}
	})
	found := rows("--esxi-shell")
	for row, want := range map[string]string{"HOST-SRIOVEN-009 esx-01": "SRIOV_EN is on now", "HOST-PNIC-PSID-008 esx-01": "PSID MT_",
		"HOST-NUMVFS-008 esx-01":    "NUM_OF_VFS is",
		"HOST-PNIC-PCIE-010 esx-01": "PCIe Gen3 x16 carries 126 Gbps, the port runs at 100", "HOST-SECBOOT-013 esx-01": "secure boot is off",
		"HOST-INTR-015 esx-01": "vmkernel.log"} {
		if f := found[row]; f.Status != checks.Pass || !strings.Contains(f.Evidence, want) {
			t.Errorf("%s: %s %q", row, f.Status, f.Evidence)
		}
	}
	if f := found["HOST-SRIOVEN-009 esx-02"]; f.Status != checks.Unknown || f.Quiet ||
		!strings.Contains(f.Evidence, "check does not start it") {
		t.Errorf("a closed shell: %+v", f)
	}
	running := false
	b.lab.World().View(func(s *world.State) { running = s.Hosts[1].Service("TSM-SSH").Running })
	if running {
		t.Error("the check started SSH")
	}
}

// A module parameter that a run set after the last boot is not effective yet; only the journal records that.
func TestParametersPendingAReboot(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "sriov-ready", Hosts: 2, VMs: 2})
	_, out, _ := b.run("discover", "-o", "json")
	if !strings.Contains(out, "esx-02") {
		t.Fatal(out)
	}
	state := filepath.Join(b.env["XDG_STATE_HOME"], "rdma-setup")
	keep := func(vcenter string, at time.Time) {
		t.Helper()
		j, err := journal.Create(state, journal.Header{VCenter: vcenter, Mode: "sriov", Made: at}, []byte("{}"),
			journal.WithClock(func() time.Time { return at }))
		testclass.OK(t, err)
		s := backends.Setting{Target: backends.HostRef("esx-02"), Kind: backends.KindModuleParams, Name: connectX.Driver()}
		rec := journal.Record{Phase: journal.PhaseApply, Node: s.ID(), Target: s.Target, Kind: string(s.Kind), Name: s.Name}
		for _, kind := range []journal.Type{journal.TypeBegin, journal.TypeIntent, journal.TypeOutcome} {
			rec.Type, rec.OK = kind, true
			testclass.OK(t, j.Append(rec))
		}
		testclass.OK(t, j.Close())
	}
	keep("another-vcenter", time.Now())
	if f := b.said("sriov")["HOST-UPTIME-018"]; f.Status != checks.Pass {
		t.Errorf("a run elsewhere: %+v", f)
	}
	uuid := b.uuid()
	keep(uuid, time.Now().Add(-1000*time.Hour))
	if f := b.said("sriov")["HOST-UPTIME-018"]; f.Status != checks.Pass || f.Target.Name != "esx-01" {
		t.Errorf("booted since: %+v", f)
	}
	keep(uuid, time.Now())
	if f := b.said("sriov")["HOST-UPTIME-018"]; f.Status != checks.Fail || f.Target.Name != "esx-02" {
		t.Errorf("not booted since: %+v", f)
	}
}

// uuid returns the instance UUID of the lab's vCenter, in the form that a baseline contains.
func (b *bench) uuid() string {
	b.t.Helper()
	if code, _, errs := b.run("check", "--quick", "--save-baseline", "--force"); code == 3 {
		b.t.Fatal(errs)
	}
	files, err := filepath.Glob(filepath.Join(b.env["XDG_STATE_HOME"], "rdma-setup", "baselines", "*.json"))
	if err != nil || len(files) != 1 {
		b.t.Fatal(files, err)
	}
	return strings.TrimSuffix(filepath.Base(files[0]), ".json")
}
