package switches

// Sources for Dell OS10.
var (
	os10Local = source{name: "Microsoft Learn, Azure Local rack aware cluster network design: Dell S5248F-ON with OS10 10.5.4.5",
		where: "github.com/MicrosoftDocs/azure-stack-docs, rack-aware-clustering-network-design.md"}
	os10ECN = source{
		name: "Published OS10 configurations: wred with random-detect color green and random-detect ecn (Azure Local switch templates; a " +
			"public thread on the Z9332F-ON, which has trust-map dscp too), flowcontrol and VLANs (Cray-HPE/docs-csm)"}
	os10DSCP = source{name: "Dell OS10 user guide, trust dscp-map; but the page itself could not be read: look it up for your release",
		where: "dell.com/support", unverified: true}
)

func os10(p *page, w Wish) {
	p.add("configure terminal")
	if w.PFC {
		p.say("DCBX tells the hosts.", os10Local)
		p.add("dcbx enable")
	}
	if w.ECN {
		p.say("ECN thresholds in KB; queues use them by the profile's name, which is ecn.", os10ECN)
		p.add("wred ecn")
		p.add(" random-detect color green minimum-threshold %d maximum-threshold %d drop-probability 100", w.ECNMin, w.ECNMax)
		p.add(" random-detect ecn")
		p.add(" exit")
	}
	p.say("Classes: everything else, RoCE, congestion notification.", os10Local)
	for _, q := range []int{0, w.Priority, CNP} {
		p.add("class-map type queuing RDMA_Q%d", q)
		p.add(" match queue %d", q)
		p.add(" exit")
	}
	if w.PFC {
		p.add("class-map type network-qos RDMA_PFC%d", w.Priority)
		p.add(" match qos-group %d", w.Priority)
		p.add(" exit")
	}
	rest := others(w.Priority, CNP)
	p.say("Which priority is which group and queue.", os10Local)
	p.add("trust dot1p-map RDMA_DOT1P")
	p.add(" qos-group 0 dot1p %s", rest)
	p.add(" qos-group %d dot1p %[1]d", w.Priority)
	p.add(" qos-group %d dot1p %[1]d", CNP)
	p.add(" exit")
	p.say("RoCE v2 is known by its DSCP also where frames carry no tag.", os10DSCP)
	p.add("trust dscp-map RDMA_DSCP")
	p.add(" qos-group %d dscp %d", w.Priority, w.DSCP)
	p.add(" qos-group %d dscp %d", CNP, CNPDSCP)
	p.add(" exit")
	p.say("Queues and shares (ETS): RoCE is sure of half.", os10Local)
	p.add("qos-map traffic-class RDMA_QUEUES")
	p.add(" queue 0 qos-group %s", rest)
	p.add(" queue %d qos-group %[1]d", w.Priority)
	p.add(" queue %d qos-group %[1]d", CNP)
	p.add(" exit")
	p.add("policy-map type queuing RDMA_ETS")
	for _, share := range []struct{ queue, percent int }{{0, 48}, {w.Priority, 50}, {CNP, 2}} {
		p.add(" class RDMA_Q%d", share.queue)
		p.add("  bandwidth percent %d", share.percent)
		if w.ECN && share.queue == w.Priority {
			p.add("  random-detect ecn")
		}
		p.add("  exit")
	}
	p.add(" exit")
	if w.PFC {
		p.say("PFC of the one priority.", os10Local)
		p.add("policy-map type network-qos RDMA_PFC")
		p.add(" class RDMA_PFC%d", w.Priority)
		p.add("  pause")
		p.add("  pfc-cos %d", w.Priority)
		p.add("  exit")
		p.add(" exit")
	}
	p.say("ETS is switched on for the switch and on each port.", os10Local)
	p.add("system qos")
	p.add(" ets mode on")
	p.add(" exit")
	if w.VLAN > 0 {
		p.say("The port group's VLAN.", os10ECN)
		p.add("interface vlan%d", w.VLAN)
		p.add(" mtu %d", SwitchMTU)
		p.add(" no shutdown")
		p.add(" exit")
	}
	p.say("The ports. PFC and link-level flow control exclude each other.", os10Local, os10ECN)
	for _, port := range w.Ports {
		p.add("interface %s", port.Name)
		p.add(" mtu %d", SwitchMTU)
		if w.VLAN > 0 {
			p.add(" switchport mode trunk")
			p.add(" switchport trunk allowed vlan %d", w.VLAN)
		}
		p.add(" trust-map dot1p RDMA_DOT1P")
		p.add(" trust-map dscp RDMA_DSCP")
		p.add(" qos-map traffic-class RDMA_QUEUES")
		p.add(" service-policy output type queuing RDMA_ETS")
		p.add(" ets mode on")
		if w.PFC {
			p.add(" flowcontrol receive off")
			p.add(" flowcontrol transmit off")
			p.add(" service-policy input type network-qos RDMA_PFC")
			p.add(" priority-flow-control mode on")
		}
		p.add(" exit")
	}
	p.add("end")
	p.say("Prove it, then keep it with: write memory", os10Local)
	p.note("show interface %s priority-flow-control details   must show PFC on for priority %d", w.Ports[0].Name, w.Priority)
	p.note("show queuing statistics interface %s   moves in queue %d under load", w.Ports[0].Name, w.Priority)
	p.note("No PFC watchdog: no line for OS10 could be verified; look for it in the user guide of your release.")
}
