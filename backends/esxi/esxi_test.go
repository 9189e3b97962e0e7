package esxi_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/esxi"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const cx5, cx4 = "0000:3b:00.0", "0000:1a:00.0"

// start serves a lab and lets SSH in on all its hosts.
func start(t *testing.T, scenario string, faults ...string) (*lab.Lab, *esxi.Hosts) {
	t.Helper()
	l, err := lab.Start(t.Context(), lab.Options{Hosts: 2, VMs: 1, Scenario: scenario, Faults: faults, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, host := range []string{"esx-01", "esx-02"} {
		if err := l.World().SetService(host, "TSM-SSH", true); err != nil {
			t.Fatal(err)
		}
	}
	return l, shells(t, l, ssh.Config{Keys: []string{filepath.Join(l.Dir(), "id_ed25519")}})
}

// shells logs in to the hosts of a lab.
func shells(t *testing.T, l *lab.Lab, c ssh.Config) *esxi.Hosts {
	t.Helper()
	c.KnownHosts = []string{filepath.Join(l.Dir(), "known_hosts")}
	pool, err := ssh.NewPool(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return esxi.New(pool, addresses(l.World()), esxi.Options{Start: 2 * time.Second, Poll: 20 * time.Millisecond})
}

// limited logs in by key with other options.
func limited(t *testing.T, dir string, w *world.World, o esxi.Options) *esxi.Hosts {
	t.Helper()
	pool, err := ssh.NewPool(ssh.Config{Keys: []string{filepath.Join(dir, "id_ed25519")},
		KnownHosts: []string{filepath.Join(dir, "known_hosts")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return esxi.New(pool, addresses(w), o)
}

func addresses(w *world.World) func(host string) (ssh.Target, bool) {
	return func(host string) (ssh.Target, bool) {
		addr := ""
		w.View(func(s *world.State) {
			if h := s.Host(host); h != nil {
				addr = h.ShellAddr
			}
		})
		name, port, err := net.SplitHostPort(addr)
		if err != nil {
			return ssh.Target{}, false
		}
		n, err := strconv.Atoi(port)
		return ssh.Target{Class: "esxi", Host: name, Port: n, User: "root"}, err == nil
	}
}

func firmware(host, pci string) backends.Setting {
	return backends.Setting{Target: backends.HostRef(host), Kind: backends.KindFirmware, Name: pci}
}

// writes counts what mlxconfig has set.
func writes(l *lab.Lab) func() int {
	return func() int {
		n := 0
		for _, e := range l.World().Log.Events() {
			if e.What == world.HostHardware && len(e.Detail) > 9 && e.Detail[:9] == "mlxconfig" {
				n++
			}
		}
		return n
	}
}

// cards asks one host for its cards.
func cards(t *testing.T, h *esxi.Hosts, host string) (map[string]backends.Firmware, error) {
	t.Helper()
	r := h.Read(t.Context(), []string{host}, 1, time.Minute)[host]
	return r.Cards, r.Err
}

func value(pairs map[string]string) backends.Value { return backends.ValueOf(pairs) }

func TestContract(t *testing.T) {
	l, h := start(t, "healthy")
	vpi := func(on, vfs, link2 string) backends.Value {
		return value(map[string]string{"SRIOV_EN": on, "NUM_OF_VFS": vfs, "LINK_TYPE_P1": "2", "LINK_TYPE_P2": link2,
			"ADVANCED_PCI_SETTINGS": "0"})
	}
	t.Run("VPI card", func(t *testing.T) {
		s := firmware("esx-01", cx5)
		missing := s
		missing.Target = backends.HostRef("no-such-host")
		settertest.Run(t, settertest.Case{Setter: h.Setters()[s.Kind], Setting: s, Missing: missing, Writes: writes(l),
			Values: []backends.Value{vpi("1", "64", "2"), vpi("0", "8", "1"), vpi("1", "127", "2")}})
	})
	t.Run("Ethernet card without LINK_TYPE", func(t *testing.T) {
		s := firmware("esx-02", cx4)
		settertest.Run(t, settertest.Case{Setter: h.Setters()[s.Kind], Setting: s, Writes: writes(l), Missing: firmware("esx-02", "0000:99:00.0"),
			Values: []backends.Value{value(map[string]string{"SRIOV_EN": "0", "NUM_OF_VFS": "8", "ADVANCED_PCI_SETTINGS": "0"}),
				value(map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": "32", "ADVANCED_PCI_SETTINGS": "1"})}})
	})
}

// The index of a card differs between hosts, so cards are told apart by their PCI address alone.
func TestCards(t *testing.T) {
	_, h := start(t, "sriov-half")
	all := h.Read(t.Context(), []string{"esx-01", "esx-02"}, 2, time.Minute)
	for _, host := range []string{"esx-01", "esx-02"} {
		r := all[host]
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		five, four := r.Cards[cx5], r.Cards[cx4]
		if len(r.Cards) != 2 || five.PSID != "MT_0000000009" || five.Slot != (backends.Slot{Gen: 3, Lanes: 16}) || four.PSID != "MT_2420110034" {
			t.Errorf("%s: %+v", host, r.Cards)
		}
		if five.Current["SRIOV_EN"] != "0" || five.Next["SRIOV_EN"] != "1" || five.Current["NUM_OF_VFS"] != "8" ||
			five.Next["NUM_OF_VFS"] != "16" {
			t.Errorf("%s: current %v, next %v", host, five.Current, five.Next)
		}
		if _, has := four.Next["LINK_TYPE_P1"]; has || five.Next["LINK_TYPE_P1"] != "2" {
			t.Errorf("%s: LINK_TYPE of the Ethernet card %v, of the VPI card %v", host, four.Next, five.Next)
		}
	}
}

// What the shell tells beside the cards: each fact stands alone.
func TestSecureBootAndLog(t *testing.T) {
	line := "2024-05-01T10:00:00.000Z cpu3:2097)WARNING: PCI: 812: Out of Interrupt Vectors"
	l, h := start(t, "healthy", "host=esx-02,command=grep,do=fail:grep: /var/log/vmkernel.log: No such file or directory",
		"host=esx-02,command=secureBoot.py,do=fail:no")
	l.World().View(func(s *world.State) {
		s.Host("esx-01").SecureBoot, s.Host("esx-01").KernelLog = true, []string{"2024-05-01T10:00:00.000Z cpu3:2097)nothing", line}
		s.Host("esx-02").VIBs = slices.DeleteFunc(s.Host("esx-02").VIBs, func(v world.VIB) bool { return v.Name == "mft" })
	})
	all := h.Read(t.Context(), []string{"esx-01", "esx-02"}, 2, time.Minute)
	if r := all["esx-01"]; r.Err != nil || r.SecureBoot == nil || !*r.SecureBoot || !slices.Equal(r.Log, []string{line}) || len(r.Cards) != 2 {
		t.Errorf("%+v", r)
	}
	if r := all["esx-02"]; !errors.Is(r.Err, backends.ErrNoFirmwareTools) || r.SecureBoot != nil {
		t.Errorf("%+v", r)
	}
	_, h = start(t, "healthy", "command=mlxlink,do=fail:-E- Unsupported device")
	if r := h.Read(t.Context(), []string{"esx-01"}, 1, time.Minute)["esx-01"]; r.Err != nil || r.SecureBoot == nil || *r.SecureBoot ||
		r.Log == nil || len(r.Log) > 0 || r.Cards[cx5].Slot != (backends.Slot{}) {
		t.Errorf("%+v", r)
	}
}

func TestLoginByPassword(t *testing.T) {
	l, _ := start(t, "healthy")
	h := shells(t, l, ssh.Config{Password: func(context.Context, ssh.Target) (string, error) { return l.World().Secrets.ESXi, nil }})
	if got, err := cards(t, h, "esx-01"); err != nil || len(got) != 2 {
		t.Errorf("%v (%v)", got, err)
	}
	h = shells(t, l, ssh.Config{Password: func(context.Context, ssh.Target) (string, error) { return "wrong", nil }})
	_, err := cards(t, h, "esx-01")
	if backends.KindOf(err) != backends.KindAuth || backends.HintOf(err) == "" {
		t.Errorf("%v (hint %q)", err, backends.HintOf(err))
	}
}
