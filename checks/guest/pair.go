package guest

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// PairChecks returns the rows of pairs.
func PairChecks() []checks.Check {
	return slices.Concat(pathChecks(), speedChecks(), lossChecks(), comparedChecks())
}

// pathChecks examine the path between two guests, and between their hosts. Testing it loads the fabric, so a plain check leaves
// most of it unknown.
func pathChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "PAIR-PING-001", Scope: checks.Pair, Link: checks.InPair, Fix: checks.Manual, Source: row.BitfusionGuide,
			Criteria: "no ping lost / < 1 % / more", Remedy: "Check VLAN and switch.",
			Run: eachPair(func(_ *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
				switch {
				case p.Loss == nil:
					return row.Waiting(t, "not pinged")
				case *p.Loss > 0 && *p.Loss < 1:
					return row.Warn(t, "%.2f %% of the pings were lost", *p.Loss)
				}
				return row.PassIf(*p.Loss == 0, t, "%.1f %% of the pings were lost", *p.Loss)
			}),
		},
		{
			ID: "PAIR-MTU-002", Scope: checks.Pair, Link: checks.InPair, Fix: checks.Manual,
			Source:   row.SRIOVStudy + ", section 2.4; Linux iboe_get_mtu",
			Criteria: "a ping of full MTU size passes unfragmented / a smaller one / nothing above 1472 bytes",
			Remedy:   "Raise the MTU of the first layer that is too small: switch, DVS, guest.",
			Run: eachPair(func(f *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
				want := sizing.PingPayload(f.Answers.Switch.MTU, false)
				switch {
				case p.Payload == 0:
					return row.Waiting(t, "no large ping was tried: the small ones did not pass")
				case p.Payload >= want:
					return row.Pass(t, "%d bytes pass, %d are needed", p.Payload, want)
				case p.Payload > sizing.PingPayload(1500, false):
					return row.Warn(t, "%d bytes pass, but %d are needed", p.Payload, want)
				}
				return row.Fail(t, "%d bytes pass, but %d are needed", p.Payload, want)
			}),
		},
		{
			ID: "PAIR-MTU-HOST-003", Scope: checks.Pair, Link: checks.InPair, Modes: row.PVRDMA, Fix: checks.Manual,
			Source:   row.BitfusionGuide + "; Broadcom KB 435411",
			Criteria: "a ping of the vmknic's full MTU size passes unfragmented / - / it does not",
			Remedy:   "Raise the MTU of the first layer that is too small between the vmknics.",
			Run: row.EachPeer(func(f *checks.Facts, t backends.Ref, peer string, p backends.Peer) checks.Answer {
				h := f.Inventory.Host(t.Name)
				v := h.VMK(f.VMKNIC(h))
				if p.Payload == 0 || v == nil {
					return row.Waiting(t, "no large ping to %s was tried: the small ones did not pass", peer)
				}
				want := sizing.PingPayload(v.MTU, false)
				return row.PassIf(p.Payload >= want, t, "%d bytes pass to %s, %s allows %d", p.Payload, peer, v.Device, want)
			}),
		},
		{
			ID: "PAIR-ARP-004", Scope: checks.Pair, Link: checks.InPair, Fix: checks.Manual, Source: row.SRIOVStudy,
			Criteria: "the server's address resolves to its MAC / - / to another", Remedy: "Find the other machine that uses the address.",
			Run: eachPair(func(f *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
				want := f.RDMAMAC(p.To)
				switch {
				case want == "":
					return row.Waiting(t, "vCenter has no MAC of the card in %s", p.To)
				case p.PeerMAC == "":
					return row.Waiting(t, "the client's neighbour table has no entry for %s", p.To)
				}
				return row.PassIf(strings.EqualFold(p.PeerMAC, want), t, "the client has %s, the server's adapter is %s", p.PeerMAC, want)
			}),
		},
		{
			ID: "PAIR-HOSTS-005", Scope: checks.Pair, Link: checks.InPair, Quick: true, Fix: checks.Manual, Source: row.KubernetesGuide,
			Criteria: "the VMs of the pair are on different hosts / on the same host, where the fabric is not measured / -",
			Remedy:   "Move one of the VMs to another host.",
			Run:      pairHosts,
		},
	}
}

