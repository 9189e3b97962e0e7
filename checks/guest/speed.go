package guest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// speedChecks judge bandwidth and latency between guests.
func speedChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "PAIR-BW-006", Scope: checks.Pair, Link: checks.InPair, Fix: checks.NoFix, Source: row.SRIOVStudy + ", Fig. 21; bands are ours",
			Criteria: ">= 93 % of the link / 80 to 93 % / less (PVRDMA: 85 %, 50 %)",
			Remedy:   "Follow the hint at the measurement; 92.6 % is typical of an RDMA MTU of 1024.",
			Run: eachPair(func(_ *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
				m := measured(p, perftest.SendBandwidth, perftest.WriteBandwidth)
				if m == nil {
					return row.Waiting(t, "no bandwidth was measured")
				}
				return judged(t, m, "%.1f of %.1f Gbps expected", m.AchievedGbps, m.ExpectedGbps)
			}),
		},
		{
			ID: "PAIR-BW-BIDIR-007", Scope: checks.Pair, Link: checks.InPair, Fix: checks.NoFix, Source: "ours",
			Criteria: "both ways >= 1.8 x one way / >= 1.5 x / less", Remedy: "Check the PCIe slot and the CPU load.",
			Run: eachPair(func(_ *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
				m := measured(p, perftest.SendBandwidth, perftest.WriteBandwidth)
				switch {
				case p.BothWays == nil || m == nil || m.AchievedGbps == 0:
					return row.Waiting(t, "both directions are measured together from 200G on")
				case beside(p) != "":
					return row.Waiting(t, "%s", beside(p))
				}
				return row.Grade(-*p.BothWays/m.AchievedGbps, -1.8, -1.5, t, "%.1f Gbps both ways, %.1f one way", *p.BothWays, m.AchievedGbps)
			}),
		},
		{
			ID: "PAIR-LAT-008", Scope: checks.Pair, Link: checks.InPair, Fix: checks.NoFix,
			Source:   row.SRIOVStudy + ", Fig. 22; " + row.BitfusionGuide + "; bands are ours",
			Criteria: "<= 3 us / <= 10 us / more (PVRDMA: 8, 20)",
			Remedy:   "Check the power policy, latency sensitivity, and whether the pair really uses RDMA.",
			Run: eachPair(func(_ *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
				m := measured(p, perftest.SendLatency)
				if m == nil {
					return row.Waiting(t, "no latency was measured")
				}
				return judged(t, m, "%.2f us, %.0f expected", m.AchievedUs, m.ExpectedUs)
			}),
		},
		{
			ID: "PAIR-LAT-TAIL-009", Scope: checks.Pair, Link: checks.InPair, Fix: checks.NoFix, Source: row.SRIOVStudy + "; bands are ours",
			Criteria: "p99.9 <= 3 x typical / <= 10 x / more", Remedy: "Reserve CPU and memory: other workloads interrupt the VM.",
			Run: eachPair(func(_ *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
				m := measured(p, perftest.SendLatency)
				if m == nil || len(m.Rows) == 0 || m.Rows[0].TypicalUs == 0 || m.Rows[0].P999Us == 0 {
					return row.Waiting(t, "no p99.9 was measured")
				}
				r := m.Rows[0]
				if r.Iterations < 10000 {
					return row.Waiting(t, "p99.9 of only %d messages is not reliable; 100000 are needed", r.Iterations)
				}
				return row.Grade(r.P999Us/r.TypicalUs, 3, 10, t, "p99.9 %.2f us, typical %.2f us", r.P999Us, r.TypicalUs)
			}),
		},
	}
}

