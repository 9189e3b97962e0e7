package world_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// reboot restarts a host and waits until it responds.
func reboot(t *testing.T, w *world.World, host string) {
	t.Helper()
	if err := w.LoseHost(host); err != nil {
		t.Fatal(err)
	}
	if err := w.RestoreHost(host); err != nil {
		t.Fatal(err)
	}
}

func vfs(w *world.World, host string) []int {
	var list []int
	w.View(func(s *world.State) {
		h := s.Host(host)
		for _, p := range h.Ports(world.Nmlx5) {
			if p.ActiveVFs != len(h.VFs(p)) {
				list = append(list, -1)
			}
			list = append(list, p.ActiveVFs)
		}
	})
	return list
}

func TestVFsNeedEverything(t *testing.T) {
	next := func(name string, value int) func(*world.World) {
		return func(w *world.World) {
			w.View(func(s *world.State) {
				for _, c := range s.Host("esx-01").Cards {
					if x := c.Setting(name); x != nil {
						x.Next = value
					}
				}
			})
		}
	}
	module := func(text string) func(*world.World) {
		return func(w *world.World) { _ = w.SetModule("esx-01", world.Nmlx5, text) }
	}
	for _, row := range []struct {
		name    string
		prepare []func(*world.World)
		want    []int
	}{
		{"nothing asked for", nil, []int{0, 0, 0, 0}},
		{"a place for each port (KB 309346)", []func(*world.World){module("max_vfs=0,0,8,7")}, []int{0, 0, 8, 7}},
		{"a short list leaves the last ports without", []func(*world.World){module("max_vfs=2,2")}, []int{2, 2, 0, 0}},
		{"a long list is cut", []func(*world.World){module("max_vfs=0,0,1,1,9,9")}, []int{0, 0, 1, 1}},
		{"a single number is for the first port", []func(*world.World){module("max_vfs=8")}, []int{8, 0, 0, 0}},
		{"above 128 the driver ignores the entry", []func(*world.World){module("max_vfs=0,0,129,4")}, []int{0, 0, 0, 4}},
		{"never more than the firmware allows", []func(*world.World){module("max_vfs=0,0,64,1")}, []int{0, 0, 16, 1}},
		{"firmware raised in the same boot", []func(*world.World){module("max_vfs=0,0,64,0"), next("NUM_OF_VFS", 65)}, []int{0, 0, 64, 0}},
		{"SRIOV_EN=0", []func(*world.World){module("max_vfs=0,0,8,7"), next("SRIOV_EN", 0)}, []int{0, 0, 0, 0}},
		{"SR-IOV off in the BIOS", []func(*world.World){module("max_vfs=0,0,8,7"),
			func(w *world.World) { w.View(func(s *world.State) { s.Host("esx-01").BIOSSRIOV = false }) }}, []int{0, 0, 0, 0}},
		{"vCenter wrote last",
			[]func(*world.World){module("max_vfs=0,0,8,7"), func(w *world.World) { _ = w.SetSRIOV("esx-01", "0000:3b:00.1", true, 1) }},
			[]int{0, 0, 8, 1}},
		{"the module parameter was written last", []func(*world.World){func(w *world.World) { _ = w.SetSRIOV("esx-01", "0000:3b:00.1", true, 1) },
			module("max_vfs=0,0,8,7")}, []int{0, 0, 8, 7}},
		{"other parameters leave vCenter's alone",
			[]func(*world.World){func(w *world.World) { _ = w.SetSRIOV("esx-01", "0000:3b:00.1", true, 1) },
				module("pfctx=8 pfcrx=8")}, []int{0, 0, 0, 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, scenario.Spec{Hosts: 1})
			for _, f := range row.prepare {
				f(w)
			}
			if before := vfs(w, "esx-01"); !slices.Equal(before, []int{0, 0, 0, 0}) {
				t.Errorf("VFs before the reboot: %v", before)
			}
			reboot(t, w, "esx-01")
			if got := vfs(w, "esx-01"); !slices.Equal(got, row.want) {
				t.Errorf("VFs %v, want %v", got, row.want)
			}
			w.View(func(s *world.State) {
				seen := map[string]bool{}
				for _, d := range s.Host("esx-01").PCI {
					if seen[d.Address] {
						t.Errorf("two functions at %s", d.Address)
					}
					seen[d.Address] = true
				}
			})
		})
	}
}

