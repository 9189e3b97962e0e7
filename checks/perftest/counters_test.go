package perftest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// inClass measures between two guests with the given counters, in the class of DSCP 26 with ECN.
func inClass(t *testing.T, g *guests, c *perftest.Class) []perftest.Measurement {
	t.Helper()
	r := perftest.Runner{Shell: g, Mode: "sriov", Bandwidth: true, Latency: true, Loss: true, Class: c}
	all, err := r.Measure(context.Background(), pairOf(100_000))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var dscp26 = &perftest.Class{Priority: 3, TrafficClass: 106}

func TestEveryTestRunsInTheConfiguredClass(t *testing.T) {
	g := &guests{gbps: 97, one: 1, us: 2}
	for _, m := range inClass(t, g, dscp26) {
		if !strings.Contains(m.Command, "ib_send_") || !strings.Contains(m.Command, " --tclass=106 ") || m.TrafficClass != 106 {
			t.Errorf("%s: traffic class %d, %s", m.Test, m.TrafficClass, m.Command)
		}
		if m.ClassProven || m.Class == nil || m.Class.Verdict != perftest.VerdictUnknown ||
			!strings.HasPrefix(m.Class.Evidence, "class configured, not proven") || m.Verdict != perftest.VerdictPass {
			t.Errorf("%s: %s, class %+v", m.Test, m.Verdict, m.Class)
		}
	}
	for _, line := range g.lines {
		if !strings.Contains(line, " --tclass=106 ") {
			t.Errorf("the client ran outside of the class: %s", line)
		}
	}
	for _, m := range inClass(t, &guests{gbps: 97, one: 1, us: 2}, nil) {
		if strings.Contains(m.Command, "tclass") || m.TrafficClass != 0 || m.Class != nil || m.Lossless != nil {
			t.Errorf("%s: a class that nobody configured: %d, %s", m.Test, m.TrafficClass, m.Command)
		}
	}
}

// The fake sends 1000 messages of 64 KiB: 65536000 bytes, 16000 packets. The names of the counters are those of kernel
// mlx5 counters.rst and of drivers/infiniband/sw/rxe/rxe_hw_counters.c.
func TestCountersProveClassAndLoss(t *testing.T) {
	const zero = "out_of_sequence 7\npacket_seq_err 0\ncompleter_retry_err 1\nrx_prio0_bytes 10\ntx_prio0_bytes 10\nrx_prio3_bytes " +
		"10\ntx_prio3_bytes 10\nrx_prio3_pause 4\nlifespan 10\nrx_discards_phy 0\nrx_prio3_discards 0\n"
	for _, c := range []struct {
		name            string
		class           *perftest.Class
		from, to        string // counters after the test; "" unchanged
		verdict         perftest.Verdict
		proof, lossless perftest.Verdict
		says            string // in a hint or an evidence
	}{
		{"in the class", dscp26, "tx_prio3_bytes 70000010", "rx_prio3_bytes 70000010", "pass", "pass", "unknown", "rx_prio3_bytes of vm-2"},
		{"switch trusts no DSCP", dscp26, "tx_prio3_bytes 70000010", "rx_prio0_bytes 70000010", "pass", "fail", "unknown",
			"set every port of the path to trust DSCP"},
		{"sender maps another priority", dscp26, "tx_prio0_bytes 70000010", "rx_prio0_bytes 70000010", "pass", "fail", "unknown",
			"trust of the sender's NIC"},
		{"a few bytes of others prove nothing", dscp26, "tx_prio3_bytes 510", "rx_prio3_bytes 510", "pass", "unknown", "unknown", "not proven"},
		{"paused and nothing lost", dscp26, "rx_prio3_pause 900", "rx_prio3_bytes 70000010", "pass", "pass", "pass",
			"896 pause frames of priority 3"},
		{"lost in the class", dscp26, "packet_seq_err 3", "out_of_sequence 12", "fail", "unknown", "fail", "out_of_sequence +5 on vm-2"},
		{"a shared port throws away", dscp26, "packet_seq_err 0", "rx_discards_phy 9", "warn", "unknown", "unknown",
			"may or may not belong to the class: rx_discards_phy +9"},
		{"a port throws away of the class", dscp26, "packet_seq_err 0", "rx_prio3_discards 9", "fail", "unknown", "fail",
			"rx_prio3_discards +9 on vm-2"},
		{"1 % lost without a class", nil, "packet_seq_err 160", "out_of_sequence 167", "fail", "", "", "packet_seq_err +160 on vm-1"},
		{"soft-RoCE, 1 % lost", nil, "completer_retry_err 161", "", "fail", "", "", "completer_retry_err +160 on vm-1"},
		{"one repeated packet", nil, "", "out_of_sequence 8", "warn", "", "", "out_of_sequence +1 on vm-2"},
	} {
		after := func(changed string) string {
			out := ""
			for _, l := range strings.Split(zero, "\n") {
				name, _, _ := strings.Cut(l, " ")
				if name != "" && !strings.Contains("\n"+changed, "\n"+name+" ") {
					out += l + "\n"
				}
			}
			return out + changed + "\n"
		}
		g := &guests{gbps: 97, one: 1, us: 2, before: map[string]string{"vm-1": zero, "vm-2": zero},
			after: map[string]string{"vm-1": after(c.from), "vm-2": after(c.to)}}
		m := inClass(t, g, c.class)[0]
		proof := func(p *perftest.Proof) perftest.Verdict {
			if p == nil {
				return ""
			}
			return p.Verdict
		}
		if m.Verdict != c.verdict || proof(m.Class) != c.proof || proof(m.Lossless) != c.lossless ||
			m.ClassProven != (c.proof == perftest.VerdictPass) {
			t.Errorf("%s: %s, class %s, lossless %s; %s %+v %+v", c.name, m.Verdict, proof(m.Class), proof(m.Lossless), m.Hint, m.Class, m.Lossless)
		}
		if said := m.Hint + m.Class.Words("class") + m.Lossless.Words("lossless"); !strings.Contains(said, c.says) {
			t.Errorf("%s: %q does not say %q", c.name, said, c.says)
		}
		if m.Counters == nil || m.Counters.To["lifespan"] != 0 {
			t.Errorf("%s: %+v", c.name, m.Counters)
		}
	}
}

// Words of 4 bytes in port_xmit_data (kernel, sysfs-class-infiniband) beyond those of the test are traffic of others, and then a bad
// result has another hint; the priorities of a pNIC count too.
func TestTrafficOfOthers(t *testing.T) {
	const zero = "port_xmit_data 0\nport_rcv_data 0\ntx_prio0_bytes 7\npacket_seq_err 0\n"
	const idle = "port_xmit_data 900000000000" // read while no test runs
	for _, c := range []struct {
		name     string
		gbps     float64
		from, to string
		verdict  perftest.Verdict
		says     string
	}{
		{"slow, and only its own", 40, "port_xmit_data 16384000\nport_rcv_data 0", "port_rcv_data 16384000", "fail", "check for loss"},
		{"slow, sent by others of the VM", 40, "port_xmit_data 900000000000\nport_rcv_data 0", "port_rcv_data 16384000", "warn",
			"measured beside other traffic: 100.0 Gb/s, which"},
		{"slow, received by others", 40, "port_xmit_data 16384000\nport_rcv_data 0", "port_rcv_data 900000000000", "warn",
			"measured beside other traffic: 100.0 Gb/s, which"},
		{"slow, and the other way", 40, "port_xmit_data 16384000\nport_rcv_data 900000000000", "port_rcv_data 16384000", "warn",
			"measured beside other traffic: 100.0 Gb/s, which"},
		{"slow, on the whole port", 40, "port_xmit_data 16384000\ntx_prio0_bytes 900000000000", "", "warn",
			"measured beside other traffic: 100.0 Gb/s, which"},
		{"slow, and losses are not counted", 40, "port_xmit_data 900000000000", "", "unknown",
			"measured beside other traffic: 100.0 Gb/s, or sent again"},
		{"fast beside others", 97, "port_xmit_data 900000000000", "", "pass", ""},
		{"slow, and others sent before it", 40, idle, "", "unknown", "measured beside other traffic: 100.0 Gb/s while no test ran; measure"},
		{"slow, and a full port before it", 40, "port_xmit_data 1900000000000", "", "warn", "which is what the link carries together"},
	} {
		g := &guests{gbps: c.gbps, one: 1, us: 2, before: map[string]string{"vm-1": zero, "vm-2": zero},
			after: map[string]string{"vm-1": c.from + "\n", "vm-2": c.to + "\n"}}
		if strings.Contains(c.name, "before it") { // the losses are not counted
			g.idle = map[string]string{"vm-1": idle, "vm-2": zero}
			m := inClass(t, g, nil)[0]
			if m.Verdict != c.verdict || !strings.Contains(m.Hint, c.says) {
				t.Errorf("%s: %s %q", c.name, m.Verdict, m.Hint)
			}
			continue
		}
		if c.name != "slow, and losses are not counted" {
			g.after["vm-1"] += "packet_seq_err 0\n"
		}
		m := inClass(t, g, nil)[0]
		if m.Verdict != c.verdict || !strings.Contains(m.Hint, c.says) || (m.OtherGbps > 0) == (c.verdict == perftest.VerdictFail) {
			t.Errorf("%s: %s, %.1f Gb/s of others, %q", c.name, m.Verdict, m.OtherGbps, m.Hint)
		}
	}
}

// Losslessness is proven only if both ends were read.
func TestLosslessTakesTheCountersOfBothEnds(t *testing.T) {
	const sender, receiver = "packet_seq_err 0\nrx_prio3_pause 4\ntx_prio3_bytes 10\n", "rx_prio3_bytes 10\n"
	g := &guests{
		gbps: 97, one: 1, us: 2, before: map[string]string{"vm-1": sender, "vm-2": receiver},
		after: map[string]string{"vm-1": "packet_seq_err 0\nrx_prio3_pause 900\ntx_prio3_bytes 70000010\n", "vm-2": "rx_prio3_bytes 70000010\n"},
	}
	m := inClass(t, g, dscp26)[0]
	if !m.ClassProven || m.Lossless == nil || m.Lossless.Verdict != perftest.VerdictUnknown ||
		!strings.Contains(m.Lossless.Evidence, "at one end only") {
		t.Errorf("class %+v, lossless %+v", m.Class, m.Lossless)
	}
}

// Counters of a host's RDMA device that decreased were reset: that is not a TCP fallback.
func TestResetCountersProveNothing(t *testing.T) {
	said := int64(1 << 32)
	r := perftest.Runner{
		Shell: &guests{gbps: 23, one: 1, us: 5}, Mode: "pvrdma", Bandwidth: true,
		Counters: func(context.Context, string, string) (int64, error) {
			said /= 2
			return said, nil
		},
	}
	all, err := r.Measure(context.Background(), pairOf(25_000))
	if err != nil || len(all) == 0 || all[0].Packets != nil || all[0].Verdict != perftest.VerdictPass {
		t.Errorf("%v %+v", err, all)
	}
}

// With -b each end sends the printed amount, and its counters grow by that.
func TestBothDirectionsProveTheClass(t *testing.T) {
	const zero = "tx_prio3_bytes 10\nrx_prio3_bytes 10\npacket_seq_err 0\n"
	const moved = "tx_prio3_bytes 70000010\nrx_prio3_bytes 70000010\npacket_seq_err 0\n"
	both := map[string]string{"vm-1": zero, "vm-2": zero}
	g := &guests{gbps: 193, one: 1, us: 2, before: both, after: map[string]string{"vm-1": moved, "vm-2": moved}}
	r := perftest.Runner{Shell: g, Mode: "sriov", Bandwidth: true, Loss: true, Class: dscp26}
	all, err := r.Measure(context.Background(), pairOf(200_000))
	at := slices.IndexFunc(all, func(m perftest.Measurement) bool { return m.Test == perftest.SendBothWays })
	if err != nil || at < 0 || !all[at].ClassProven {
		t.Errorf("%v %+v", err, all)
	}
}
