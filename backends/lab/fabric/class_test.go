package fabric_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/fabric"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// Each scenario of the physical network affects a flow in its own way. The path leads from the last host, where the scenarios
// that affect one port have their fault, to the first.
func TestSwitchQueues(t *testing.T) {
	const dscp26 = 26<<2 | 2
	for name, tc := range map[string]struct {
		scenario             string
		crowd                float64
		sentIn, arrivedIn    int
		paused, lost, marked bool
		back                 bool // the path leads in the opposite direction
	}{
		"nothing is congested":              {scenario: "sriov-ready", sentIn: 3, arrivedIn: 3},
		"lossless and marked":               {scenario: "sriov-ready", crowd: 1, sentIn: 3, arrivedIn: 3, paused: true, marked: true},
		"a port that does not pause, alone": {scenario: "broken-pfc-priority", sentIn: 3, arrivedIn: 3},
		"a port that does not pause":        {scenario: "broken-pfc-priority", crowd: 1, sentIn: 3, arrivedIn: 3, lost: true, marked: true},
		"its neighbours are well": {scenario: "broken-pfc-priority", crowd: 1, sentIn: 3, arrivedIn: 3, paused: true, marked: true,
			back: true},
		"no port pauses":  {scenario: "broken-pfc-switch", crowd: 1, sentIn: 3, arrivedIn: 3, lost: true, marked: true, back: true},
		"no trust, alone": {scenario: "broken-dscp-trust", sentIn: 3},
		"no trust":        {scenario: "broken-dscp-trust", crowd: 1, sentIn: 3, lost: true},
		"no marks":        {scenario: "broken-ecn", crowd: 1, sentIn: 3, arrivedIn: 3, paused: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := scenario.New(scenario.Spec{Hosts: 3, VMs: 3, Scenario: tc.scenario})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			p := fabric.Path{Ports: []fabric.Port{{Host: "esx-03", PNIC: "vmnic2"}, {Host: "esx-01", PNIC: "vmnic2"}}}
			if tc.back {
				p.Ports[0], p.Ports[1] = p.Ports[1], p.Ports[0]
			}
			f := fabric.Flow{TrafficClass: dscp26, Bytes: 4096 << 20, Packets: 1 << 20, Crowd: tc.crowd}
			var e fabric.Effect
			w.View(func(s *world.State) { e = p.Transmit(s, f) })
			if e.SentIn != tc.sentIn || e.ArrivedIn != tc.arrivedIn || e.Paused > 0 != tc.paused || e.Lost > 0 != tc.lost ||
				e.Marked > 0 != tc.marked {
				t.Errorf("%+v", e)
			}
			if (e.Left < 0.9) != tc.lost {
				t.Errorf("%.2f of the speed is left", e.Left)
			}
			p.Count(w, f, e)
			w.View(func(s *world.State) {
				from, to := s.Host(p.Ports[0].Host).PNIC("vmnic2").Priorities, s.Host(p.Ports[1].Host).PNIC("vmnic2").Priorities
				if from[3].TxBytes != f.Bytes || from[3].RxPause != e.Paused || to[tc.arrivedIn].RxBytes != f.Bytes {
					t.Errorf("from %+v to %+v", from, to)
				}
			})
		})
	}
}

// The directions of a port are independent, and an incast affects only the ports that take part in it.
func TestSharesByDirectionAndSender(t *testing.T) {
	port := func(host string) fabric.Port { return fabric.Port{Host: host, PNIC: "vmnic2"} }
	ab := fabric.Path{Ports: []fabric.Port{port("a"), port("b")}}
	ba := fabric.Path{Ports: []fabric.Port{port("b"), port("a")}}
	cb := fabric.Path{Ports: []fabric.Port{port("c"), port("b")}}
	var l fabric.Load
	defer l.Start(ab)()
	defer l.Start(ba)()
	if l.Share(ab) != 1 || l.Share(ba) != 1 || l.Senders(ab) != 1 {
		t.Errorf("two directions: shares %v %v, %d senders", l.Share(ab), l.Share(ba), l.Senders(ab))
	}
	end := l.Start(cb)
	if l.Share(ab) != 0.5 || l.Share(cb) != 0.5 || l.Share(ba) != 1 || l.Senders(cb) != 2 || l.Senders(ba) != 1 {
		t.Errorf("incast: shares %v %v %v, %d and %d senders", l.Share(ab), l.Share(cb), l.Share(ba), l.Senders(cb), l.Senders(ba))
	}
	end()
	second := l.Start(ab) // two tests from one port are not an incast
	defer second()
	if l.Senders(ab) != 1 || l.Share(ab) != 0.5 {
		t.Errorf("%d senders, share %v", l.Senders(ab), l.Share(ab))
	}
}

// A card that is slowed down is slower only at the message sizes that are affected.
func TestSlowCards(t *testing.T) {
	sound := fabric.Path{Reachable: true, RDMA: true, LinkMbps: 100000, MTU: 9000}
	gbps := func(p fabric.Path, size int) float64 { return p.Gbps(size, 4096, 1, "s") }
	small, large, narrow, far := sound, sound, sound, sound
	small.Small, large.Large, narrow.SlotGbps, far.Hops = 0.3, 0.5, 28, 2
	if gbps(small, 1024) > 0.5*gbps(sound, 1024) || gbps(small, 1<<20) < 0.98*gbps(sound, 1<<20) {
		t.Errorf("small messages: %.1f and %.1f Gb/s", gbps(small, 1024), gbps(small, 1<<20))
	}
	if gbps(large, 64<<10) < 0.98*gbps(sound, 64<<10) || gbps(large, 128<<10) > 0.6*gbps(sound, 128<<10) {
		t.Errorf("large messages: %.1f and %.1f Gb/s", gbps(large, 64<<10), gbps(large, 128<<10))
	}
	if g := gbps(narrow, 1<<20); g > 28.2 || g < 27 {
		t.Errorf("four lanes: %.1f Gb/s", g)
	}
	if more := far.Latency(2, 4096, 1, "s") - sound.Latency(2, 4096, 1, "s"); more < 0.5 || more > 2 {
		t.Errorf("two hops add %.2f us", more)
	}
}
