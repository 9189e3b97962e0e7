package fabric_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/fabric"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// done returns a data center that is fully configured: vm-01 and vm-03 are on esx-01, vm-02 and vm-04 on esx-02.
func done(t *testing.T) *world.World {
	t.Helper()
	w, err := scenario.New(scenario.Spec{Hosts: 2, VMs: 4, Scenario: "done"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func between(w *world.World, a, b string, change func(s *world.State)) fabric.Path {
	var p fabric.Path
	w.View(func(s *world.State) {
		if change != nil {
			change(s)
		}
		end := func(name string) fabric.End {
			e := fabric.End{VM: name, MTU: 9000, Up: true}
			if v := s.VM(name); v != nil && len(v.RDMA()) > 0 {
				e.MAC = v.RDMA()[0].MAC
			}
			return e
		}
		p = fabric.Between(s, end(a), end(b))
	})
	return p
}

func TestHealthyPath(t *testing.T) {
	p := between(done(t), "vm-01", "vm-02", nil)
	if !p.Reachable || !p.RDMA || p.SameHost || p.LinkMbps != 100000 || p.MTU != 9000 || p.Why != "" {
		t.Errorf("%+v", p)
	}
	if len(p.Ports) != 2 || p.Ports[0] != (fabric.Port{Host: "esx-01", PNIC: "vmnic2"}) || len(p.Devices) != 2 ||
		p.Devices[1].Host != "esx-02" {
		t.Errorf("%+v", p)
	}
}

func TestSameHostNeedsNoAdapter(t *testing.T) {
	p := between(done(t), "vm-01", "vm-03", func(s *world.State) {
		h := s.Host("esx-01")
		h.PNIC("vmnic2").LinkUp = false
		h.PNIC("vmnic2").RDMA = nil
		h.Ruleset("pvrdma").Enabled = false
	})
	if !p.Reachable || !p.RDMA || !p.SameHost || len(p.Ports)+len(p.Devices) != 0 {
		t.Errorf("%+v", p)
	}
}

func TestUnreachable(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *world.State)
		why    string
	}{
		"machine off":           {func(s *world.State) { s.VM("vm-02").On = false }, "vm-02 is off"},
		"adapter not connected": {func(s *world.State) { s.VM("vm-02").RDMA()[0].Connected = false }, "not connected"},
		"host down":             {func(s *world.State) { s.Host("esx-02").State = world.Down }, "esx-02 does not answer"},
		"host is no member": {func(s *world.State) { d := s.Switch("RDMA-DVS"); d.Members = d.Members[:1] },
			"esx-02 is no member of RDMA-DVS"},
		"member without uplink": {func(s *world.State) { s.Switch("RDMA-DVS").Member("esx-02").PNICs = nil }, "esx-02 has no uplink"},
		"cable out":             {func(s *world.State) { s.Host("esx-02").PNIC("vmnic2").LinkUp = false }, "esx-02 has no uplink"},
		"port group gone":       {func(s *world.State) { s.Switch("RDMA-DVS").PortGroups = nil }, "has no port group RDMA-PG"},
		"other VLAN": {func(s *world.State) {
			d := s.Switch("RDMA-DVS")
			pg := *d.PortGroup("RDMA-PG")
			pg.Name, pg.VLAN = "other", 7
			d.PortGroups = append(d.PortGroups, &pg)
			s.VM("vm-02").RDMA()[0].PortGroup = "other"
		}, "VLAN 0 of vm-01 is not VLAN 7 of vm-02"},
		"other switch, without a cable": {func(s *world.State) {
			d := *s.Switch("RDMA-DVS")
			d.Name, d.Members = "second", []*world.Member{{Host: "esx-01"}, {Host: "esx-02"}}
			s.Switches = append(s.Switches, &d)
			s.VM("vm-02").RDMA()[0].DVS = "second"
		}, "different networks"},
	} {
		t.Run(name, func(t *testing.T) {
			p := between(done(t), "vm-01", "vm-02", tc.change)
			if p.Reachable || p.RDMA || !strings.Contains(p.Why, tc.why) {
				t.Errorf("%+v", p)
			}
			if p.Gbps(65536, 4096, 1, "") != 0 {
				t.Error("traffic on a path that does not exist")
			}
		})
	}
}

func TestFallbackToTCP(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *world.State)
		why    string
	}{
		"PVRDMA and vSphere Bitfusion: the firewall ruleset is closed on one host": {func(s *world.State) {
			s.Host("esx-02").Ruleset("pvrdma").Enabled = false
		}, "pvrdma is closed on esx-02"},
		"the ruleset names other addresses": {func(s *world.State) {
			r := s.Host("esx-01").Ruleset("pvrdma")
			r.AllIP, r.Networks = false, []string{"192.0.2.0/24"}
		}, "does not let 10.10.0.12 in"},
		"PVRDMA and vSphere Bitfusion: Net.PVRDMAVmknic is empty": {func(s *world.State) { s.Host("esx-01").Options["Net.PVRDMAVmknic"] = "" },
			"Net.PVRDMAVmknic of esx-01"},
		"steps 1.7: the quotes are no part of it": {func(s *world.State) { s.Host("esx-01").Options["Net.PVRDMAVmknic"] = `"vmk0"` },
			"Net.PVRDMAVmknic of esx-01"},
		"the vmknics do not meet": {func(s *world.State) {
			h := s.Host("esx-01")
			h.VMKs = append(h.VMKs, &world.VMK{Device: "vmk3", IP: "192.0.2.1", Prefix: 24})
			h.Options["Net.PVRDMAVmknic"] = "vmk3"
		}, "does not reach"},
		"no RDMA device": {func(s *world.State) { s.Host("esx-02").PNIC("vmnic2").RDMA = nil }, "vmnic2 of esx-02 has no RDMA device"},
		"V-PVSUP: the HCA is the only uplink": {func(s *world.State) {
			d := s.Switch("RDMA-DVS")
			d.Uplinks = append(d.Uplinks, "b")
			m := d.Member("esx-01")
			m.PNICs = append(m.PNICs, "vmnic3")
		}, "more than one uplink"},
		"the protocols differ":   {func(s *world.State) { s.VM("vm-02").RDMA()[0].Protocol = "rocev1" }, "speaks rocev1"},
		"iWARP only":             {func(s *world.State) { r := s.Host("esx-02").PNIC("vmnic2").RDMA; r.RoCEv2 = false }, "does not speak rocev2"},
		"one adapter is vmxnet3": {func(s *world.State) { s.VM("vm-02").RDMA()[0].Type = world.Other }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := done(t)
			var mac string
			w.View(func(s *world.State) { mac = s.VM("vm-02").RDMA()[0].MAC })
			p := between(w, "vm-01", "vm-02", tc.change)
			if tc.why == "" {
				w.View(func(s *world.State) {
					p = fabric.Between(s, fabric.End{VM: "vm-01", MAC: s.VM("vm-01").RDMA()[0].MAC, MTU: 9000, Up: true},
						fabric.End{VM: "vm-02", MAC: mac, MTU: 9000, Up: true})
				})
			}
			if !p.Reachable || p.RDMA || !strings.Contains(p.Why, tc.why) || p.Why == "" {
				t.Fatalf("%+v", p)
			}
			if len(p.Devices) != 0 {
				t.Errorf("counters of %v would move", p.Devices)
			}
			if bw, us := p.Gbps(1<<20, 4096, 1, "x"), p.Latency(2, 4096, 1, "x"); bw < 10 || bw > 30 || us < 20 {
				t.Errorf("%.1f Gb/s, %.1f us", bw, us)
			}
		})
	}
}

