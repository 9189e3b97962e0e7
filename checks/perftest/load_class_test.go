package perftest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// A flow that breaks off while it sends is still judged by its counters: exhausted retries are the worst kind of loss, and a
// standstill under pause frames ends in the same way. A counter that could not be read is not a fault of a port.
func TestFlowsThatBreakOffUnderLoad(t *testing.T) {
	const quiet = "packet_seq_err 0\nout_of_sequence 0\nrx_prio3_pause 0\nnp_ecn_marked_roce_packets 7\n"
	for name, tc := range map[string]struct {
		counters string // of vm-01, in the rounds in which it sends
		fails    bool
		lossless perftest.Verdict
		says     string
		not      string
	}{
		"retries used up, no pause":        {"packet_seq_err 40\nrx_prio3_pause 0\n", true, "fail", "at the switch port of esx-01 vmnic2", ""},
		"retries used up under pause":      {"packet_seq_err 0\nrx_prio3_pause 90000\n", true, "fail", "PFC deadlock is suspected", ""},
		"broken off, nothing counted":      {quiet, true, "unknown", "was interrupted", ""},
		"loss, pause frames were not read": {"packet_seq_err 40\nout_of_sequence 0\n", false, "fail", "could not be read", "not in force"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, all := newBusy(), loadNodes(3)
				if tc.fails {
					b.noStart, b.breaks = "vm-01", " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n"
				}
				b.moved = func(vm, line string) string {
					if vm != "vm-01" || strings.Contains(line, "192.0.2.2") { // the others, and vm-01 as the receiver
						return quiet
					}
					return tc.counters
				}
				if tc.not != "" {
					b.zero = "packet_seq_err 0\nout_of_sequence 0\n"
				}
				r := perftest.Runner{Shell: b, Mode: "sriov", Loss: true, Class: dscp26}
				flows, err := r.Load(context.Background(), perftest.LoadIncast, all)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range flows {
					if m.From != "vm-01" {
						continue
					}
					if m.Verdict != perftest.VerdictFail || m.Lossless == nil || m.Lossless.Verdict != tc.lossless {
						t.Fatalf("%s -> %s: %s, lossless %+v", m.From, m.To, m.Verdict, m.Lossless)
					}
					words := m.Lossless.Words("lossless")
					if !strings.Contains(words, tc.says) || tc.not != "" && strings.Contains(words, tc.not) ||
						tc.lossless == "fail" && !strings.HasPrefix(m.Hint, m.Lossless.Evidence) {
						t.Errorf("%q, hint %q", words, m.Hint)
					}
				}
				for _, c := range perftest.Crowds(flows) {
					if c.To != "vm-01" && (c.Lossless == nil || c.Lossless.Verdict != tc.lossless) {
						t.Errorf("%s: %+v", c.To, c.Lossless)
					}
				}
			})
		})
	}
}

// One of two senders is in the class and the other is not: the receiver's counter of the class has grown by more than either sent,
// which proves it for neither.
func TestClassOfOneSenderIsNotThatOfAnother(t *testing.T) {
	for other, want := range map[int64]perftest.Verdict{0: perftest.VerdictPass, 40e9: perftest.VerdictUnknown} {
		synctest.Test(t, func(t *testing.T) {
			b, all := newBusy(), loadNodes(3)
			b.zero = "packet_seq_err 0\nrx_prio3_pause 0\nrx_prio3_bytes 0\nrx_prio0_bytes 0\n"
			b.moved = func(string, string) string {
				return fmt.Sprintf("packet_seq_err 0\nrx_prio3_pause 9\nrx_prio3_bytes 72000000000\nrx_prio0_bytes %d\n", other)
			}
			r := perftest.Runner{Shell: b, Mode: "sriov", Loss: true, Class: dscp26}
			flows, err := r.Load(context.Background(), perftest.LoadIncast, all)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range flows {
				warned := m.Verdict == perftest.VerdictWarn && strings.Contains(m.Hint, "may not trust DSCP")
				if m.Class.Verdict != want || m.ClassProven != (want == perftest.VerdictPass) || warned != (want == perftest.VerdictUnknown) {
					t.Errorf("%d bytes elsewhere: %s -> %s: %s, %+v", other, m.From, m.To, m.Verdict, m.Class)
				}
			}
		})
	}
}

