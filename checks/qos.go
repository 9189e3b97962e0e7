package checks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// The nmlx5 modules.
const (
	coreModule = "nmlx5_core"
	rdmaModule = "nmlx5_rdma"
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
					return warn(t, "trust_state is %s", orUnset(v))
				}
				return fail(t, "trust_state=%s", v)
			}),
		parameters("HOST-DSCP-003", pvrdmaOnly, "dscp_force is the DSCP of the answers / unset / another",
			"Set dscp_force of nmlx5_rdma to the DSCP (26).", "VMware: lossless RDMA; Mellanox DOC-2581", func(f *Facts, t backends.Ref, p map[string]map[string]string) Answer {
				v := param(p, rdmaModule, "dscp_force")
				switch {
				case v == "" || v == "-1":
					return warn(t, "dscp_force is %s: the host's RoCE goes out with DSCP 0", orUnset(v))
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

// parameters is a row about module parameters of the pNIC's driver.
func parameters(id string, modes []answers.Mode, criteria, remedy, source string, ask func(f *Facts, t backends.Ref, p map[string]map[string]string) Answer) Check {
	return Check{
		ID: id, Scope: Host, Link: InDriver, Modes: modes, Quick: true, HostCall: true, Fix: Reboot, Source: source,
		Criteria: criteria + "; without qos.lossless pfc: told, and passes", Remedy: remedy,
		Run: nicCall(func(f *Facts, h *backends.Host, n *backends.NIC, facts HostFacts) Answer {
			t := backends.HostRef(h.Name)
			switch {
			case n.Driver != coreModule:
				return waiting(t, "%s has driver %s, whose parameters are not known here", n.Device, orNone(n.Driver))
			case facts.Modules[coreModule] == nil:
				return waiting(t, "the parameters of %s were not read", coreModule)
			}
			a := ask(f, t, facts.Modules)
			if f.Answers.QoS.Lossless != answers.LosslessPFC && a.Status != Unknown {
				return pass(t, "%s; qos.lossless is %s", a.Evidence, orNone(string(f.Answers.QoS.Lossless)))
			}
			return a
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
		return warn(t, "pfctx is %s, pfcrx is %s: global pause", orUnset(tx), orUnset(rx))
	}
	return passIf(number(tx) == int(mask) && number(rx) == int(mask), t, "pfctx=%s pfcrx=%s, wanted 0x%02x", orUnset(tx), orUnset(rx), mask)
}

// param is a parameter as esxcli lists it, without the quotes of older builds.
func param(p map[string]map[string]string, module, name string) string {
	return strings.Trim(p[module][name], `" `)
}

// number reads 8, 0x08 or 08; -1 for anything else.
func number(s string) int {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return int(n)
	}
	n, err := strconv.ParseInt(s, 0, 32)
	if err != nil {
		return -1
	}
	return int(n)
}

func orUnset(s string) string {
	if s == "" {
		return "unset"
	}
	return s
}

// sameParameters compares what the nmlx5 modules were given, max_vfs apart from the rest.
func sameParameters(f *Facts) []Answer {
	told := func(h *backends.Host, vfs bool) string {
		facts := f.HostFacts[h.Name]
		if facts.Err != nil || facts.Modules[coreModule] == nil {
			return ""
		}
		var out []string
		for module, params := range facts.Modules {
			for name, v := range params {
				if v = strings.ReplaceAll(strings.Trim(v, `" `), " ", ""); v != "" && (name == "max_vfs") == vfs {
					out = append(out, fmt.Sprintf("%s:%s=%s", module, name, v))
				}
			}
		}
		slices.Sort(out)
		return orNone(strings.Join(out, " "))
	}
	rest := same(f, "parameters", func(h *backends.Host) string { return told(h, false) })
	vfs := same(f, "list of VFs", func(h *backends.Host) string { return told(h, true) })
	if !alikePorts(f) {
		vfs = same(f, "VFs of the RDMA pNIC", func(h *backends.Host) string { return ownVFs(f, h, told(h, true)) })
	}
	if len(rest) == 0 {
		return []Answer{waiting(f.cluster(), "the module parameters of no host were read")}
	}
	for i := range rest {
		switch {
		case rest[i].Status == Warn && f.Answers.QoS.Lossless == answers.LosslessPFC:
			rest[i].Status = Fail
		case rest[i].Status == Pass && vfs[i].Status == Warn:
			rest[i] = vfs[i]
		}
	}
	return rest
}

// alikePorts tells whether the RDMA pNIC has the same place among as many ports of nmlx5_core on every host. Where it has
// not, lists of VFs that mean the same look different.
func alikePorts(f *Facts) bool {
	layouts := map[[2]int]bool{}
	for _, h := range f.connected() {
		if n := f.nic(h); n != nil && n.Driver == coreModule {
			ports := corePorts(h)
			layouts[[2]int{slices.Index(ports, n.PCI), len(ports)}] = true
		}
	}
	return len(layouts) < 2
}

// ownVFs is what max_vfs has for the RDMA pNIC; list is how the whole list is told, "" when it was not read.
func ownVFs(f *Facts, h *backends.Host, list string) string {
	n := f.nic(h)
	if list == "" || n == nil {
		return list
	}
	entries := strings.Split(param(f.HostFacts[h.Name].Modules, coreModule, "max_vfs"), ",")
	if at := slices.Index(corePorts(h), n.PCI); at >= 0 && at < len(entries) && entries[at] != "" {
		return strings.TrimSpace(entries[at])
	}
	return "0"
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
			return warnIf(bad, t, "%s: pause rx %s, tx %s, PFC %s; qos.lossless is %s", n.Device, onOff(p.Rx), onOff(p.Tx), onOff(masked), orNone(string(f.Answers.QoS.Lossless)))
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
					on = append(on, itoa(i))
				}
			}
			evidence := fmt.Sprintf("%s: DCB supported %t, PFC on priorities: %s", n.Device, d.Supported, orNone(strings.Join(on, ", ")))
			switch {
			case q.Lossless != answers.LosslessPFC:
				return pass(t, "%s; qos.lossless is %s", evidence, orNone(string(q.Lossless)))
			case !d.Supported:
				return warn(t, "%s", evidence)
			}
			return passIf(len(on) == 1 && on[0] == itoa(q.Priority), t, "%s, wanted %d", evidence, q.Priority)
		}),
	}
}