func TestSRIOVRefused(t *testing.T) {
	w := newWorld(t, scenario.Spec{Hosts: 1})
	for name, row := range map[string]struct {
		err, want error
	}{
		"no such device":           {w.SetSRIOV("esx-01", "0000:99:00.0", true, 1), world.ErrUnknown},
		"more than supported":      {w.SetSRIOV("esx-01", "0000:3b:00.0", true, 17), world.ErrInvalid},
		"none of them":             {w.SetSRIOV("esx-01", "0000:3b:00.0", true, 0), world.ErrInvalid},
		"passthrough of an uplink": {w.SetPassthru("esx-01", "0000:1a:00.0", true, false), world.ErrBusy},
		"passthrough of a bridge":  {w.SetPassthru("esx-01", "0000:17:00.0", true, false), world.ErrInvalid},
		"power policy":             {w.SetPowerPolicy("esx-01", "fast"), world.ErrInvalid},
		"acceptance above a VIB":   {w.SetAcceptance("esx-01", "VMwareCertified"), world.ErrBusy},
	} {
		if !errors.Is(row.err, row.want) {
			t.Errorf("%s: %v, want %v", name, row.err, row.want)
		}
	}
}

func TestVFsAreHandedOutAtPowerOn(t *testing.T) {
	w := newWorld(t, scenario.Spec{Hosts: 1, VMs: 3})
	if err := w.SetModule("esx-01", world.Nmlx5, "max_vfs=0,0,2,0"); err != nil {
		t.Fatal(err)
	}
	reboot(t, w, "esx-01")
	w.View(func(s *world.State) {
		for _, v := range s.VMs {
			v.Adapters = append(v.Adapters, &world.Adapter{Type: world.SRIOV, PF: "0000:3b:00.0", Label: "Network adapter 2",
				MAC: world.MAC(v.Index, 1)})
		}
	})
	for vm, want := range map[string]bool{"vm-01": true, "vm-02": true} {
		if err := w.PowerOn(vm); (err == nil) != want {
			t.Errorf("%s: %v", vm, err)
		}
	}
	if err := w.PowerOn("vm-03"); !errors.Is(err, world.ErrNoVF) {
		t.Errorf("a third VM on two VFs: %v (KB 309346)", err)
	}
	if err := w.SetSRIOV("esx-01", "0000:3b:00.0", true, 1); !errors.Is(err, world.ErrBusy) {
		t.Errorf("VFs in use were changed: %v", err)
	}
	if err := w.PowerOff("vm-01"); err != nil {
		t.Fatal(err)
	}
	if err := w.PowerOn("vm-03"); err != nil {
		t.Errorf("a VF that was given back: %v", err)
	}
}

func TestWholeFunctionPassedThrough(t *testing.T) {
	w := newWorld(t, scenario.Spec{Hosts: 1})
	if err := w.SetPassthru("esx-01", "0000:3b:00.1", true, true); err != nil {
		t.Fatal(err)
	}
	count := func() (n int, pending bool) {
		w.View(func(s *world.State) { n, pending = len(s.Host("esx-01").PNICs), s.Host("esx-01").RebootPending() })
		return n, pending
	}
	if n, pending := count(); n != 4 || !pending {
		t.Errorf("before the reboot: %d adapters, reboot pending %t", n, pending)
	}
	reboot(t, w, "esx-01")
	if n, pending := count(); n != 3 || pending {
		t.Errorf("after the reboot: %d adapters, reboot pending %t", n, pending)
	}
	if err := w.SetPassthru("esx-01", "0000:3b:00.1", false, false); err != nil {
		t.Fatal(err)
	}
	reboot(t, w, "esx-01")
	if n, _ := count(); n != 4 {
		t.Errorf("taken back: %d adapters", n)
	}
}