func TestRates(t *testing.T) {
	sound := fabric.Path{Reachable: true, RDMA: true, LinkMbps: 100000, MTU: 9000}
	near := func(t *testing.T, what string, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance*want {
			t.Errorf("%s: %.2f, want %.2f", what, got, want)
		}
	}
	// RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022): ConnectX-5 100G between VMs.
	for size, want := range map[int]float64{64: 2.78, 1024: 43.7, 4096: 88.2, 8192: 93.8, 65536: 96.6, 8 << 20: 96.2} {
		near(t, "S2", sound.Gbps(size, 4096, 1, "s"), want, 0.06)
	}
	// The headers and the gap of a RoCEv2 packet are 82 bytes (IEEE 802.3; InfiniBand Architecture, Annex A17): goodput is
	// mtu/(mtu+82), with a tag mtu/(mtu+86).
	for mtu, cap := range map[int]float64{4096: 98.0, 2048: 96.2, 1024: 92.6, 512: 86.2} {
		got := sound.Gbps(1<<20, mtu, 1, "s")
		if got > cap || got < cap*0.97 {
			t.Errorf("MTU %d: %.2f Gb/s of %.2f", mtu, got, cap)
		}
	}
	tagged := sound
	tagged.Tagged = true
	if tagged.Gbps(1<<20, 1024, 1, "s") >= sound.Gbps(1<<20, 1024, 1, "s") {
		t.Error("a VLAN tag costs nothing")
	}
	near(t, "half a port", sound.Gbps(1<<20, 4096, 0.5, "s"), sound.Gbps(1<<20, 4096, 1, "s")/2, 0.02)
	if us := sound.Latency(2, 4096, 1, "s"); us < 2 || us > 8 {
		t.Errorf("latency of 2 bytes: %.2f us", us)
	}
	if sound.Latency(65536, 4096, 1, "s") < sound.Latency(2, 4096, 1, "s")+5 {
		t.Error("64 KiB take no longer than 2 bytes")
	}
	if sound.Gbps(4096, 4096, 1, "a") == sound.Gbps(4096, 4096, 1, "b") || sound.Gbps(4096, 4096, 1, "a") != sound.Gbps(4096, 4096, 1, "a") {
		t.Error("the jitter depends on something else than its salt")
	}
}

