package shell_test

import (
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

const bin = "/opt/mellanox/bin/"

// restart reboots a host immediately and logs in again.
func (l *lab) restart(name string) *ssh.Client {
	l.Helper()
	if err := l.world.LoseHost(name); err != nil {
		l.Fatal(err)
	}
	if err := l.world.RestoreHost(name); err != nil {
		l.Fatal(err)
	}
	return l.host(name)
}

// The complete path from a host without tools to VFs, with two reboots.
func TestBareToVFs(t *testing.T) {
	l := start(t, scenario.Spec{Scenario: "bare", Hosts: 2, VMs: 2})
	c := l.host("esx-01")
	if r := run(t, c, bin+"mst start", ""); r.status != 127 || !strings.Contains(r.err, "not found") {
		t.Errorf("mst without its VIB: %+v", r)
	}
	files := strings.Fields(ok(t, c, "ls /vmfs/volumes/shared-01/rdma/*"))
	if len(files) != 2 {
		t.Fatalf("files on the datastore: %v", files)
	}
	if _, err := l.world.InstallVIBs("esx-01", world.Install{Paths: files}); err != nil {
		t.Fatal(err)
	}
	if r := run(t, c, bin+"mst start", ""); r.status != 127 {
		t.Errorf("mst before the reboot: %+v", r)
	}
	c = l.restart("esx-01")
	if r := run(t, c, "mst start", ""); r.status != 127 {
		t.Errorf("the tools are in nobody's PATH: %+v", r)
	}
	if r := run(t, c, bin+"mlxconfig -d mt4119_pciconf1 q", ""); r.status == 0 || !strings.Contains(r.out, "-E- Failed to open device") {
		t.Errorf("mlxconfig before mst start: %+v", r)
	}
	ok(t, c, bin+"mst start")
	set := ok(t, c, bin+"mlxconfig -d mt4119_pciconf1 -y set SRIOV_EN=1 NUM_OF_VFS=16")
	if !regexp.MustCompile(`(?m)^ +SRIOV_EN +False\(0\) +True\(1\) *$`).MatchString(set) ||
		!strings.Contains(set, "Applying... Done!\n-I- Please reboot machine") {
		t.Errorf("set:\n%s", set)
	}
	if q := ok(t, c, bin+"mlxconfig -d 3b:00.0 -e q"); !regexp.MustCompile(`(?m)^\* +NUM_OF_VFS +8 +8 +16 *$`).MatchString(q) {
		t.Errorf("query before the reboot:\n%s", q)
	}
	if q := ok(t, c, bin+"mlxconfig -d mt4119_pciconf1 q NUM_OF_VFS SRIOV_EN"); !regexp.MustCompile(`(?m)^ +SRIOV_EN +True\(1\) *$`).
		MatchString(q) {
		t.Errorf("query shows the next boot:\n%s", q)
	}
	if err := l.world.SetModule("esx-01", world.Nmlx5, "max_vfs=0,0,8,7 pfctx=0x08 pfcrx=0x08 trust_state=2 ecn=1"); err != nil {
		t.Fatal(err)
	}
	vfs := func() (n []int) {
		l.world.View(func(s *world.State) {
			for _, p := range s.Host("esx-01").PNICs[2:4] {
				n = append(n, p.ActiveVFs)
			}
		})
		return n
	}
	if got := vfs(); got[0]+got[1] != 0 {
		t.Errorf("VFs before the reboot: %v", got)
	}
	c = l.restart("esx-01")
	if got := vfs(); got[0] != 8 || got[1] != 7 {
		t.Errorf("VFs %v", got)
	}
	if r := run(t, c, bin+"mlxconfig -d mt4119_pciconf1 q", ""); r.status == 0 {
		t.Error("mst is still started after a reboot")
	}
}

// The numbers in mst device names do not follow the PCI order on every host.
func TestMSTNumbersDiffer(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 2, VMs: 2})
	for host, want := range map[string]string{
		"esx-01": "(?s)ConnectX4LX\\(rev:0\\) +mt4117_pciconf0 +1a:00\\.0 +net-vmnic0 *\n.*ConnectX5\\(rev:0\\) +mt4119_pciconf1\\.1 " +
			"+3b:00\\.1 +net-vmnic3 *\n",
		"esx-02": "(?s)ConnectX5\\(rev:0\\) +mt4119_pciconf0 +3b:00\\.0 +net-vmnic2 *\n.*ConnectX4LX\\(rev:0\\) +mt4117_pciconf1 +1a:00\\.0 " +
			"+net-vmnic0 *\n",
	} {
		c := l.host(host)
		if out := ok(t, c, bin+"mst status"); !strings.Contains(out, "No MST devices were found") {
			t.Errorf("%s before start:\n%s", host, out)
		}
		if out := ok(t, c, bin+"mst start; "+bin+"mst status -v"); !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s: %s is not in\n%s", host, want, out)
		}
	}
}

