package checks

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// qosChecks look at the module parameters that keep the fabric lossless. They act on every port of the driver. Where the
// answers ask for no lossless fabric, the values are told and pass.
func qosChecks() []Check {
	return []Check{
		parameters("HOST-PFC-001", dvsModes, "pfctx and pfcrx both name the priority / unset (global pause) / they differ or name another",
			"Set pfctx and pfcrx both to the bit of the priority (0x08 for 3).", "seed 002; Mellanox DOC-2581", pfc),
		parameters("HOST-TRUST-002", dvsModes, "trust_state is 2 (DSCP) / 1 (PCP) or unset / other",
			"Set trust_state to 2.", "seed 002", func(_ *Facts, t backends.Ref, p map[string]map[string]string) Answer {
				v := param(p, coreModule, "trust_state")
				switch v {
				case "2":
					return pass(t, "trust_state=2")
				case "1", "":
					return warn(t, "trust_state is %s", cmp.Or(v, "unset"))
				}
				return fail(t, "trust_state=%s", v)
			}),
		parameters("HOST-DSCP-003", pvrdmaOnly, "dscp_force is the DSCP of the answers / unset / another",
			"Set dscp_force of nmlx5_rdma to the DSCP (26).", "VMware: lossless RDMA; Mellanox DOC-2581", func(f *Facts, t backends.Ref, p map[string]map[string]string) Answer {
				v := param(p, rdmaModule, "dscp_force")
				switch {
				case v == "" || v == "-1":
					return warn(t, "dscp_force is %s: the host's RoCE goes out with DSCP 0", cmp.Or(v, "unset"))
				case number(v) == f.Answers.QoS.DSCP:
					return pass(t, "dscp_force=%s", v)
				}
				return fail(t, "dscp_force=%s, wanted %d", v, f.Answers.QoS.DSCP)
			}),
		parameters("HOST-ECN-004", dvsModes, "ecn as the answers say / unset / the opposite",
			"Set ecn=1 explicitly; its default is off.", "seed 002; NVIDIA: nmlx5 module parameters", func(f *Facts, t backends.Ref, p map[string]map[string]string) Answer {
				v := param(p, coreModule, "ecn")
				want := "0"
				if f.Answers.QoS.ECN {
					want = "1"
				}
				if v == "" {
					return warnIf(want == "1", t, "ecn is unset, wanted %s", want)
				}
				return passIf(v == want, t, "ecn=%s, wanted %s", v, want)
			}),
	}
}

func pfc(f *Facts, t backends.Ref, p map[string]map[string]string) Answer {
	tx, rx := param(p, coreModule, "pfctx"), param(p, coreModule, "pfcrx")
	mask, err := sizing.PFCMask(f.Answers.QoS.Priority)
	switch {
	case err != nil:
		return unknown(t, "qos.priority: %v", err)
	case number(tx) <= 0 && number(rx) <= 0:
		return warn(t, "pfctx is %s, pfcrx is %s: global pause", cmp.Or(tx, "unset"), cmp.Or(rx, "unset"))
	}
	return passIf(number(tx) == int(mask) && number(rx) == int(mask), t, "pfctx=%s pfcrx=%s, wanted 0x%02x", cmp.Or(tx, "unset"), cmp.Or(rx, "unset"), mask)
}

// pauseCheck and dcbCheck hold the flow control of the pNIC against qos.lossless.
func pauseCheck() Check {
	return Check{
		ID: "HOST-PNIC-PAUSE-014", Scope: Host, Link: InHost, Quick: true, HostCall: true, Fix: Automatic, Source: "VMware: lossless RDMA; Mellanox DOC-2581",
		Criteria: "as qos.lossless asks (pause: both on; pfc and none: told, and passes) / mixed / -",
		Remedy:   "Set the pause parameters or PFC, not both.",
		Run: nicCall(func(f *Facts, h *backends.Host, n *backends.NIC, facts HostFacts) Answer {
			t := backends.HostRef(h.Name)
			p, read := facts.Pause[n.Device]
			if !read {
				return waiting(t, "the pause parameters of %s were not read", n.Device)
			}
			masked := number(param(facts.Modules, coreModule, "pfctx")) > 0
			bad := f.Answers.QoS.Lossless == answers.LosslessPause && (!p.Rx || !p.Tx || masked)
			return warnIf(bad, t, "%s: pause rx %s, tx %s, PFC %s; qos.lossless is %s", n.Device, onOff(p.Rx), onOff(p.Tx), onOff(masked), cmp.Or(string(f.Answers.QoS.Lossless), "none"))
		}),
	}
}

func dcbCheck() Check {
	return Check{
		ID: "HOST-PNIC-DCB-015", Scope: Host, Link: InSwitch, Fix: Manual, Source: "VMware: lossless RDMA",
		Criteria: "PFC on the priority of the answers / DCB not supported / on another; without qos.lossless pfc: told, and passes",
		Remedy:   "Align DCB with the switch.",
		Run: nicCall(func(f *Facts, h *backends.Host, n *backends.NIC, facts HostFacts) Answer {
			t, q := backends.HostRef(h.Name), f.Answers.QoS
			d, read := facts.DCB[n.Device]
			if !read {
				return waiting(t, "the DCB status of %s was not read", n.Device)
			}
			var on []string
			for i, set := range d.PFC {
				if set {
					on = append(on, strconv.Itoa(i))
				}
			}
			evidence := fmt.Sprintf("%s: DCB supported %t, PFC on priorities: %s", n.Device, d.Supported, cmp.Or(strings.Join(on, ", "), "none"))
			switch {
			case q.Lossless != answers.LosslessPFC:
				return pass(t, "%s; qos.lossless is %s", evidence, cmp.Or(string(q.Lossless), "none"))
			case !d.Supported:
				return warn(t, "%s", evidence)
			}
			return passIf(len(on) == 1 && on[0] == strconv.Itoa(q.Priority), t, "%s, wanted %d", evidence, q.Priority)
		}),
	}
}

// parameters is a row about module parameters of the pNIC's driver.
func parameters(id string, modes []answers.Mode, criteria, remedy, source string, ask func(f *Facts, t backends.Ref, p map[string]map[string]string) Answer) Check {
	return Check{
		ID: id, Scope: Host, Link: InDriver, Modes: modes, Quick: true, HostCall: true, Fix: Reboot, Source: source,
		Criteria: criteria + "; without qos.lossless pfc: told, and passes", Remedy: remedy,
		Run: nicCall(func(f *Facts, h *backends.Host, n *backends.NIC, facts HostFacts) Answer {
			t := backends.HostRef(h.Name)
			switch {
			case n.Driver != coreModule:
				return waiting(t, "%s has driver %s, whose parameters are not known here", n.Device, cmp.Or(n.Driver, "none"))
			case facts.Modules[coreModule] == nil:
				return waiting(t, "the parameters of %s were not read", coreModule)
			}
			a := ask(f, t, facts.Modules)
			if f.Answers.QoS.Lossless != answers.LosslessPFC && a.Status != Unknown {
				return pass(t, "%s; qos.lossless is %s", a.Evidence, cmp.Or(string(f.Answers.QoS.Lossless), "none"))
			}
			return a
		}),
	}
}
