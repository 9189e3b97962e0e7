package cmd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/ui/cmd/torture/witness"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
	given "github.com/rdma-setup/rdma-setup/wizard/answers"
)

// assumed matches the keys of an outside client's dump that a twin assumes or generates.
var assumed = regexp.MustCompile(`^(vm .* device .* fileName|vm .* extraConfig nvram value` + // files on the datastore
	`|vm .* snapshot .*` +
	`|portgroup .* config (autoExpand|defaultPortConfig uplinkTeamingPolicy policy value)` +
	`|host .* label|host .* device .* (systemId|subDeviceId|subVendorId)|host .* vib .*)$`)

// bundle runs collect on the site of a bench.
func (b *bench) bundle(answersFile string) (*bundle.Bundle, *twin.Twin) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "site.tgz")
	args := []string{"collect", "--out", file}
	if answersFile != "" {
		args = append(args, "-f", answersFile)
	}
	if code, _, errs := b.run(args...); code != 0 {
		b.t.Fatalf("collect: %d\n%s", code, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	read, err := bundle.Read(bytes.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	tw, err := twin.Of(read)
	if err != nil {
		b.t.Fatal(err)
	}
	return read, tw
}

// twinOf runs collect on the site of a bench and serves its twin, with answers for it.
func twinOf(t *testing.T, site *bench, answersFile string) (*bench, *twin.Twin, string) {
	t.Helper()
	_, tw := site.bundle(answersFile)
	return serveTwin(t, tw, nil)
}

// serveTwin serves a twin, with answers for it: those of its bundle if a is nil.
func serveTwin(t *testing.T, tw *twin.Twin, a *given.Answers) (*bench, *twin.Twin, string) {
	t.Helper()
	served := newBench(t, lab.Options{Found: tw.Found, BootTime: 50 * time.Millisecond, RebootTime: 100 * time.Millisecond})
	var out bytes.Buffer
	if has, err := tw.Answers(&out, served.lab, a); err != nil || !has {
		t.Fatalf("answers: %t, %v", has, err)
	}
	path := filepath.Join(served.lab.Dir(), "answers.yaml")
	testclass.OK(t, os.WriteFile(path, out.Bytes(), 0o600))
	return served, tw, path
}

// planHash returns the hash of a plan, or the text of a refusal by the inventory.
func (b *bench) planHash(answersFile string) string {
	b.t.Helper()
	code, out, errs := b.run("plan", "-f", answersFile, "-o", "json")
	if code != 0 {
		return errs
	}
	var doc struct{ Hash string }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.Hash == "" {
		b.t.Fatalf("plan: %v\n%s", err, out)
	}
	return doc.Hash
}

// outside returns what a client that shares no code with the program sees of the vCenter.
func (b *bench) outside() witness.Dump {
	b.t.Helper()
	d, err := witness.Inspect(b.t.Context(), witness.Site{URL: b.lab.URL().String(), User: b.env["GOVC_USERNAME"],
		Password: b.env["GOVC_PASSWORD"], CACerts: b.env["GOVC_TLS_CA_CERTS"]})
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

// The twin of a site has the same plan as the site, and an outside client sees no difference between them.
func TestTwinIsTheSite(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for _, row := range []struct {
		scenario, mode string
		hosts, vms     int
	}{
		{"healthy", "pvrdma", 2, 4}, {"drifted", "pvrdma", 2, 3}, {"esx-6.7", "pvrdma", 1, 1}, {"bare", "sriov", 2, 2},
		{"sriov-image", "sriov", 2, 2}, {"sriov-mixed", "sriov", 3, 3}, {"sriov-api", "sriov", 1, 1},
		{"sriov-added", "sriov", 1, 1}, {"gpudirect-done", "gpudirect", 2, 2}, {"gpu-other-vm", "gpudirect", 2, 2},
	} {
		t.Run(row.scenario, func(t *testing.T) {
			t.Parallel()
			site := newBench(t, lab.Options{Scenario: row.scenario, Hosts: row.hosts, VMs: row.vms})
			answers := filepath.Join(site.lab.Dir(), "answers-"+row.mode+".yaml")
			served, tw, again := twinOf(t, site, answers)
			if want, got := site.planHash(answers), served.planHash(again); got != want {
				t.Errorf("plan %s on the site, %s on the twin", want, got)
			}
			if diff := witness.Diff(site.outside(), served.outside(), assumed.MatchString); len(diff) > 0 {
				t.Errorf("%d differences:\n%s", len(diff), strings.Join(diff[:min(len(diff), 15)], "\n"))
			}
			if len(tw.Assumed) == 0 {
				t.Error("it says that it assumes nothing")
			}
			if row.scenario != "healthy" {
				return
			}
			start := served.outside() // the state that a rollback on the twin restores
			for _, args := range [][]string{{"apply", "-f", again, "--yes"}, {"rollback", "--yes"}} {
				if code, out, errs := served.run(args...); code != 0 {
					t.Fatalf("%v: %d\n%s\n%s", args, code, out, errs)
				}
			}
			if diff := witness.Diff(start, served.outside(), nil); len(diff) > 0 {
				t.Errorf("after the rollback on the twin:\n%s", strings.Join(diff, "\n"))
			}
		})
	}
}

// A site of two clusters: the answers name no cluster, so the hosts of both are set up. Each cluster keeps its settings and rules.
func TestTwinOfTwoClusters(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	twoClusters(t, "pvrdma", func(s *world.State) error {
		if err := scenario.Build(s, scenario.Spec{Hosts: 4, VMs: 8}); err != nil {
			return err
		}
		s.Services = world.Services{HA: true, Failover: 1, EVC: "intel-cascadelake"}
		s.Clusters = []world.Cluster{{Name: "GPU",
			Services: world.Services{DRS: "manual", Rules: []world.Rule{{Key: 1, Name: "apart", Apart: true, VMs: []string{"vm-03", "vm-04"}}}}}}
		s.Hosts[2].Cluster, s.Hosts[3].Cluster = 1, 1
		return nil
	})
}

// The same for clusters that are managed by images. The image of the second one has a component of those that the answers request.
func TestTwinOfTwoImages(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	var bases []string
	served, answers := twoClusters(t, "sriov", func(s *world.State) error {
		if err := scenario.Build(s, scenario.Spec{Scenario: "sriov-image", Hosts: 2, VMs: 2}); err != nil {
			return err
		}
		b := s.Lifecycle.Bundles[0]
		bases = []string{s.Services.Image.Base, "8.0.3-0.23.24280767"}
		for _, b := range s.Lifecycle.Bundles {
			s.Lifecycle.Depots = append(s.Lifecycle.Depots, b.Location)
		}
		s.Clusters = []world.Cluster{{Name: "GPU", Services: world.Services{Image: &world.Image{Base: bases[1], Commits: 1,
			Components: map[string]string{b.Name: b.Version}}}}}
		s.Hosts[1].Cluster = 1
		s.Hosts[1].VIBs = append(s.Hosts[1].VIBs, b.VIBs...)
		return nil
	})
	if code, out, errs := served.run("apply", "-f", answers, "--yes"); code != 0 {
		t.Fatalf("apply on the twin: %d\n%s\n%s", code, out, errs)
	}
	served.lab.World().View(func(s *world.State) {
		for n := range 2 {
			m := s.ClusterServices(n).Image
			if m == nil || len(m.Components) != 2 || m.Base != bases[n] || !s.Compliant(s.Hosts[n]) {
				t.Errorf("image of cluster %d: %+v", n, m)
			}
		}
	})
}

// twoClusters compares a site with its twin, with answers that name no cluster, rehearses them, and returns the twin with answers.
func twoClusters(t *testing.T, mode string, found func(*world.State) error) (*bench, string) {
	t.Helper()
	site := newBench(t, lab.Options{Found: found})
	text := testclass.Read(t, filepath.Join(site.lab.Dir(), "answers-"+mode+".yaml"))
	answers := filepath.Join(t.TempDir(), "answers.yaml")
	testclass.OK(t, os.WriteFile(answers, bytes.Replace(text, []byte(`cluster: "Cluster-01"`), []byte(`cluster: ""`), 1), 0o600))
	served, tw, again := twinOf(t, site, answers)
	if want, got := site.planHash(answers), served.planHash(again); got != want || len(want) != 64 {
		t.Errorf("plan %s on the site, %s on the twin", want, got)
	}
	if diff := witness.Diff(site.outside(), served.outside(), assumed.MatchString); len(diff) > 0 {
		t.Errorf("%d differences:\n%s\nassumed:\n%s", len(diff), strings.Join(diff[:min(len(diff), 30)], "\n"), strings.Join(tw.Assumed, "\n"))
	}
	if code, out, errs := site.run("rehearse", "-f", answers, "-o", "json"); code != 0 || !strings.Contains(out, `"restored": true`) ||
		!strings.Contains(out, `"rollback": "done"`) {
		t.Errorf("rehearsal: %d\n%s\n%s", code, out, errs)
	}
	return served, again
}

// odd is a site of 12 hosts and 60 VMs that was set up once and has changed in many ways since.
func odd(s *world.State) error {
	if err := scenario.Build(s, scenario.Spec{Scenario: "drifted", Hosts: 12, VMs: 60}); err != nil {
		return err
	}
	var intel world.State
	if err := scenario.Build(&intel, scenario.Spec{Scenario: "e810", Hosts: 12, VMs: 12}); err != nil {
		return err
	}
	for i := 8; i < 12; i++ { // another family of cards
		h, from := s.Hosts[i], intel.Hosts[i]
		h.PNICs, h.PCI, h.Cards, h.Modules, h.VIBs = from.PNICs, from.PCI, from.Cards, from.Modules, from.VIBs
	}
	s.Hosts[5].Maintenance = true
	for _, v := range s.VMs {
		if v.Host == s.Hosts[5].Name {
			v.On, v.Guest.Up = false, false
			v.Adapters[0].Connected = false
			s.Strangers = append(s.Strangers, v.Name)
		}
	}
	s.Strangers = append(s.Strangers, "vm-26", "vm-28")
	s.Hosts[7].PowerPolicy, s.Hosts[7].NTP = "low", nil
	s.Hosts[7].Service("TSM-SSH").Running = true
	s.Hosts[7].VMKs = append(s.Hosts[7].VMKs, &world.VMK{Device: "vmk1", MAC: "00:50:56:61:00:07", IP: "10.12.0.7", Prefix: 24, MTU: 9000,
		VSwitch: "vSwitch0", PortGroup: "Management Network", NetStack: "defaultTcpipStack", Roles: []string{"vmotion"}})
	s.Switches = append(s.Switches, &world.DVS{Name: "Storage-DVS", UUID: world.SwitchUUID("Storage-DVS"), Version: "7.0.0", MTU: 1500,
		NIOC: true, Uplinks: []string{"up-a", "up-b"},
		Discovery: "cdp both", PortGroups: []*world.PortGroup{{Name: "NFS", VLAN: 120, Ports: 16, Binding: "ephemeral", Active: []string{"up-b"},
			Standby: []string{"up-a"}}}})
	netFolder := &world.Folder{ID: "group-n91", Name: "Team A"}
	s.NetFolders = append(s.NetFolders, netFolder)
	s.Switches = append(s.Switches, &world.DVS{Name: "RDMA-DVS of Team A", Title: "RDMA-DVS", Folder: netFolder.ID,
		UUID: world.SwitchUUID("A"), Version: "7.0.0", MTU: 1500,
		Uplinks: []string{"Uplink 1"}, Discovery: "none",
		PortGroups: []*world.PortGroup{{Name: "RDMA-PG", VLAN: 7, Ports: 8, Binding: "earlyBinding", Active: []string{"Uplink 1"}}}})
	s.VMs[30].Adapters[0].DVS, s.VMs[30].Adapters[0].PortGroup = "RDMA-DVS of Team A", "RDMA-PG"
	s.Services = world.Services{DRS: "partiallyAutomated", HA: true, Failover: 1, EVC: "intel-cascadelake", Rules: []world.Rule{
		{Key: 1, Name: "apart", Apart: true, VMs: []string{"vm-01", "vm-06"}}, {Key: 2, Name: "licence", Must: true, VMs: []string{"vm-03"},
			Hosts: []string{"esx-03", "esx-04"}}}}
	folder := &world.Folder{ID: "group-v90", Name: "Team A"}
	s.Folders = append(s.Folders, folder)
	s.VMs[20].Folder, s.VMs[20].Path = folder.ID, "/DC/vm/Team A/"+s.VMs[20].Name
	s.VMs[21].VApp, s.VMs[21].Path = "app-01", "/DC/vm/app-01/"+s.VMs[21].Name
	s.VMs[22].Sharing = "physicalSharing"
	s.VMs[22].RawDisks = []world.RawDisk{{LUN: "020005010060002ac0000000000000000200023d7a565620202020", KB: 64 << 20}} // LUN 261
	s.VMs[28].RawDisks = []world.RawDisk{{LUN: "020003000060002ac0000000000000000300023d7a565620202020", Virtual: true,
		DiskMode: "independent_persistent", KB: 8 << 20}}
	s.VMs[23].Local = true
	s.VMs[24].Snap("before the patch", "")
	for _, v := range []*world.VM{s.VMs[25], s.VMs[27]} {
		v.On, v.Guest.Up, v.Adapters[0].Connected = false, false, false
	}
	s.VMs[25].Template = true
	s.VMs[26].Latency, s.VMs[26].CPUMHz, s.VMs[26].Nested, s.VMs[26].Extra = "high", 4800, true, map[string]string{"numa.nodeAffinity": "1"}
	s.VMs[27].Hardware, s.VMs[27].Firmware = 13, "bios"
	return nil
}

// The same for a site with a history.
func TestTwinOfAnOddSite(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	site := newBench(t, lab.Options{Found: odd})
	text := testclass.Read(t, filepath.Join(site.lab.Dir(), "answers-pvrdma.yaml"))
	answers := filepath.Join(t.TempDir(), "answers.yaml") // two folders have the names of the switch and the port group
	text = regexp.MustCompile(`\bRDMA-(DVS|PG)\b`).ReplaceAll(text, []byte("/DC/network/$0"))
	testclass.OK(t, os.WriteFile(answers, text, 0o600))
	served, tw, again := twinOf(t, site, answers)
	if want, got := site.planHash(answers), served.planHash(again); got != want || len(want) != 64 {
		t.Errorf("plan %s on the site, %s on the twin", want, got)
	}
	if diff := witness.Diff(site.outside(), served.outside(), assumed.MatchString); len(diff) > 0 {
		t.Errorf("%d differences:\n%s\nassumed:\n%s", len(diff), strings.Join(diff[:min(len(diff), 30)], "\n"), strings.Join(tw.Assumed, "\n"))
	}
}

// lookups matches the calls that a rehearsal may make on the site; RefreshFirewall and RefreshServices make vCenter read hosts
// again.
var lookups = regexp.MustCompile(
	`^(Retrieve|Login|Logout|Query|Fetch|Find|Has|Refresh(Firewall|Services)|Current|CreateCollectorFor|ReadNext|(Create|Destroy|Continue|Cancel)(Container|List|Property|View|Filter|Retrieve|Wait)|Destroy|WaitForUpdates|ExecuteSoap|RetrieveManagedMethod|RetrieveDynamic|CheckMigrate|Place)`)

// history returns what an outside client reads of the site's tasks, from the first one, and of its sessions without its own.
func (b *bench) history() (tasks, sessions []string) {
	b.t.Helper()
	ctx, u := b.t.Context(), b.lab.URL()
	sc := soap.NewClient(u, false)
	if err := sc.SetRootCAs(b.env["GOVC_TLS_CA_CERTS"]); err != nil {
		b.t.Fatal(err)
	}
	c, err := vim25.NewClient(ctx, sc)
	if err != nil {
		b.t.Fatal(err)
	}
	m := session.NewManager(c)
	if err := m.Login(ctx, url.UserPassword(b.env["GOVC_USERNAME"], b.env["GOVC_PASSWORD"])); err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = m.Logout(ctx) }()
	of, err := methods.CreateCollectorForTasks(ctx, c, &types.CreateCollectorForTasks{This: *c.ServiceContent.TaskManager})
	for err == nil {
		var page *types.ReadNextTasksResponse
		if page, err = methods.ReadNextTasks(ctx, c, &types.ReadNextTasks{This: of.Returnval, MaxCount: 100}); err != nil ||
			len(page.Returnval) == 0 {
			break
		}
		for _, t := range page.Returnval {
			tasks = append(tasks, t.Key+" "+t.Name)
		}
	}
	own, ownErr := m.UserSession(ctx)
	var all mo.SessionManager
	if err := errors.Join(err, ownErr, property.DefaultCollector(c).RetrieveOne(ctx, *c.ServiceContent.SessionManager, []string{"sessionList"},
		&all)); err != nil {
		b.t.Fatal(err)
	}
	for _, s := range all.SessionList {
		if s.Key != own.Key {
			sessions = append(sessions, s.Key+" "+s.UserName)
		}
	}
	slices.Sort(sessions)
	return tasks, sessions
}

// A rehearsal sets up the twin and does not change the site.
func TestRehearseLeavesTheSiteAlone(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Hosts: 2, VMs: 2})
	before := site.outside()
	answers := filepath.Join(site.lab.Dir(), "answers-pvrdma.yaml")
	tasks, sessions := site.history()
	hash, calls := site.planHash(answers), maps.Clone(site.lab.World().Log.Calls())
	code, out, errs := site.run("rehearse", "-f", answers, "-o", "json", "--boot", "90s", "--shutdown", "30s")
	var doc struct {
		Status   string
		Hash     string `json:"plan_hash"`
		Steps    []twin.Step
		Window   int `json:"window_s"`
		Worst    int `json:"worst_vm_outage_s"`
		Rollback string
		Restored bool
		Assumed  []string
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != 0 {
		t.Fatalf("rehearse: %d, %v\n%s\n%s", code, err, out, errs)
	}
	if doc.Status != "done" || doc.Hash != hash || doc.Rollback != "done" || !doc.Restored || len(doc.Assumed) == 0 {
		t.Errorf("status %q, plan %s of %s, rollback %q, restored %t, assumed %q", doc.Status, doc.Hash, hash, doc.Rollback, doc.Restored,
			doc.Assumed)
	}
	if doc.Worst < 120 || doc.Worst > doc.Window || len(doc.Steps) < 10 {
		t.Errorf("a VM is off for %d s of %d s; %d steps", doc.Worst, doc.Window, len(doc.Steps))
	}
	for method, n := range site.lab.World().Log.Calls() {
		if n > calls[method] && !lookups.MatchString(method) {
			t.Errorf("it calls %s on the site", method)
		}
	}
	tasksAfter, sessionsAfter := site.history()
	if !slices.Equal(tasks, tasksAfter) || !slices.Equal(sessions, sessionsAfter) {
		t.Errorf("tasks %q, were %q; sessions %q, were %q", tasksAfter, tasks, sessionsAfter, sessions)
	}
	if diff := witness.Diff(before, site.outside(), nil); len(diff) > 0 {
		t.Errorf("the site has changed:\n%s", strings.Join(diff, "\n"))
	}
}

// The checks after the run on the twin leave as much unknown as those after the run on the site: the rehearsal leaves out reads, and
// none that a check needs.
func TestChecksOfATwinKnowWhatThoseOfTheSiteKnow(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for _, mode := range []string{"pvrdma", "sriov"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			site := newBench(t, lab.Options{Scenario: map[string]string{"pvrdma": "healthy", "sriov": "sriov-image"}[mode], Hosts: 1, VMs: 1,
				BootTime: 50 * time.Millisecond, RebootTime: 100 * time.Millisecond})
			answers := filepath.Join(site.lab.Dir(), "answers-"+mode+".yaml")
			code, out, errs := site.run("rehearse", "-f", answers, "-o", "json")
			var r twin.Rehearsal
			if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
				t.Fatalf("rehearse: %d, %v\n%s\n%s", code, err, out, errs)
			}
			if code, _, errs := site.run("apply", "-f", answers, "--yes"); code != 0 {
				t.Fatalf("apply: %d\n%s", code, errs)
			}
			_, out, errs = site.run("check", "-f", answers, "-o", "json")
			var doc struct{ Counts map[checks.Status]int }
			if err := json.Unmarshal([]byte(out), &doc); err != nil {
				t.Fatalf("check: %v\n%s\n%s", err, out, errs)
			}
			if !maps.Equal(doc.Counts, r.Checks) {
				t.Errorf("after the rehearsal %v, after the run %v", r.Checks, doc.Counts)
			}
		})
	}
}