// The summary of a receiver's flows does not depend on their order.
func TestCrowdsOfAnyOrder(t *testing.T) {
	proof := func(v perftest.Verdict) *perftest.Proof { return &perftest.Proof{Verdict: v} }
	read := &perftest.Sides{From: perftest.Counters{"packet_seq_err": 0}}
	paused := perftest.Measurement{To: "vm-01", Load: perftest.LoadIncast, Lossless: proof("pass"), Counters: read}
	still := perftest.Measurement{To: "vm-01", Load: perftest.LoadIncast, Lossless: proof("unknown"), Counters: read}
	unread := perftest.Measurement{To: "vm-01", Load: perftest.LoadIncast, Lossless: proof("unknown")}
	for _, tc := range []struct {
		a, b perftest.Measurement
		want perftest.Verdict
	}{{paused, still, "pass"}, {paused, unread, "unknown"}, {still, unread, "unknown"}} {
		for _, list := range [][]perftest.Measurement{{tc.a, tc.b}, {tc.b, tc.a}} {
			if c := perftest.Crowds(list); len(c) != 1 || c[0].Lossless.Verdict != tc.want {
				t.Errorf("%+v, want %s", c, tc.want)
			}
		}
	}
}

// Each test proves the class only for its own flow: a flow of another sender proves nothing for it.
func TestClassIsProvenByEachFlow(t *testing.T) {
	of := func(from string, v perftest.Verdict) perftest.Measurement {
		return perftest.Measurement{From: from, To: "vm-01", Test: "ib_write_bw", Class: &perftest.Proof{Verdict: v, Evidence: "counters"}}
	}
	latency := func(from string, v perftest.Verdict) perftest.Measurement {
		m := of(from, v)
		m.Test = perftest.SendLatency
		return m
	}
	for name, c := range map[string]struct {
		flows []perftest.Measurement
		want  perftest.Verdict
		says  string
	}{
		"each": {[]perftest.Measurement{of("vm-02", perftest.VerdictPass), of("vm-03", perftest.VerdictPass),
			{From: "vm-04"}}, perftest.VerdictPass, "counters"},
		"all but one": {[]perftest.Measurement{of("vm-02", perftest.VerdictPass), of("vm-03", perftest.VerdictUnknown)},
			perftest.VerdictUnknown, "1 of 2 prove theirs, and vm-03 -> vm-01"},
		"one is disproven": {[]perftest.Measurement{of("vm-02", perftest.VerdictPass), of("vm-03", perftest.VerdictFail),
			of("vm-04", perftest.VerdictUnknown)}, perftest.VerdictFail, "counters"},
		"a latency test beside it": {[]perftest.Measurement{of("vm-02", perftest.VerdictPass), latency("vm-02", perftest.VerdictUnknown)},
			perftest.VerdictPass, "counters"},
		"a latency test without it": {[]perftest.Measurement{of("vm-02", perftest.VerdictPass), latency("vm-03", perftest.VerdictUnknown)},
			perftest.VerdictUnknown, "vm-03 -> vm-01 (ib_send_lat)"},
		"a latency test that differs": {[]perftest.Measurement{of("vm-02", perftest.VerdictPass), latency("vm-02", perftest.VerdictFail)},
			perftest.VerdictFail, "counters"},
		"none": {[]perftest.Measurement{of("vm-02", perftest.VerdictUnknown)}, perftest.VerdictUnknown, "counters"},
	} {
		t.Run(name, func(t *testing.T) {
			if class, _ := perftest.Proofs(c.flows); class == nil || class.Verdict != c.want || !strings.Contains(class.Evidence, c.says) {
				t.Errorf("%+v", class)
			}
		})
	}
}
