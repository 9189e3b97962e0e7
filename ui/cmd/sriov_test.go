package cmd_test

import (
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// sriovBench returns a small lab and its answers for mode sriov.
func sriovBench(t *testing.T, o lab.Options) (b *bench, file string) {
	t.Helper()
	o.RebootTime, o.BootTime = 50*time.Millisecond, 50*time.Millisecond
	b = newBench(t, o)
	return b, filepath.Join(b.lab.Dir(), "answers-sriov.yaml")
}

// must runs a command that must exit with code.
func (b *bench) must(code int, args ...string) (stdout, stderr string) {
	b.t.Helper()
	got, stdout, stderr := b.run(args...)
	if got != code {
		b.t.Fatalf("%s: exit %d, want %d\n%s\n%s", strings.Join(args, " "), got, code, stdout, stderr)
	}
	return stdout, stderr
}

// hardware returns what mode sriov changes on the first host and in the first VM, from the lab's state.
func (b *bench) hardware() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	b.lab.World().View(func(s *world.State) {
		h, v := s.Hosts[0], s.VMs[0]
		out["power policy"], out["SSH"] = h.PowerPolicy, strconv.FormatBool(h.Service("TSM-SSH").Running)
		for _, m := range h.Modules {
			for _, p := range m.Parameters {
				if p.Value != "" || p.Active != "" {
					out[p.Name] = p.Value
				}
				if p.Value != p.Active {
					out[p.Name] += ", in force " + p.Active
				}
			}
		}
		for _, p := range h.Ports(world.Nmlx5) {
			out["VFs of "+p.PCI] = strconv.Itoa(len(h.VFs(p)))
		}
		for _, c := range h.Cards {
			for _, key := range c.Settings {
				if slices.Contains([]string{"SRIOV_EN", "NUM_OF_VFS", "ADVANCED_PCI_SETTINGS"}, key.Name) || key.Current != key.Next {
					out[c.PCI+" "+key.Name] = strconv.Itoa(key.Current)
				}
				if key.Current != key.Next {
					out[c.PCI+" "+key.Name] += ", then " + strconv.Itoa(key.Next)
				}
			}
		}
		out["VM"] = "on " + strconv.FormatBool(v.On) + ", reserved " + strconv.FormatInt(v.Reserved, 10) + ", locked " +
			strconv.FormatBool(v.Locked)
		for _, a := range v.Adapters {
			out["VM"] += ", " + string(a.Type)
		}
	})
	return out
}

// classes reads from the guest of the first VM the traffic classes that it sets; "" if it sets none.
func (b *bench) classes() string {
	b.t.Helper()
	var address, user string
	b.lab.World().View(func(s *world.State) {
		g := s.VMs[0].Guest
		address, user = net.JoinHostPort(g.Address, strconv.Itoa(g.Port)), g.User
	})
	out, err := remote(b.lab, address, user,
		"cat /sys/kernel/config/rdma_cm/*/ports/1/default_roce_tos 2>/dev/null; ls /etc/systemd/system | grep -c rdma-setup-class || :")
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(strings.Fields(out), " ")
}

// An existingVFs is a host that has been configured by others: a ConnectX-4 Lx for the host's own traffic, and a ConnectX-5 that
// already has 7 VFs on its second port. 8 more are requested on the first (RoCE SR-IOV Setup and Performance Study on vSphere 7.x, VMware,
// 2022).
type existingVFs struct {
	scenario, before, after string
	firmware                int  // NUM_OF_VFS of the card before the run
	reset                   bool // its advanced PCI settings are set too
	want                    map[string]string
}

func TestSRIOVKeepsSettingsOfOthers(t *testing.T) {
	t.Parallel()
	existingVFs{"bare", "0,0,0,7", "0,0,8,7", 8, false, map[string]string{
		"0000:3b:00.0 NUM_OF_VFS": "16", "VFs of 0000:3b:00.0": "8", "VFs of 0000:3b:00.1": "7", "VFs of 0000:1a:00.0": "0"}}.applyAndRollBack(t)
}