// A failure on the twin is in the output of the rehearsal, and in its exit code.
func TestRehearseAFault(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Hosts: 1, VMs: 1})
	code, out, errs := site.run("rehearse", "-f", "ANSWERS", "--fault", "host=esx-01,method=EnableRuleset,do=fault:NoPermission")
	if code == 0 || !strings.Contains(out, "failed:\n  host/esx-01/") || !strings.Contains(out, "rollback on the twin: ") ||
		!strings.Contains(out, "SIMULATED") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
}

// The account of the twin has all privileges: those missing on the site are listed with the assumptions of the twin.
func TestTwinReportsMissingPrivileges(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Scenario: "broken-privileges", Hosts: 1, VMs: 1})
	_, tw := site.bundle(filepath.Join(site.lab.Dir(), "answers-pvrdma.yaml"))
	if !slices.ContainsFunc(tw.Assumed, func(what string) bool { return strings.Contains(what, "on the site it lacks") }) {
		t.Errorf("it assumes %q", tw.Assumed)
	}
}

// A VM whose host the account cannot see is left out of the twin, which says so.
func TestTwinOfAVMWithoutItsHost(t *testing.T) {
	t.Parallel()
	site := newBench(t, lab.Options{Hosts: 1, VMs: 2})
	read, _ := site.bundle("")
	read.Facts.Inventory.VMs[1].Host = ""
	tw, err := twin.Of(read)
	testclass.OK(t, err)
	if !slices.ContainsFunc(tw.Assumed, func(a string) bool { return strings.HasPrefix(a, "vm-02: left out") }) {
		t.Errorf("assumed: %q", tw.Assumed)
	}
}

