package esxi_test

import (
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/esxi"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// cx4Wants is what the Ethernet card is requested.
func cx4Wants(vfs string) map[string]string {
	return map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": vfs, "ADVANCED_PCI_SETTINGS": "0"}
}

func TestToolsFail(t *testing.T) {
	for _, r := range []struct {
		name, scenario, fault string
		prepare               func(*world.Host)
		set                   map[string]string
		kind                  backends.ErrorKind
		text, hint            string
	}{
		{name: "no MFT", scenario: "bare", kind: backends.KindPermanent,
			text: "/opt/mellanox/bin/mst: the Mellanox firmware tools (MFT) are not in the running image", hint: "sriov.components"},
		{name: "no NMST", prepare: func(h *world.Host) {
			h.VIBs = slices.DeleteFunc(h.VIBs, func(v world.VIB) bool { return v.Name == "nmst" })
		}, kind: backends.KindPermanent, text: "start mst", hint: "NMST beside MFT"},
		{name: "device does not open",
			fault: "command=mlxconfig,nth=1,do=fail:-E- Failed to open device: mt4117_pciconf0. No such file or directory",
			kind:  backends.KindPermanent, text: "Failed to open device", hint: "start mst again"},
		{name: "unsupported device", fault: "command=mlxconfig,nth=1,do=fail:-E- Unsupported device", kind: backends.KindPermanent,
			text: "Unsupported device", hint: "release of MFT"},
		{name: "another tool holds the card", fault: "command=mlxconfig,nth=1,do=fail:-E- Failed to query device: ICMD semaphore is locked",
			kind: backends.KindTransient, text: "semaphore"},
		{name: "key that the card lacks", set: map[string]string{"SRIOV_EN": "1", "LINK_TYPE_P1": "2"}, kind: backends.KindRefused,
			text: "no key LINK_TYPE_P1", hint: "do not set the key"},
		{name: "more VFs than any firmware gives (MFT: 127)", set: cx4Wants("128"), kind: backends.KindPermanent, text: "out of range"},
		{name: "no number", set: cx4Wants("8; reboot"), kind: backends.KindRefused, text: "this program does not set"},
		{name: "key of somebody else's", set: map[string]string{"NUM_PF_MSIX": "1"}, kind: backends.KindRefused,
			text: "this program does not set"},
		{name: "set is refused", set: cx4Wants("32"), fault: "command=mlxconfig,nth=2,do=fail:-E- Failed to apply the configuration",
			kind: backends.KindPermanent, text: "set the firmware of 0000:1a:00.0: Failed to apply the configuration"},
		{name: "set crashes", set: cx4Wants("32"), fault: "command=mlxconfig,nth=2,do=fail:Segmentation fault", kind: backends.KindPermanent,
			text: "Segmentation fault", hint: "by hand"},
		{name: "mst lists nothing", fault: "command=/opt/mellanox/bin/mst status,nth=1,do=fail:No MST devices were found",
			kind: backends.KindPermanent, text: "list the cards", hint: "esxcli hardware pci list"},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			l, h := start(t, orHealthy(r.scenario))
			if r.prepare != nil {
				l.World().View(func(s *world.State) { r.prepare(s.Host("esx-01")) })
			}
			if r.fault != "" {
				testclass.OK(t, l.World().Faults.Add("host=esx-01,"+r.fault))
			}
			if r.set == nil {
				r.set = cx4Wants("32")
			}
			s, count := firmware("esx-01", cx4), writes(l)
			err := h.Setters()[s.Kind].Set(t.Context(), s, backends.ValueOf(r.set), nil)
			if err == nil || backends.KindOf(err) != r.kind || !strings.Contains(err.Error(), r.text) ||
				!strings.HasPrefix(err.Error(), "esx-01: ") {
				t.Errorf("%s: %v", backends.KindOf(err), err)
			}
			if hint := backends.HintOf(err); !strings.Contains(hint, r.hint) {
				t.Errorf("hint %q", hint)
			}
			if count() != 0 {
				t.Error("something was written")
			}
			if r.scenario == "bare" && !errors.Is(err, backends.ErrNoFirmwareTools) {
				t.Error("it does not say that the tools are missing")
			}
		})
	}
}

func orHealthy(scenario string) string {
	if scenario == "" {
		return "healthy"
	}
	return scenario
}

