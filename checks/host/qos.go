package host

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// qosChecks examine the module parameters that make the fabric lossless. They affect every port of the driver. If the answers do
// not request a lossless fabric, the values are shown and pass.
func qosChecks() []checks.Check {
	return []checks.Check{
		parameters("HOST-PFC-001", row.OnDVS, "pfctx and pfcrx both name the priority / unset (global pause) / they differ or name another",
			"Set pfctx and pfcrx both to the bit of the priority (0x08 for 3).", row.SRIOVStudy+"; Mellanox DOC-2581", pfc),
		parameters("HOST-TRUST-002", row.OnDVS, "trust_state is 2 (DSCP) / 1 (PCP) or unset / other",
			"Set trust_state to 2 (DSCP).", row.SRIOVStudy, func(_ *checks.Facts, t backends.Ref, p params) checks.Answer {
				v := p.core(p.Trust)
				switch v {
				case strconv.Itoa(p.ByDSCP):
					return row.Pass(t, "%s=%s", p.Trust, v)
				case strconv.Itoa(p.ByPCP), "":
					return row.Warn(t, "%s is %s", p.Trust, cmp.Or(v, "unset"))
				}
				return row.Fail(t, "%s=%s", p.Trust, v)
			}),
		parameters("HOST-DSCP-003", row.PVRDMA, "dscp_force is the DSCP of the answers / unset / another",
			"Set dscp_force of the RDMA driver to the DSCP (26).",
			"vSphere Storage, Configure Lossless Ethernet for NVMe over RDMA; Mellanox DOC-2581",
			func(f *checks.Facts, t backends.Ref, p params) checks.Answer {
				v := p.rdma(p.DSCP)
				switch {
				case v == "" || v == "-1":
					return row.Warn(t, "%s is %s: the host sends RoCE with DSCP 0", p.DSCP, cmp.Or(v, "unset"))
				case nic.Number(v) == f.Answers.QoS.DSCP:
					return row.Pass(t, "%s=%s", p.DSCP, v)
				}
				return row.Fail(t, "%s=%s, wanted %d", p.DSCP, v, f.Answers.QoS.DSCP)
			}),
		parameters("HOST-ECN-004", row.OnDVS, "ecn as the answers say / unset / the opposite",
			"Set ecn=1 explicitly; its default is off.", row.SRIOVStudy+"; NVIDIA, NATIVE Driver for VMware vSphere User Manual, Module Parameters",
			func(f *checks.Facts, t backends.Ref, p params) checks.Answer {
				v := p.core(p.ECN)
				want := "0"
				if f.Answers.QoS.ECN {
					want = "1"
				}
				if v == "" {
					return row.WarnIf(want == "1", t, "%s is unset, wanted %s", p.ECN, want)
				}
				return row.PassIf(v == want, t, "%s=%s, wanted %s", p.ECN, v, want)
			}),
	}
}

func pfc(f *checks.Facts, t backends.Ref, p params) checks.Answer {
	tx, rx := p.core(p.PFCTx), p.core(p.PFCRx)
	mask, err := sizing.PFCMask(f.Answers.QoS.Priority)
	switch {
	case err != nil:
		return row.Unknown(t, "qos.priority: %v", err)
	case nic.Number(tx) <= 0 && nic.Number(rx) <= 0:
		return row.Warn(t, "%s is %s, %s is %s: global pause", p.PFCTx, cmp.Or(tx, "unset"), p.PFCRx, cmp.Or(rx, "unset"))
	}
	return row.PassIf(nic.Number(tx) == int(mask) && nic.Number(rx) == int(mask), t, "%s=%s %s=%s, wanted 0x%02x", p.PFCTx,
		cmp.Or(tx, "unset"), p.PFCRx, cmp.Or(rx, "unset"), mask)
}