func TestCarries(t *testing.T) {
	small := fabric.Path{Reachable: true, RDMA: true, MTU: 1500}
	if !small.Carries(1024, 4096) || small.Carries(4096, 4096) || !small.Carries(1<<20, 1024) {
		t.Error("a switch of 1500 bytes passes 1024 and drops 4096")
	}
	if tcp := (fabric.Path{Reachable: true, MTU: 1500}); !tcp.Carries(4096, 4096) {
		t.Error("TCP cuts its segments itself")
	}
}

func TestLoad(t *testing.T) {
	var l fabric.Load
	p := fabric.Path{Ports: []fabric.Port{{Host: "a", PNIC: "0"}, {Host: "b", PNIC: "0"}}}
	q := fabric.Path{Ports: []fabric.Port{{Host: "a", PNIC: "0"}, {Host: "c", PNIC: "0"}}}
	r := fabric.Path{Ports: []fabric.Port{{Host: "c", PNIC: "1"}}}
	end := l.Start(p)
	if l.Share(p) != 1 || l.Share(q) != 1 {
		t.Error("alone and yet shared")
	}
	endQ := l.Start(q)
	defer l.Start(r)()
	if l.Share(p) != 0.5 || l.Share(q) != 0.5 || l.Share(r) != 1 {
		t.Errorf("shares %v %v %v", l.Share(p), l.Share(q), l.Share(r))
	}
	end()
	endQ()
	if l.Share(q) != 1 {
		t.Error("the share did not come back")
	}
}

// Two ports of a card share its PCIe slot, and two cards below a PCIe switch share its uplink. When both are used at the same
// time, each gets half of the rate.
func TestPCIeLinksAreShared(t *testing.T) {
	slot := func(at string, in bool) fabric.Link { return fabric.Link{Host: "a", At: at, In: in, Gbps: 115} }
	on := func(pnic string, links ...fabric.Link) fabric.Path {
		return fabric.Path{Reachable: true, RDMA: true, VF: true, MTU: 9216, LinkMbps: 100_000,
			Ports: []fabric.Port{{Host: "a", PNIC: pnic}, {Host: "b", PNIC: pnic}}, Links: links}
	}
	gbps := func(l *fabric.Load, p fabric.Path) float64 {
		p.SlotGbps = l.Slot(p)
		return p.Gbps(1<<20, 4096, l.Share(p), "")
	}
	about := func(what string, got, want, within float64) {
		t.Helper()
		if got < want*(1-within) || got > want*(1+within) {
			t.Errorf("%s: %.1f, want about %.1f", what, got, want)
		}
	}
	var l fabric.Load
	p, q, back := on("0", slot("3b", false)), on("1", slot("3b", false)), on("1", slot("3b", true))
	defer l.Start(p)()
	about("alone", gbps(&l, p), 96.6, 0.02)
	endBack := l.Start(back)
	about("beside the other direction", gbps(&l, p), 96.6, 0.02)
	endBack()
	end := l.Start(q)
	about("beside the other port", gbps(&l, p), 57.5, 0.02)
	end()
	about("alone again", gbps(&l, p), 96.6, 0.02)
	up := fabric.Link{Host: "a", At: "31", Switch: true, Gbps: 115}
	x, y := on("2", slot("5b", false), up), on("3", slot("5d", false), up)
	defer l.Start(x)()
	defer l.Start(y)()
	about("below one switch", gbps(&l, x), 57.5, 0.02)
	if l.Slot(x.BelowSwitches()) != 115 {
		t.Errorf("what stays below the switch has %.0f Gb/s", l.Slot(x.BelowSwitches()))
	}
}