// comparedChecks compare GPU memory with host memory, and pairs with each other.
func comparedChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "PAIR-GDR-012", Scope: checks.Pair, Link: checks.InPair, Modes: row.GPUDirect, Except: row.PVRDMA, Fix: checks.Manual,
			Source:   "NVIDIA AI Enterprise, Optimizing VM Configuration for AI Inference, Appendix, ATS and ACS configuration",
			Criteria: "GPU memory >= 90 % of host memory / 50 to 90 % / less, or an error",
			Remedy:   "Check the P2P keys, ACS, ATS and the PCIe topology.",
			Run: eachPair(func(_ *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
				m := measured(p, perftest.SendBandwidth, perftest.WriteBandwidth)
				switch {
				case p.GPUErr != "":
					return row.Fail(t, "the test with GPU memory failed: %s", p.GPUErr)
				case p.GPU == nil || m == nil || m.AchievedGbps == 0:
					return row.Waiting(t, "GPU memory and host memory were not both measured")
				}
				return row.Grade(-*p.GPU/m.AchievedGbps, -0.9, -0.5, t, "%.1f Gbps with GPU memory, %.1f with host memory", *p.GPU, m.AchievedGbps)
			}),
		},
		{
			ID: "PAIR-NCCL-013", Scope: checks.Pair, Link: checks.InPair, Modes: row.GPUDirect, Fix: checks.NoFix, Source: "nccl issue 465",
			Criteria: "NCCL uses NET/IB with GPUDirect RDMA / NET/IB without it / sockets",
			Remedy:   "Check NCCL's environment variables and nvidia-peermem.",
			Run: eachPair(func(_ *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
				switch {
				case p.NCCL == "":
					return row.Waiting(t, "NCCL was not run (bench --nccl runs it)")
				case !strings.HasPrefix(p.NCCL, "NET/IB"):
					return row.Fail(t, "NCCL talks %s", p.NCCL)
				}
				return row.WarnIf(!strings.Contains(p.NCCL, "GDR"), t, "NCCL talks %s", p.NCCL)
			}),
		},
		{
			ID: "PAIR-SYM-014", Scope: checks.Pair, Link: checks.InPair, Fix: checks.NoFix, Source: "ours",
			Criteria: "the two directions differ by <= 5 % / <= 15 % / more", Remedy: "Find the VM or host that all slow pairs have in common.",
			Run: func(f *checks.Facts) []checks.Answer {
				gbps := bandwidths(f)
				return eachPair(func(_ *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
					there, back := gbps[[2]string{p.From, p.To}], gbps[[2]string{p.To, p.From}]
					if there == 0 || back == 0 {
						return row.Waiting(t, "the pair was not measured in both directions")
					}
					return row.Grade((max(there, back)-min(there, back))/max(there, back), 0.05, 0.15, t, "%.1f Gbps forward, %.1f back", there, back)
				})(f)
			},
		},
		{
			ID: "PAIR-MATRIX-015", Scope: checks.Pair, Link: checks.InPair, Fix: checks.NoFix, Source: row.SRIOVStudy + "; bands are ours",
			Criteria: "within 5 % of the median of all pairs / 15 % below / more", Remedy: "Inspect the host that the outliers have in common.",
			Run: func(f *checks.Facts) []checks.Answer {
				gbps := bandwidths(f)
				all := slices.Sorted(maps.Values(gbps))
				return eachPair(func(_ *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
					own := gbps[[2]string{p.From, p.To}]
					if len(all) < 3 || own == 0 {
						return row.Waiting(t, "a median needs three measured pairs, there are %d", len(all))
					}
					median := all[len(all)/2]
					return row.Grade((median-own)/median, 0.05, 0.15, t, "%.1f Gbps, the median is %.1f", own, median)
				})(f)
			},
		},
	}
}

// beside says that a pair was measured beside traffic of others; "" if it was not.
func beside(p *checks.PairFacts) string {
	for i := range p.Measured {
		if said := p.Measured[i].Beside(); said != "" {
			return said
		}
	}
	return ""
}

// judged converts the verdict of a measurement, with its hint.
func judged(t backends.Ref, m *perftest.Measurement, format string, args ...any) checks.Answer {
	a := row.Pass(t, format, args...)
	if a.Status = checks.StatusOf(m.Verdict); a.Status == "" {
		return checks.Answer{}
	}
	if a.Status == checks.Unknown && m.Error != "" {
		a.Evidence = m.Error
	}
	if m.Hint != "" && a.Status != checks.Pass {
		a.Evidence += "; " + m.Hint
	}
	return a
}