func TestImage(t *testing.T) {
	w := newWorld(t, scenario.Spec{Hosts: 1})
	tool := world.VIB{Name: "tool", Version: "1.0-1", Vendor: "ACM", Acceptance: "CommunitySupported"}
	w.View(func(s *world.State) {
		s.Depot = []*world.Package{
			{Path: "/vmfs/volumes/shared-01/tool.vib", VIBs: []world.VIB{tool}},
			{Path: "/vmfs/volumes/shared-01/nmst.zip",
				VIBs: []world.VIB{{Name: "nmst", Version: "5.0-1", Vendor: "MEL", Acceptance: "PartnerSupported"}}},
			{Path: "/vmfs/volumes/shared-01/raw.vib",
				VIBs: []world.VIB{{Name: "raw", Version: "1-1", Vendor: "ACM", Acceptance: "PartnerSupported", Unsigned: true}}},
		}
	})
	for _, row := range []struct {
		name   string
		in     world.Install
		secure bool
		code   string
	}{
		{"no such file", world.Install{Paths: []string{"/vmfs/volumes/shared-01/none.vib"}}, false, "VibDownloadError"},
		{"relative path (guide: -v needs an absolute one)", world.Install{Paths: []string{"tool.vib"}}, false, "VibDownloadError"},
		{"no such bundle", world.Install{Paths: []string{"/vmfs/volumes/shared-01/none.zip"}, Bundle: true}, false, "MetadataDownloadError"},
		{"a VIB as a bundle", world.Install{Paths: []string{"/vmfs/volumes/shared-01/tool.vib"}, Bundle: true}, false, "MetadataDownloadError"},
		{"a bundle as a VIB", world.Install{Paths: []string{"/vmfs/volumes/shared-01/nmst.zip"}}, false, "VibFormatError"},
		{"below the acceptance level", world.Install{Paths: []string{"/vmfs/volumes/shared-01/tool.vib"}}, false, "AcceptanceConfigError"},
		{"unsigned", world.Install{Paths: []string{"/vmfs/volumes/shared-01/raw.vib"}}, false, "InstallationError"},
		{"unsigned and forced under Secure Boot", world.Install{Paths: []string{"/vmfs/volumes/shared-01/raw.vib"}, Force: true}, true,
			"InstallationError"},
	} {
		w.View(func(s *world.State) { s.Host("esx-01").SecureBoot = row.secure })
		_, err := w.InstallVIBs("esx-01", row.in)
		var refused *world.ImageError
		if !errors.As(err, &refused) || refused.Code != row.code {
			t.Errorf("%s: %v, want %s", row.name, err, row.code)
		}
	}
	change, err := w.InstallVIBs("esx-01", world.Install{Paths: []string{"/vmfs/volumes/shared-01/nmst.zip"}, Bundle: true})
	if err != nil || len(change.Installed) != 1 || len(change.Removed) != 1 {
		t.Fatalf("%+v, %v", change, err)
	}
	version := func() (v string) {
		w.View(func(s *world.State) { v = s.Host("esx-01").Active("nmst").Version })
		return v
	}
	if strings.HasPrefix(version(), "5.") {
		t.Error("a VIB runs before the reboot")
	}
	reboot(t, w, "esx-01")
	if version() != "5.0-1" {
		t.Errorf("nmst %s after the reboot", version())
	}
	if change, err = w.InstallVIBs("esx-01", world.Install{Paths: []string{"/vmfs/volumes/shared-01/nmst.zip"}, Bundle: true}); err != nil ||
		len(change.Skipped) != 1 {
		t.Errorf("the same again: %+v, %v", change, err)
	}
	if _, err := w.InstallVIBs("esx-01", world.Install{Paths: []string{"/vmfs/volumes/shared-01/tool.vib"}, Force: true}); err != nil {
		t.Errorf("forced without Secure Boot: %v", err)
	}
	if _, err := w.RemoveVIBs("esx-01", []string{"tool"}); err != nil {
		t.Errorf("taking back what is staged: %v", err)
	}
	for _, name := range []string{"nosuch", "esx-base", "nmlx5-core"} {
		if _, err := w.RemoveVIBs("esx-01", []string{name}); err == nil {
			t.Errorf("%s was removed", name)
		}
	}
	if _, err := w.RemoveVIBs("esx-01", []string{"mft", "nmst"}); err != nil {
		t.Fatal(err)
	}
	reboot(t, w, "esx-01")
	w.View(func(s *world.State) {
		if s.Host("esx-01").Active("mft") != nil {
			t.Error("mft is still there")
		}
	})
}

func TestSRIOVScenarios(t *testing.T) {
	for _, row := range []struct {
		scenario string
		want     []int
	}{
		{"bare", []int{0, 0, 0, 0}},
		{"sriov-half", []int{0, 0, 0, 0}},
		{"sriov-single", []int{0, 0, 0}},
		{"sriov-api", []int{0, 0, 8, 0}},
		{"sriov-ready", []int{0, 0, 8, 0}},
		// The list now applies to other ports: the ConnectX-4 Lx got the VFs (KB 309346).
		{"sriov-added", []int{0, 0, 8, 0, 0, 0}},
	} {
		w := newWorld(t, scenario.Spec{Scenario: row.scenario, Hosts: 1, VMs: 1})
		if got := vfs(w, "esx-01"); !slices.Equal(got, row.want) {
			t.Errorf("%s: VFs %v, want %v", row.scenario, got, row.want)
		}
	}
	w := newWorld(t, scenario.Spec{Scenario: "sriov-added", Hosts: 1, VMs: 1})
	if err := w.PowerOn("vm-01"); !errors.Is(err, world.ErrNoVF) {
		t.Errorf("power-on after the shift: %v", err)
	}
	w = newWorld(t, scenario.Spec{Scenario: "sriov-half", Hosts: 1})
	reboot(t, w, "esx-01")
	w.View(func(s *world.State) {
		if n := s.Hosts[0].PNIC("vmnic2").MaxVFs; n != 16 {
			t.Errorf("half done, after the reboot: %d VFs possible", n)
		}
	})
	w = newWorld(t, scenario.Spec{Scenario: "sriov-reversed", Hosts: 1})
	w.View(func(s *world.State) {
		var order []string
		for _, p := range s.Hosts[0].Ports(world.Nmlx5) {
			order = append(order, p.Device)
		}
		if !slices.Equal(order, []string{"vmnic3", "vmnic2", "vmnic0", "vmnic1"}) {
			t.Errorf("order %v", order)
		}
	})
}