// pauseCheck and dcbCheck compare the flow control of the pNIC with qos.lossless.
func pauseCheck() checks.Check {
	return checks.Check{
		ID: "HOST-PNIC-PAUSE-014", Scope: checks.Host, Link: checks.InHost, Quick: true, HostCall: true,
		Fixes:    []backends.Kind{backends.KindPause},
		Source:   "vSphere Storage, Configure Lossless Ethernet for NVMe over RDMA; Mellanox DOC-2581",
		Criteria: "as qos.lossless asks (pause: both on; pfc and none: passes, for information) / mixed / -",
		Remedy:   "Set the pause parameters or PFC, not both.",
		Run: row.NICCall(func(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, sys *backends.HostSystem) checks.Answer {
			p, there := sys.Pause.Value[n.Device]
			if !there {
				return row.Unread(t, "the global pause of "+n.Device, sys.Pause)
			}
			masked := nic.AnyPFC(sys)
			bad := f.Answers.QoS.Lossless == answers.LosslessPause && (!p.Rx || !p.Tx || masked)
			return row.WarnIf(bad, t, "%s: pause rx %s, tx %s, PFC %s; qos.lossless is %s", n.Device, row.OnOff(p.Rx), row.OnOff(p.Tx),
				row.OnOff(masked), cmp.Or(string(f.Answers.QoS.Lossless), "none"))
		}),
	}
}

func dcbCheck() checks.Check {
	return checks.Check{
		ID: "HOST-PNIC-DCB-015", Scope: checks.Host, Link: checks.InSwitch, Fix: checks.Manual,
		Fixes:    []backends.Kind{backends.KindModuleParams}, // pfctx and pfcrx switch PFC on
		Source:   "vSphere Storage, Configure Lossless Ethernet for NVMe over RDMA",
		Criteria: "PFC on the priority of the answers / DCB not supported / on another; without qos.lossless pfc: passes, for information",
		Remedy:   "Align DCB with the switch.",
		Run: row.NICCall(func(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, sys *backends.HostSystem) checks.Answer {
			q := f.Answers.QoS
			if !sys.DCB[n.Device].Known() {
				return row.Unread(t, "the DCB status of "+n.Device, sys.DCB[n.Device])
			}
			d := sys.DCB[n.Device].Value
			var on []string
			for i, set := range d.PFC {
				if set {
					on = append(on, strconv.Itoa(i))
				}
			}
			evidence := fmt.Sprintf("%s: DCB supported %t, PFC on priorities: %s", n.Device, d.Supported, cmp.Or(strings.Join(on, ", "), "none"))
			switch {
			case q.Lossless != answers.LosslessPFC:
				return row.Pass(t, "%s; qos.lossless is %s", evidence, cmp.Or(string(q.Lossless), "none"))
			case !d.Supported:
				return row.Warn(t, "%s", evidence)
			}
			return row.PassIf(len(on) == 1 && on[0] == strconv.Itoa(q.Priority), t, "%s, wanted %d", evidence, q.Priority)
		}),
	}
}

// params are the parameters of the driver of a host's RDMA pNIC, and their names for lossless classes.
type params struct {
	*backends.LosslessParams
	family nic.Family
	sys    *backends.HostSystem
}

func (p params) core(name string) string { return nic.Param(p.sys, p.family.Driver(), name) }

func (p params) rdma(name string) string { return nic.Param(p.sys, p.family.RDMA(), name) }

// parameters returns a row about module parameters of the pNIC's driver.
func parameters(id string, modes []answers.Mode, criteria, remedy, source string,
	ask func(f *checks.Facts, t backends.Ref, p params) checks.Answer) checks.Check {
	return checks.Check{
		ID: id, Scope: checks.Host, Link: checks.InDriver, Modes: modes, Quick: true, HostCall: true, Fix: checks.Reboot, Source: source,
		Fixes:    []backends.Kind{backends.KindModuleParams},
		Criteria: criteria + "; without qos.lossless pfc: passes, for information", Remedy: remedy,
		Run: row.NICCall(func(f *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC, sys *backends.HostSystem) checks.Answer {
			p := params{family: nic.Of(n.Driver), sys: sys}
			if p.family != nil {
				p.LosslessParams = p.family.Lossless()
			}
			if p.LosslessParams == nil {
				return row.Waiting(t, "%s has driver %s, whose parameters this program does not know", n.Device, cmp.Or(n.Driver, "none"))
			}
			if core := sys.Modules[n.Driver]; !core.Known() {
				return row.Unread(t, "the list of parameters of "+n.Driver, core)
			}
			a := ask(f, t, p)
			if f.Answers.QoS.Lossless != answers.LosslessPFC && a.Status != checks.Unknown {
				return row.Pass(t, "%s; qos.lossless is %s", a.Evidence, cmp.Or(string(f.Answers.QoS.Lossless), "none"))
			}
			return a
		}),
	}
}