// TestTwinOfABundleWithoutAProperty removes every property of a collected inventory once: its twin starts, or is refused with an
// error.
func TestTwinOfABundleWithoutAProperty(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	site := newBench(t, lab.Options{Scenario: "gpudirect", Hosts: 1, VMs: 1})
	b, _ := site.bundle(filepath.Join(site.lab.Dir(), "answers-gpudirect.yaml"))
	whole, err := json.Marshal(b.Facts.Inventory)
	testclass.OK(t, err)
	tree := func() (out any) {
		testclass.OK(t, json.Unmarshal(whole, &out))
		return out
	}
	var paths [][]any // of keys and indices
	var walk func(at any, path []any)
	walk = func(at any, path []any) {
		switch at := at.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(at)) {
				own := append(slices.Clone(path), key)
				paths = append(paths, own)
				walk(at[key], own)
			}
		case []any:
			if len(at) > 0 { // the elements of a list have the same properties
				walk(at[0], append(slices.Clone(path), 0))
			}
		}
	}
	walk(tree(), nil)
	started := 0
	for _, path := range paths {
		changed := tree()
		at := changed
		for _, step := range path[:len(path)-1] {
			if i, is := step.(int); is {
				at = at.([]any)[i]
			} else {
				at = at.(map[string]any)[step.(string)]
			}
		}
		delete(at.(map[string]any), path[len(path)-1].(string))
		text, err := json.Marshal(changed)
		testclass.OK(t, err)
		lacks := *b
		facts := *b.Facts
		facts.Inventory = nil
		if err := json.Unmarshal(text, &facts.Inventory); err != nil {
			continue // the bundle is refused
		}
		lacks.Facts = &facts
		func() {
			defer func() {
				if what := recover(); what != nil {
					t.Errorf("without %v: panic: %v", path, what)
				}
			}()
			tw, err := twin.Of(&lacks)
			if err != nil {
				return
			}
			l, err := lab.Start(t.Context(), lab.Options{Found: tw.Found, Private: true, Unlogged: true, Dir: t.TempDir()})
			if err != nil {
				return
			}
			started++
			if err := l.Close(); err != nil {
				t.Errorf("without %v: %v", path, err)
			}
		}()
	}
	if len(paths) < 200 || started < len(paths)/2 {
		t.Errorf("%d of %d twins started", started, len(paths))
	}
	t.Logf("%d properties, %d twins started", len(paths), started)
}
