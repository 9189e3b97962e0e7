package switches

import "strings"

// Sources for Cumulus Linux.
var (
	cumulusRoCE = source{name: "NVIDIA Cumulus Linux 5, RDMA over Converged Ethernet",
		where: "docs.nvidia.com/networking-ethernet-software/cumulus-linux/Layer-1-and-Switch-Ports/Quality-of-Service/RDMA-over-Converged-Ethernet-RoCE"}
	cumulusQoS = source{name: "NVIDIA Cumulus Linux 5, Quality of Service",
		where: "docs.nvidia.com/networking-ethernet-software/cumulus-linux/Layer-1-and-Switch-Ports/Quality-of-Service"}
	cumulusNVUE = source{name: "NVIDIA NVUE command reference (PFC watchdog since 5.6)",
		where: "docs.nvidia.com/networking-ethernet-software/nvue-reference"}
)

func cumulus(p *page, w Wish) {
	mode := "lossy"
	if w.PFC {
		mode = "lossless"
	}
	p.say(
		"One command sets trust, ETS (RoCE 50 %, congestion notification strict), ECN from 150 to 1500 KB, the LLDP application TLV and, when "+
			"lossless, PFC and a pool.", cumulusRoCE)
	p.add("nv set qos roce mode %s", mode)
	if w.Priority != 3 || w.DSCP/8 != w.Priority {
		p.say("RoCE is not on the default priority 3.", cumulusRoCE)
		if w.PFC {
			p.add("nv set qos pfc default-global switch-priority %d", w.Priority)
		}
		p.add("nv set qos egress-queue-mapping default-global switch-priority %d traffic-class 3", w.Priority)
		if w.Priority != 3 {
			p.add("nv set qos egress-queue-mapping default-global switch-priority 3 traffic-class 0")
		}
		p.add("nv set qos mapping default-global trust both")
		p.add("nv set qos mapping default-global dscp %d switch-priority %d", w.DSCP, w.Priority)
	}
	switch {
	case !w.ECN:
		p.say("No ECN marks, as asked.", cumulusQoS)
		p.add("nv set qos congestion-control default-global traffic-class 3 ecn disable")
	case w.ECNMin != 150 || w.ECNMax != 1500:
		p.say("ECN thresholds in bytes.", cumulusQoS)
		p.add("nv set qos congestion-control default-global traffic-class 3 min-threshold %d", 1000*w.ECNMin)
		p.add("nv set qos congestion-control default-global traffic-class 3 max-threshold %d", 1000*w.ECNMax)
	}
	names := make([]string, len(w.Ports))
	for i, port := range w.Ports {
		names[i] = port.Name
	}
	at := "nv set interface " + strings.Join(names, ",")
	p.say("The ports.", cumulusQoS, cumulusNVUE)
	p.add("%s link mtu %d", at, SwitchMTU)
	if w.VLAN > 0 {
		p.add("nv set bridge domain br_default vlan %d", w.VLAN)
		p.add("%s bridge domain br_default vlan %d", at, w.VLAN)
	}
	if w.PFC {
		p.add("%s qos pfc-watchdog state enable", at)
	}
	p.say("Look, then apply. Undo with: nv unset qos roce, nv config apply", cumulusRoCE)
	p.add("nv config diff")
	p.note("nv config apply   then, when it is proved:   nv config save")
	p.say("Prove it:", cumulusRoCE)
	if w.PFC {
		p.note("nv show qos roce   must show mode lossless and pfc-priority %d", w.Priority)
	} else {
		p.note("nv show qos roce   must show mode lossy")
	}
	p.note("nv show interface %s qos roce counters   move under load", names[0])
}