// lossChecks examine what the RDMA counters show about a test.
func lossChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "PAIR-FALLBACK-010", Scope: checks.Pair, Link: checks.InPair, Modes: row.PVRDMA, Fix: checks.NoFix,
			Source: row.KubernetesGuide + ", Using RDMA in vSphere",
			Criteria: "the host's RDMA counters increase during the test, or a host has no RDMA card and the answers allow that / cannot be read, " +
				"and latency is above 20 us / do not change",
			Remedy: "Check the uplink, the firewall ruleset pvrdma and Net.PVRDMAVmknic of both hosts: the pair uses TCP.",
			Run:    eachPair(fallback),
		},
		{
			ID: "PAIR-LOSS-011", Scope: checks.Pair, Link: checks.InPair, Fix: checks.Manual, Source: "nccl issue 394",
			Criteria: "no retries during the test / congestion notifications only / retries",
			Remedy:   "Check PFC and ECN on every hop between the guests.",
			Run: eachPair(func(_ *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
				switch {
				case p.Retries == nil:
					return row.Waiting(t, "the counters of the test were not read, or the device has none, as PVRDMA")
				case *p.Retries > 0 && beside(p) != "":
					return row.Waiting(t, "%s", beside(p))
				}
				if p.CNPs != nil {
					return lossless(t, *p.Retries, *p.CNPs)
				}
				return lossless(t, *p.Retries, 0)
			}),
		},
	}
}

// eachPair evaluates every tested pair, without pairs on one host: their traffic does not use the fabric.
func eachPair(ask func(f *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer) func(*checks.Facts) []checks.Answer {
	return func(f *checks.Facts) []checks.Answer {
		var out []checks.Answer
		for i := range f.Pairs {
			p := &f.Pairs[i]
			if a, b := f.Inventory.VM(p.From), f.Inventory.VM(p.To); a == nil || b == nil || a.Host != b.Host {
				out = row.Said(out, ask(f, pairRef(p.From, p.To), p))
			}
		}
		if len(out) == 0 {
			return []checks.Answer{row.Waiting(f.ClusterRef(), "no pair on different hosts was tested (check --pairs tests them)")}
		}
		return out
	}
}

func pairRef(from, to string) backends.Ref {
	return backends.Ref{Type: backends.TypePair, Name: from + checks.Between + to}
}

// pairHosts examines the pairs that would be measured.
func pairHosts(f *checks.Facts) []checks.Answer {
	var nodes []perftest.Node
	found, _ := f.VMs()
	for _, v := range found {
		h := f.Inventory.Host(v.Host)
		nodes = append(nodes, perftest.Node{VM: v.Name, Host: v.Host, Port: "any", NoHCA: h != nil && f.NoHCA(h)})
	}
	pairs, err := perftest.Pairs(nodes, f.Answers.Measure.Pairs)
	if err != nil {
		return []checks.Answer{row.Unknown(f.ClusterRef(), "%v", err)}
	}
	if f.Answers.Measure.Pairs == "all" {
		return []checks.Answer{row.WarnIf(!slices.ContainsFunc(pairs, func(p perftest.Pair) bool { return !p.SameHost() }), f.ClusterRef(),
			"%d pairs to measure", len(pairs))}
	}
	var out []checks.Answer
	for _, p := range pairs {
		out = append(out, row.WarnIf(p.SameHost() && !p.Client.NoHCA, pairRef(p.Client.VM, p.Server.VM), "on %s and %s", p.Client.Host,
			p.Server.Host))
	}
	return out
}

func fallback(_ *checks.Facts, t backends.Ref, p *checks.PairFacts) checks.Answer {
	ended := func(m perftest.Measurement) bool { return m.Error == "" }
	if i := slices.IndexFunc(p.Measured, func(m perftest.Measurement) bool { return m.Instead != "" }); i >= 0 {
		return row.Pass(t, "%s, which pvrdma.allow_no_hca allows", p.Measured[i].Why)
	}
	if p.RDMAPackets != nil && *p.RDMAPackets == 0 && len(p.Measured) > 0 && !slices.ContainsFunc(p.Measured, ended) {
		return row.Waiting(t, "no test completed, so unchanged RDMA counters prove nothing")
	}
	if p.RDMAPackets != nil {
		return row.PassIf(*p.RDMAPackets > 0, t, "the RDMA counters of the client's host increased by %d", *p.RDMAPackets)
	}
	m := measured(p, perftest.SendLatency)
	if m == nil || m.AchievedUs == 0 {
		return row.Waiting(t, "the RDMA counters were not read, and no latency was measured")
	}
	if m.AchievedUs > 20 {
		return row.Warn(t, "the RDMA counters were not read, and %.1f us look like TCP", m.AchievedUs)
	}
	return row.Waiting(t, "the RDMA counters were not read; %.1f us do not look like TCP", m.AchievedUs)
}

// measured returns the pair's measurement of one of the tests; nil if there is none.
func measured(p *checks.PairFacts, tests ...string) *perftest.Measurement {
	for i := range p.Measured {
		if slices.Contains(tests, p.Measured[i].Test) {
			return &p.Measured[i]
		}
	}
	return nil
}
