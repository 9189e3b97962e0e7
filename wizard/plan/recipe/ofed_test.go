package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

const (
	ofedArchive = "/mnt/share/MLNX_OFED_LINUX-24.10-1.1.4.0-ubuntu22.04-x86_64.tgz"
	ofedVersion = "MLNX_OFED_LINUX-24.10-1.1.4.0"
)

// newOFED is a healthy data centre for SR-IOV whose answers request MLNX_OFED.
func newOFED(edit func(*backends.Guest)) (*answers.Answers, *backends.Inventory) {
	inv := withFirmware(withTools(newSRIOV(2)), 8)
	for i := range inv.Guests {
		g := &inv.Guests[i]
		g.Arch, g.Archives = "x86_64", map[string]bool{ofedArchive: true}
		edit(g)
	}
	a := sriovAnswers(inv)
	a.Guest.OFED = []string{"/mnt/share/MLNX_OFED_LINUX-24.10-1.1.4.0-rhel9.4-x86_64.tgz", ofedArchive}
	return a, inv
}

// RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022), section 2.4: the build dependencies, then MLNX_OFED, then
// everything else; each guest gets the archive that is made for it.
func TestOFEDIsPlanned(t *testing.T) {
	a, inv := newOFED(func(g *backends.Guest) { g.Packages = map[string]string{"rdma-core": "39.0-1", "perftest": "4.4"} })
	p := mustBuild(t, a, inv, plan.Options{})
	needs, c := p.Change(guestID("vm-01", backends.KindPackages, "ofed")), p.Change(guestID("vm-01", backends.KindOFED, ""))
	if needs == nil || c == nil {
		t.Fatal("nothing is planned")
	}
	if want := backends.ValueOf(backends.OFEDSpec{Version: ofedVersion, Archive: ofedArchive}); c.From != backends.Absent || c.To != want ||
		c.Irreversible != "" {
		t.Errorf("from %s to %s, %s", c.From, c.To, c.Irreversible)
	}
	if got := strings.Join(decode[backends.PackageSpec](t, needs.To).Installed,
		" "); !strings.Contains(got, "linux-headers-5.15.0-100-generic") || !strings.Contains(got, " tk") || strings.Contains(got, "KERNEL") {
		t.Errorf("built with %s", got)
	}
	if !slices.Contains(c.After, needs.ID()) || !slices.Contains(c.Disrupts, plan.GuestNetwork) ||
		!strings.Contains(c.Why, "rdma-core, perftest") {
		t.Errorf("%+v", c)
	}
	if p.Change(guestID("vm-01", backends.KindPackages, "rdma")) != nil {
		t.Error("the distribution's packages are planned too")
	}
	for _, kind := range []backends.Kind{backends.KindModules, backends.KindPort, backends.KindAddress, backends.KindMemlock} {
		for _, after := range p.Changes {
			if after.Target == c.Target && after.Kind == kind && !slices.Contains(after.After, c.ID()) {
				t.Errorf("%s does not wait for it: %q", after.ID(), after.After)
			}
		}
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "--force --add-kernel-support --without-fw-update") ||
		!strings.Contains(notes, "openibd is restarted") {
		t.Errorf("its price is not told: %s", notes)
	}
	if _, err := p.Graph(); err != nil {
		t.Error(err)
	}
}

func TestOFEDThatIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		edit         func(*backends.Guest)
		change       bool
		irreversible string
	}{
		"the same":             {func(g *backends.Guest) { g.MOFED = ofedVersion }, false, ""},
		"the same, unfinished": {func(g *backends.Guest) { g.MOFED, g.OFEDUnfinished = ofedVersion, true }, true, ""},
		"unfinished":           {func(g *backends.Guest) { g.OFEDUnfinished = true }, true, ""},
		"an earlier one": {func(g *backends.Guest) { g.MOFED = "MLNX_OFED_LINUX-5.8-1.1.2.1" }, true,
			"archive of MLNX_OFED_LINUX-5.8-1.1.2.1"},
		"that of DOCA": {func(g *backends.Guest) { g.MOFED = "OFED-internal-24.10-0.7.0" }, true, "OFED-internal-24.10-0.7.0"},
		"the same, and the archive is gone": {func(g *backends.Guest) {
			g.MOFED, g.Archives = ofedVersion, map[string]bool{ofedArchive: false}
		}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, inv := newOFED(c.edit)
			p := mustBuild(t, a, inv, plan.Options{})
			got := p.Change(guestID("vm-01", backends.KindOFED, ""))
			if (got != nil) != c.change || got != nil && (got.Irreversible == "") != (c.irreversible == "") ||
				got != nil && !strings.Contains(got.Irreversible, c.irreversible) {
				t.Errorf("%+v", got)
			}
			if needs := p.Change(guestID("vm-01", backends.KindPackages, "ofed")); (needs != nil) != c.change {
				t.Errorf("what it is built with: %+v", needs)
			}
		})
	}
}

func TestOFEDIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*backends.Guest)
		says string
		skip string // the check to skip in order to get it all the same
	}{
		"another system": {func(g *backends.Guest) { g.OS, g.Version = "debian", "12" },
			"no archive in guest.ofed is for its system: MLNX_OFED_LINUX-24.10-1.1.4.0-rhel9.4-x86_64.tgz: it is for rhel9.4, the guest is debian12",
			""},
		"another machine": {func(g *backends.Guest) { g.Arch = "aarch64" }, "it is for x86_64 machines, the guest is aarch64", ""},
		"no archive":      {func(g *backends.Guest) { g.Archives = map[string]bool{ofedArchive: false} }, ofedArchive + " is not there", ""},
		"Secure Boot":     {func(g *backends.Guest) { g.SecureBoot = is(true) }, "Secure Boot is on", "GST-SECBOOT-033"},
		"a later one": {func(g *backends.Guest) { g.MOFED = "MLNX_OFED_LINUX-24.10-2.1.8.0" }, "later than MLNX_OFED_LINUX-24.10-1.1.4.0",
			"GST-OFED-024"},
	} {
		t.Run(name, func(t *testing.T) {
			a, inv := newOFED(c.edit)
			_, err := recipe.Build(a, inv, plan.Options{})
			if got := refusedText(err); !strings.Contains(got, c.says) {
				t.Errorf("%s", got)
			}
			if c.skip == "" {
				return
			}
			if _, err := recipe.Build(a, inv, plan.Options{Skip: []string{c.skip}}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A guest that is off cannot be surveyed yet: MLNX_OFED is planned, and its archive is chosen when the guest answers.
func TestOFEDWaitsForTheGuest(t *testing.T) {
	a, inv := newOFED(func(*backends.Guest) {})
	inv.VMs[0].Power = "poweredOff"
	p := mustBuild(t, a, inv, plan.Options{})
	if c := p.Change(guestID("vm-01", backends.KindOFED, "")); c == nil || c.To.Known() || c.From.Known() {
		t.Errorf("%+v", c)
	}
	if _, err := p.Graph(); err != nil {
		t.Error(err)
	}
}

// The NVIDIA driver's peer memory depends on ib_core: MLNX_OFED is installed before the driver (nv_peer_memory issue 84).
func TestOFEDBeforeTheGPUDriver(t *testing.T) {
	ask := func(edit func(*backends.Guest)) (*plan.Plan, error) {
		inv := newGPUs(1)
		g := &inv.Guests[0]
		g.Arch = "x86_64"
		edit(g)
		a := gpuAnswers(inv)
		a.Guest.OFED, a.GPUDirect.Driver = []string{ofedArchive}, []string{"nvidia-utils-570-server", "nvidia-headless-570-server"}
		return recipe.Build(a, inv, plan.Options{})
	}
	p, err := ask(func(g *backends.Guest) { g.NVIDIA = nil })
	if err != nil {
		t.Fatal(err)
	}
	if driver := p.Change(guestID("vm-01", backends.KindPackages, "nvidia")); driver == nil ||
		!slices.Contains(driver.After, guestID("vm-01", backends.KindOFED, "")) {
		t.Errorf("%+v", driver)
	}
	if _, err := ask(func(g *backends.Guest) { g.NVIDIA.DMABuf = false }); !strings.Contains(refusedText(err),
		"was installed before MLNX_OFED") {
		t.Errorf("%v", err)
	}
	p, err = ask(func(g *backends.Guest) { g.NVIDIA.DMABuf = true })
	if err != nil {
		t.Fatal(err)
	}
	if peer := p.Change(guestID("vm-01", backends.KindModules, "gpu")); peer == nil || peer.To.Known() {
		t.Errorf("what depends on MLNX_OFED is known: %+v", peer)
	}
}

// In a rollback, MLNX_OFED is removed after everything that depends on it and before its build dependencies; replaced packages are
// not distinguished by the archive.
func TestOFEDIsRolledBack(t *testing.T) {
	_, inv := newOFED(func(g *backends.Guest) {
		g.MOFED, g.MemlockKB, g.Packages = ofedVersion, -1, map[string]string{"tk": "8.6"}
	})
	target := backends.GuestRef("vm-01")
	prior := func(kind backends.Kind, name string, was, is backends.Value) plan.Prior {
		return plan.Prior{Change: plan.Change{Setting: backends.Setting{Target: target, Kind: kind, Name: name}, From: was, To: is}, Prior: was,
			Found: is}
	}
	none, tk := backends.ValueOf(backends.PackageSpec{Installed: []string{}}),
		backends.ValueOf(backends.PackageSpec{Installed: []string{"tk"}})
	p, err := rollback.Build([]plan.Prior{
		prior(backends.KindPackages, "ofed", none, tk),
		prior(backends.KindOFED, "", backends.Absent, backends.ValueOf(backends.OFEDSpec{Version: ofedVersion, Archive: ofedArchive})),
		prior(backends.KindMemlock, "", backends.ValueOf("65536"), backends.ValueOf("unlimited")),
	}, inv, rollback.Options{Mode: "sriov"})
	if err != nil || len(p.Conflicts) > 0 || len(p.Changes) != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	software, built := p.Change(guestID("vm-01", backends.KindOFED, "")), p.Change(guestID("vm-01", backends.KindPackages, "ofed"))
	if !slices.Contains(software.After, guestID("vm-01", backends.KindMemlock, "")) || !slices.Contains(built.After, software.ID()) ||
		slices.Contains(software.After, built.ID()) {
		t.Errorf("after %q; what it was built with after %q", software.After, built.After)
	}
	if got := plan.Title(*software); got != "uninstall "+ofedVersion+" and restore the distribution's RDMA packages" {
		t.Error(got)
	}
}

// DOCA-OFED is identified by its package's version, and has messages of its own.
func TestDOCAIsPlanned(t *testing.T) {
	const file = "/mnt/share/doca-host_2.9.1-018000-24.10-ubuntu2204_amd64.deb"
	a, inv := newOFED(func(g *backends.Guest) { g.Archives = nil })
	inv.Guests[1].MOFED = "DOCA-OFED-2.9.1-018000"
	a.Guest.OFED = []string{file}
	p := mustBuild(t, a, inv, plan.Options{})
	c := p.Change(guestID("vm-01", backends.KindOFED, ""))
	if c == nil || c.To != backends.ValueOf(backends.OFEDSpec{Version: "DOCA-OFED-2.9.1-018000", Archive: file}) ||
		plan.Title(*c) != "install DOCA-OFED-2.9.1-018000" {
		t.Errorf("%+v", c)
	}
	if again := p.Change(guestID("vm-02", backends.KindOFED, "")); again != nil {
		t.Errorf("it is there already: %+v", again)
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "package doca-host") || strings.Contains(notes, "mlnxofedinstall") {
		t.Errorf("%s", notes)
	}
}
