package switches

// Sources for Onyx.
var (
	onyxGuide = source{name: "Reference Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7 " +
		"(NVIDIA/Mellanox), Network Switch Configuration, Onyx 3.6.8190"}
	onyxPool = source{name: "NVIDIA Onyx user manual 3.10, shared buffer commands (since 3.6.5000)",
		where: "docs.nvidia.com/networking/display/onyxv31040100/shared+buffer+commands"}
	onyxQoS = source{name: "NVIDIA Onyx user manual 3.10, QoS commands", where: "docs.nvidia.com/networking/display/onyxv3104206/qos+commands"}
	onyxECN = source{name: "Ansible collection mellanox.onyx, onyx_traffic_class (tested on 3.6.8130)",
		where: "docs.ansible.com/ansible/latest/collections/mellanox/onyx/onyx_traffic_class_module.html"}
	onyxRoCE = source{name: "NVIDIA Onyx user manual 3.10, RoCE commands (since 3.8.2000)",
		where: "docs.nvidia.com/networking/display/Onyxv31040100/RoCE+Commands"}
	onyxPorts = source{name: "Published running configurations of Onyx switches: mtu 9216 force, switchport hybrid allowed-vlan add",
		where: "github.com/Cray-HPE/docs-csm"}
	onyxPFC = source{name: "SmartX installation guide 6.3, RoCE on Mellanox switches: dcb priority-flow-control, pfc-wd (a public thread)"}
)

func onyx(p *page, w Wish) {
	p.add("enable")
	p.add("configure terminal")
	p.say("Commands are written out whole, so that none depends on where the one before ended.", onyxGuide)
	p.add("no cli default prefix-modes enable")
	if w.PFC {
		p.say("A pool of its own, so that RoCE loses nothing; priority flow control comes with it.", onyxGuide, onyxPool)
		p.add("traffic pool roce type lossless")
		p.add("traffic pool roce memory percent 50.00")
		p.add("traffic pool roce map switch-priority %d", w.Priority)
	}
	p.say("The hosts name their ports by LLDP.", onyxGuide)
	p.add("lldp")
	if w.VLAN > 0 {
		p.say("The port group's VLAN.", onyxPorts)
		p.add("vlan %d", w.VLAN)
	}
	p.say("The ports: MTU, trust in DSCP, ECN marks, congestion notification first.", onyxGuide, onyxQoS, onyxECN, onyxPorts)
	for _, port := range w.Ports {
		at := "interface ethernet " + port.Name
		p.add("%s mtu %d force", at, SwitchMTU)
		if w.VLAN > 0 {
			p.add("%s switchport mode hybrid", at)
			p.add("%s switchport hybrid allowed-vlan add %d", at, w.VLAN)
		}
		p.add("%s qos trust L3", at)
		if w.ECN {
			p.add("%s traffic-class %d congestion-control ecn minimum-absolute %d maximum-absolute %d", at, w.Priority, w.ECNMin, w.ECNMax)
		}
		p.add("%s traffic-class %d dcb ets strict", at, CNP)
	}
	if w.PFC {
		p.say("The watchdog ends a storm of pause frames.", onyxPFC)
		for _, port := range w.Ports {
			p.add("interface ethernet %s pfc-wd", port.Name)
		}
	}
	p.say("Back to how consoles usually are.", onyxGuide)
	p.add("cli default prefix-modes enable")
	p.say("Prove it, then keep it with: write memory", onyxRoCE, onyxPFC)
	if w.PFC {
		p.note("show dcb priority-flow-control   must list priority %d as enabled. Where the pool did not bring that about:", w.Priority)
		p.note("  dcb priority-flow-control enable force")
		p.note("  dcb priority-flow-control priority %d enable", w.Priority)
		for _, port := range w.Ports {
			p.note("  interface ethernet %s dcb priority-flow-control mode on force", port.Name)
		}
	}
	p.note("show interfaces ethernet %s   must show MTU %d, and its PFC counters move under load", w.Ports[0].Name, SwitchMTU)
	if w.PFC && w.Priority == 3 {
		p.note("From 3.8.2000 the one command   roce lossless   does all of this for every port, with DCBX; it may toggle interfaces.")
	}
	p.note(
		"ETS: traffic class %d is strict, the others share by the default weights. DCBX lines for single ports could not be verified and "+
			"are left out.", CNP)
}