func TestMFTRefusals(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.host("esx-01")
	ok(t, c, bin+"mst start")
	for _, row := range []struct{ command, stdin, text string }{
		{"mlxconfig -d mt4117_pciconf0 -y set LINK_TYPE_P1=2", "", "-E- The Device doesn't support LINK_TYPE_P1 parameter"}, // Ethernet only
		{"mlxconfig -d mt4117_pciconf0 q LINK_TYPE_P1", "", "-E- The Device doesn't support LINK_TYPE_P1 parameter"},
		// 127 is the maximum
		{"mlxconfig -d mt4119_pciconf1 -y set NUM_OF_VFS=128", "", "-E- Failed to set parameter NUM_OF_VFS: value 128 is out of range"},
		{"mlxconfig -d mt4119_pciconf1 -y set SRIOV_EN", "", "-E- Invalid configuration argument: SRIOV_EN"},
		{"mlxconfig -d mt4119_pciconf7 q", "", "-E- Failed to open device: mt4119_pciconf7. No such file or directory"},
		{"mlxconfig -y set SRIOV_EN=1", "", "-E- Device is required for this command"},
		{"mlxconfig", "", "-E- Usage"},
		{"mlxconfig -d mt4119_pciconf1 set NUM_OF_VFS=32", "n\n", "-I- Aborted by user."},
		{"mlxfwmanager -d 99:00.0", "", "-E- Failed to open device: 99:00.0"},
		{"mlxfwmanager --online -u -d 3b:00.0", "", "-E- Failed to connect to the online server."},
		{"flint -d 99:00.0 q", "", "-E- Cannot open Device: 99:00.0."},
		{"flint -d 3b:00.0 burn", "", "-E- Burning needs an image"},
	} {
		if r := run(t, c, bin+row.command, row.stdin); r.status == 0 || !strings.Contains(r.out, row.text) {
			t.Errorf("%s: %+v, want %q", row.command, r, row.text)
		}
	}
	l.world.View(func(s *world.State) {
		for _, card := range s.Hosts[0].Cards {
			for _, x := range card.Settings {
				if x.Next != x.Current {
					t.Errorf("%s changed", x.Name)
				}
			}
		}
	})
	if out := ok(t, c, bin+"mlxfwmanager -d 3b:00.0"); !strings.Contains(out, "  PSID:             MT_0000000009\n") ||
		!strings.Contains(out, "     FW             16.35.4030     N/A\n") {
		t.Errorf("mlxfwmanager:\n%s", out)
	}
	if out := ok(t, c, bin+"flint -d mt4117_pciconf0 q"); !strings.Contains(out, "PSID:                  MT_2420110034\n") {
		t.Errorf("flint:\n%s", out)
	}
}

// Lockdown mode or a stopped SSH service prevents logins to the shell. vCenter, and esxcli through vCenter, still work.
func TestShellClosed(t *testing.T) {
	l := start(t, scenario.Spec{Scenario: "sriov-lockdown", Hosts: 2, VMs: 2})
	if err := l.world.SetService("esx-02", "TSM-SSH", true); err != nil {
		t.Fatal(err)
	}
	addr, err := l.servers.Host("esx-02")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := ssh.Dial("tcp", addr, l.config("root")); err == nil {
		_ = c.Close()
		t.Error("root got in in lockdown mode")
	}
	if addr, err = l.servers.Host("esx-01"); err != nil {
		t.Fatal(err)
	}
	if c, err := ssh.Dial("tcp", addr, l.config("root")); err == nil {
		_ = c.Close()
		t.Error("root got in while SSH is stopped")
	}
}

// The tools remain available until the reboot after their removal.
func TestToolsGoWithTheVIB(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.host("esx-01")
	if _, err := l.world.RemoveVIBs("esx-01", []string{"mft", "nmst"}); err != nil {
		t.Fatal(err)
	}
	ok(t, c, bin+"mst start")
	c = l.restart("esx-01")
	if r := run(t, c, bin+"mst start", ""); r.status != 127 {
		t.Errorf("mst after its VIB went: %+v", r)
	}
}