// bandwidths returns what was measured from one VM to another, in Gbps.
func bandwidths(f *checks.Facts) map[[2]string]float64 {
	out := map[[2]string]float64{}
	for i := range f.Pairs {
		p := &f.Pairs[i]
		if m := measured(p, perftest.SendBandwidth, perftest.WriteBandwidth); m != nil && m.Verdict != perftest.VerdictNotApplicable &&
			m.AchievedGbps > 0 && m.Beside() == "" {
			out[[2]string{p.From, p.To}] = m.AchievedGbps
		}
	}
	return out
}

// portQoSCheck examines PFC, trust and ECN of a port that the guest owns: parameters of the host do not affect it.
func portQoSCheck() checks.Check {
	return checks.Check{
		ID: "GST-QOS-035", Scope: checks.Guest, Link: checks.InGuest, Modes: row.GPUDirect, Except: row.PVRDMA,
		Fixes:  []backends.Kind{backends.KindPortQoS},
		Source: "NVIDIA, Quality of Service (QoS); dcb-pfc(8), dcb-app(8), dcb-buffer(8)",
		Criteria: "PFC only for the priority of qos, to which the DSCP is mapped, with ECN / lost at the next boot, or in a shared buffer / " +
			"otherwise; a VF passes",
		Remedy: "Set PFC and DSCP trust on the card's port in the guest, or apply again.",
		Run: eachVerbs("GST-QOS-035", func(f *checks.Facts, t backends.Ref, d *backends.VerbsDevice) checks.Answer {
			q := f.Answers.QoS
			want := backends.QoSSpec{Priority: q.Priority, DSCP: q.DSCP, ECN: q.ECN}
			switch v := f.Inventory.VM(t.Name); {
			case q.Lossless != answers.LosslessPFC:
				return row.Pass(t, "qos.lossless is %s", cmp.Or(string(q.Lossless), "none"))
			case v == nil || len(v.Passthrough) == 0 || slices.ContainsFunc(v.Adapters, func(a backends.Adapter) bool { return a.MAC == d.MAC }):
				return row.Pass(t, "%s: the port belongs to the host", d.Name)
			case d.QoS == nil || d.QoS.Trust == "":
				return row.Waiting(t, "neither %s shows PFC of %s", nic.PortTools, d.Name)
			case !d.QoS.Meets(want):
				return row.Fail(t, "%s: PFC in priorities %v, trust %s, DSCP %d in priority %s%s; wanted all of it in priority %d alone",
					d.Name, d.QoS.PFC, d.QoS.Trust, q.DSCP, priorityOf(d.QoS, q.DSCP), ecnOf(d.QoS), q.Priority)
			case d.QoS.Kept == nil || d.QoS.Partly:
				return row.Warn(t, "%s: PFC and trust are set, but not persistent", d.Name)
			}
			return row.WarnIf(d.QoS.Shares(q.Priority), t, "%s: PFC in priority %d, to which DSCP %d is mapped%s", d.Name, q.Priority, q.DSCP,
				map[bool]string{true: "; its receive buffer is shared with priorities that may be dropped: " +
					nic.BufferCommands(q.Priority)}[d.QoS.Shares(q.Priority)])
		}),
	}
}

// priorityOf returns the priority that a DSCP maps to, - if it is not listed.
func priorityOf(q *backends.PortQoS, dscp int) string {
	if p, ok := q.DSCP[dscp]; ok {
		return strconv.Itoa(p)
	}
	return "-"
}

// ecnOf returns the priorities with ECN, if they are known.
func ecnOf(q *backends.PortQoS) string {
	if q.ECN == nil {
		return ""
	}
	return fmt.Sprintf(", ECN in priorities %v", q.ECN)
}