// A connection that breaks anywhere leaves the card as it was requested.
func TestConnectionBreaks(t *testing.T) {
	for _, command := range []string{"mst", "mlxconfig"} {
		for _, nth := range []string{"1", "2", "3"} {
			for _, do := range []string{"drop", "drop-after"} {
				if command == "mst" && nth == "3" {
					continue
				}
				t.Run(command+" "+nth+" "+do, func(t *testing.T) {
					t.Parallel()
					l, h := start(t, "healthy")
					testclass.OK(t, l.World().Faults.Add("host=esx-01,command="+command+",nth="+nth+",do="+do))
					s, set := firmware("esx-01", cx4), h.Setters()[backends.KindFirmware]
					to := backends.ValueOf(cx4Wants("32"))
					testclass.OK(t, set.Set(t.Context(), s, to, nil))
					if got, err := set.Read(t.Context(), s); err != nil || got != to {
						t.Errorf("%s (%v)", got, err)
					}
					if n := writes(l)(); n != 1 {
						t.Errorf("written %d times", n)
					}
				})
			}
		}
	}
}

func TestToolHangs(t *testing.T) {
	l, _ := start(t, "healthy", "host=esx-01,command=flint,do=hang")
	h := limited(t, l.Dir(), l.World(), esxi.Options{Tool: 500 * time.Millisecond})
	all := h.Read(t.Context(), []string{"esx-01", "esx-02"}, 2, time.Minute)
	if !errors.Is(all["esx-01"].Err, ssh.ErrTooSlow) || all["esx-02"].Err != nil || len(all["esx-02"].Cards) != 2 {
		t.Errorf("%+v", all)
	}
}

// mst that was started before says so, and is not a failure.
func TestAlreadyStarted(t *testing.T) {
	l, h := start(t, "healthy", "command=/opt/mellanox/bin/mst start,do=fail:Module mst is already loaded")
	l.World().View(func(s *world.State) { s.Host("esx-01").MST = true })
	if got, err := cards(t, h, "esx-01"); err != nil || len(got) != 2 {
		t.Errorf("%v (%v)", got, err)
	}
}

// flint refuses some cards that mlxfwmanager still answers for.
func TestIdentityByTheOtherTool(t *testing.T) {
	_, h := start(t, "sriov-oem")
	if _, err := cards(t, h, "esx-02"); !errors.Is(err, backends.ErrNoFirmwareTools) {
		t.Errorf("bare: %v", err)
	}
	l, h := start(t, "healthy", "command=flint,do=fail:-E- Cannot open Device: x. MFE_CR_ERROR")
	l.World().View(func(s *world.State) {
		c := s.Host("esx-02").Card(cx5)
		c.PSID, c.Lanes = "DEL0000000027", 4
	})
	all, err := cards(t, h, "esx-02")
	testclass.OK(t, err)
	if c := all[cx5]; c.PSID != "DEL0000000027" || c.Slot != (backends.Slot{Gen: 3, Lanes: 4}) {
		t.Errorf("%+v", c)
	}
}

func TestNobodyAnswers(t *testing.T) {
	l, h := start(t, "healthy")
	testclass.OK(t, l.World().SetService("esx-01", "TSM-SSH", false))
	if _, err := cards(t, h, "esx-01"); backends.KindOf(err) != backends.KindUnreachable {
		t.Errorf("SSH is off: %v", err)
	}
	if _, err := cards(t, h, "esx-77"); backends.KindOf(err) != backends.KindUsage ||
		!strings.Contains(backends.HintOf(err), "esxi: addresses") {
		t.Errorf("no address: %v", err)
	}
	gate, err := net.Listen("tcp", "127.0.0.1:0")
	testclass.OK(t, err)
	addr := gate.Addr().(*net.TCPAddr)
	gate.Close() // nothing listens there now
	pool, err := ssh.NewPool(ssh.Config{Keys: []string{filepath.Join(l.Dir(), "id_ed25519")}})
	testclass.OK(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	h = esxi.New(pool, func(string) (ssh.Target, bool) {
		return ssh.Target{Class: "esxi", Host: "127.0.0.1", Port: addr.Port, User: "root"}, true
	}, esxi.Options{Start: 50 * time.Millisecond, Poll: 10 * time.Millisecond})
	if _, err := cards(t, h, "esx-01"); backends.KindOf(err) != backends.KindUnreachable ||
		!strings.Contains(err.Error(), "refused the connection") {
		t.Errorf("nothing listens: %v", err)
	}
}