// A VM whose VF cannot get interrupt vectors is powered off when the guest's driver requests them (vSphere Networking, "Powered
// Off Because the Host Is Out of Interrupt Vectors").
func TestOutOfInterruptVectors(t *testing.T) {
	w := newWorld(t, scenario.Spec{Scenario: "sriov-vectors", Hosts: 1, VMs: 2, Timing: world.Timing{VMBoot: 1}})
	for _, vm := range []string{"vm-01", "vm-02"} {
		if err := w.PowerOff(vm); err != nil {
			t.Fatal(err)
		}
	}
	seen := make(chan world.Event, 16)
	w.Watch(func(e world.Event) {
		if e.What == world.VMGuest && e.Detail == "up" || e.What == world.VMPower && strings.HasPrefix(e.Detail, "off") {
			seen <- e
		}
	})
	w.View(func(s *world.State) {
		for _, v := range s.VMs {
			v.Adapters = append(v.Adapters, &world.Adapter{Type: world.SRIOV, PF: "0000:3b:00.0", MAC: world.MAC(v.Index, 1)})
		}
	})
	for _, row := range []struct{ vm, want string }{{"vm-01", world.VMGuest}, {"vm-02", world.VMPower}} {
		if err := w.PowerOn(row.vm); err != nil {
			t.Fatal(err)
		}
		if e := <-seen; e.VM != row.vm || e.What != row.want {
			t.Errorf("%s: %+v", row.vm, e)
		}
	}
}

// TestInfiniBandPorts checks that a port becomes a pNIC, to which max_vfs applies, at the first boot after its LINK_TYPE was
// set to Ethernet. The other port of the card does not change.
func TestInfiniBandPorts(t *testing.T) {
	w, err := scenario.New(scenario.Spec{Hosts: 1, VMs: 1, Scenario: "vpi-infiniband"})
	if err != nil {
		t.Fatal(err)
	}
	look := func(when, want string, classes ...uint16) {
		t.Helper()
		w.View(func(s *world.State) {
			h := s.Host("esx-01")
			var names []string
			for _, p := range h.Ports(world.Nmlx5) {
				names = append(names, p.Device)
			}
			got := []uint16{h.PCIDevice("0000:3b:00.0").Class, h.PCIDevice("0000:3b:00.1").Class}
			if strings.Join(names, " ") != want || !slices.Equal(got, classes) {
				t.Errorf("%s: ports %v, classes %04x", when, names, got)
			}
		})
	}
	look("as shipped", "vmnic0 vmnic1", 0x0207, 0x0207)
	w.View(func(s *world.State) {
		c := s.Host("esx-01").Card("0000:3b:00.0")
		c.Setting("LINK_TYPE_P1").Next = 2
		c.Setting("SRIOV_EN").Next = 1
	})
	if err := w.SetModule("esx-01", world.Nmlx5, "max_vfs=0,0,8"); err != nil {
		t.Fatal(err)
	}
	look("before the boot", "vmnic0 vmnic1", 0x0207, 0x0207)
	reboot(t, w, "esx-01")
	look("after it", "vmnic0 vmnic1 vmnic2", 0x0200, 0x0207)
	if got := vfs(w, "esx-01"); !slices.Equal(got, []int{0, 0, 8}) {
		t.Errorf("VFs %v", got)
	}
	w.View(func(s *world.State) { s.Host("esx-01").Card("0000:3b:00.0").Setting("LINK_TYPE_P1").Next = 1 })
	reboot(t, w, "esx-01")
	look("set back", "vmnic0 vmnic1", 0x0207, 0x0207)
}