// applyAndRollBack applies and rolls back: the list follows PCI order, whatever the vmnic names are, and settings of others are kept.
func (c existingVFs) applyAndRollBack(t *testing.T) {
	t.Helper()
	b, file := sriovBench(t, lab.Options{Scenario: c.scenario, Hosts: 1, VMs: 1})
	b.change(world.Event{What: world.HostModule, Host: "esx-01"}, func(s *world.State) {
		for key, value := range map[string]string{"max_vfs": c.before, "RSS": "4"} {
			p := s.Hosts[0].Module(world.Nmlx5).Parameter(key)
			p.Value, p.Active = value, value
		}
		s.Hosts[0].Card("0000:3b:00.0").Set("NUM_OF_VFS", c.firmware)
		s.Hosts[0].Card("0000:3b:00.0").Set("ADVANCED_PCI_SETTINGS", 1)
	})
	advanced := "1"
	if c.reset {
		file, advanced = edited(t, file, "vfs: 8", "vfs: 8\n  reset_advanced_pci: true"), "0"
	}
	start, marked := b.hardware(), b.classes()
	b.must(0, "apply", "-f", file, "--yes")
	end := b.hardware()
	want := map[string]string{"max_vfs": c.after, "RSS": "4", "pfctx": "0x08", "SSH": start["SSH"], "0000:3b:00.0 SRIOV_EN": "1",
		"power policy":                       "static",
		"0000:3b:00.0 ADVANCED_PCI_SETTINGS": advanced,
		"VM":                                 "on true, reserved 8192, locked true, vmxnet3, sriov"}
	for key, value := range c.want {
		want[key] = value
	}
	for key, value := range want {
		if end[key] != value {
			t.Errorf("%s is %s, want %s", key, end[key], value)
		}
	}
	if got := b.classes(); got != "106 1" {
		t.Errorf("the guest marks with %q", got)
	}
	if out, _ := b.must(0, "plan", "-f", file, "--detailed-exitcode"); !strings.Contains(out, "no changes") {
		t.Errorf("a second plan:\n%s", out)
	}
	if out, said := b.must(0, "apply", "-f", file, "--yes"); !strings.Contains(said, "no changes") {
		t.Errorf("a second apply:\n%s\n%s", out, said)
	}
	b.must(0, "rollback", "--yes")
	for key, value := range b.hardware() {
		if value != start[key] {
			t.Errorf("after the rollback %s is %s, it was %s", key, value, start[key])
		}
	}
	if got := b.classes(); got != marked {
		t.Errorf("after the rollback the guest marks with %q, before with %q", got, marked)
	}
}

// Neither plan nor check, quick or full, starts SSH on a host or runs anything in its shell; the lab's own log is the evidence.
func TestPlanAndCheckStartNoSSH(t *testing.T) {
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "bare", Hosts: 2, VMs: 2})
	from := len(b.lab.World().Log.Events())
	b.must(0, "plan", "-f", file)
	for _, args := range [][]string{{"check", "-f", file}, {"check", "-f", file, "--quick"}, {"check", "-f", file, "--esxi-shell"},
		{"discover"}} {
		b.run(args...)
	}
	for _, e := range b.lab.World().Log.Events()[from:] {
		if e.What == world.HostService || e.What == world.Process && e.VM == "" {
			t.Errorf("%+v", e)
		}
	}
}

// A driver that is older than the named one is updated, during a reboot that is needed anyway or during one of its own. A package
// that Secure Boot rejects stops the host with the reason; the installation is not forced.
func TestSRIOVComponents(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	const newer = "4.24.0.7-1OEM.803.0.0.24022510"
	vib := connectX.VIBs()[0]
	for name, c := range map[string]struct {
		scenario string
		vib      world.VIB
		exit     int
		said     []string // texts that the run must print
	}{
		"too old": {"sriov-ready", world.VIB{Name: vib, Version: newer, Vendor: "MEL", Acceptance: "VMwareCertified"}, 0,
			[]string{"install " + vib + " " + newer, "without -f", "done        esx-01: install " + vib}},
		"unsigned": {"sriov-ready", world.VIB{Name: vib, Version: newer, Vendor: "MEL", Acceptance: "VMwareCertified", Unsigned: true}, 5,
			[]string{"FAILED      esx-01: install " + vib, "UEFI Secure Boot is enabled", "hint:    use a signed VIB"}},
		"below the host's level": {"sriov-ready", world.VIB{Name: vib, Version: newer, Vendor: "MEL", Acceptance: "CommunitySupported"}, 3,
			[]string{"is CommunitySupported, but the host's image accepts only PartnerSupported and above",
				"hint:  use the vendor's component signed for this level"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, file := sriovBench(t, lab.Options{Scenario: c.scenario, Hosts: 1, VMs: 1})
			path := "/vmfs/volumes/shared-01/rdma/" + c.vib.Name + ".vib"
			b.change(world.Event{What: world.HostImage, Host: "esx-01"}, func(s *world.State) {
				s.Hosts[0].SecureBoot = true
				s.Depot = append(s.Depot, &world.Package{Path: path, VIBs: []world.VIB{c.vib}})
			})
			_, said := b.must(c.exit, "apply", "-f", edited(t, file, "vfs: 8", "vfs: 8\n  components: ["+path+"]"), "--yes")
			for _, want := range c.said {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
			b.lab.World().View(func(s *world.State) {
				if v := s.Hosts[0].Active(c.vib.Name); (v.Version == newer) != (c.exit == 0) {
					t.Errorf("%s %s runs", v.Name, v.Version)
				}
				if h := s.Hosts[0]; h.Maintenance || !s.VMs[0].On {
					t.Errorf("maintenance %t, VM on %t", h.Maintenance, s.VMs[0].On)
				}
			})
		})
	}
}
