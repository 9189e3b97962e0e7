package switches

// Sources for Arista EOS.
var (
	eosFlow = source{name: "Arista EOS user manual 4.36, DCBX and flow control, as a published RoCE v2 guide applies it",
		where: "arista.com/en/um-eos/eos-dcbx-and-flow-control"}
	eosQoS = source{name: "Arista EOS user manual 4.36, quality of service, as a published RoCE v2 guide applies it",
		where: "arista.com/en/um-eos/eos-quality-of-service"}
	eosFabric = source{name: "Arista AI network fabric deployment guide, as the same guide applies it",
		where: "arista.com/assets/data/pdf/AI-Network-Fabric_Deployment_Guide.pdf"}
	eosAVD     = source{name: "Arista AVD, eos_cli_config_gen: priority-flow-control pause watchdog", where: "avd.arista.com"}
	eosStorage = source{
		name:  "Microsoft Learn, converged RDMA NIC configuration, Arista switch: dcbx mode ieee, priority-flow-control, switchport trunk",
		where: "learn.microsoft.com/windows-server/networking/technologies/conv-nic/cnic-app-switch-config"}
)

func eos(p *page, w Wish) {
	p.add("enable")
	p.add("configure terminal")
	p.say("RoCE and congestion notification by their DSCP. Traffic class 7 and 1 stay as they are: control and everything else.", eosQoS)
	p.add("qos map dscp %d to traffic-class %d", w.DSCP, w.Priority)
	p.add("qos map dscp %d to traffic-class %d", CNPDSCP, CNP)
	p.add("qos map traffic-class %d to tx-queue %[1]d", w.Priority)
	p.add("qos map traffic-class %d to tx-queue %[1]d", CNP)
	if w.PFC {
		p.say("The watchdog ends a storm of pause frames. Times in seconds; it polls at least twice as often as it waits.", eosFlow, eosAVD)
		p.add("priority-flow-control pause watchdog default timeout 0.20")
		p.add("priority-flow-control pause watchdog default recovery-time 0.20")
		p.add("priority-flow-control pause watchdog default polling-interval 0.10")
		p.add("priority-flow-control pause watchdog action drop")
	}
	p.say("Shares (ETS), ECN marks and PFC as one profile. Models with separate unicast queues want uc-tx-queue: --queue uc-tx-queue.", eosQoS,
		eosFabric)
	p.add("qos profile RDMA")
	if w.PFC {
		p.add("   priority-flow-control on")
		p.add("   priority-flow-control priority %d no-drop", w.Priority)
	}
	p.add("   %s 1", w.Queue)
	p.add("      no priority")
	p.add("      bandwidth percent 50")
	p.add("      exit")
	p.add("   %s %d", w.Queue, w.Priority)
	p.add("      no priority")
	p.add("      bandwidth percent 50")
	if w.ECN {
		p.add("      random-detect ecn minimum-threshold %d kbytes maximum-threshold %d kbytes max-mark-probability 100", w.ECNMin, w.ECNMax)
	}
	p.add("      exit")
	p.add("   %s %d", w.Queue, CNP)
	p.add("      priority strict")
	p.add("      exit")
	p.add("   exit")
	if w.VLAN > 0 {
		p.say("The port group's VLAN.", eosStorage)
		p.add("vlan %d", w.VLAN)
		p.add("   exit")
	}
	p.say("The ports. EOS does not count the Ethernet header in its MTU and ends at 9214.", eosQoS, eosStorage)
	for _, port := range w.Ports {
		p.add("interface %s", port.Name)
		p.add("   mtu %d", mtu(EOS))
		if w.VLAN > 0 {
			p.add("   switchport mode trunk")
			p.add("   switchport trunk allowed vlan add %d", w.VLAN)
		}
		p.add("   qos trust dscp")
		p.add("   service-profile RDMA")
		if w.PFC {
			p.add("   dcbx mode ieee")
		}
		p.add("   exit")
	}
	p.add("end")
	p.say("Prove it, then keep it with: write memory", eosFlow)
	if w.PFC {
		p.note("show priority-flow-control   must show priority %d on every port", w.Priority)
		p.note("show priority-flow-control counters   move under load")
	}
	if w.ECN {
		p.note("show qos interfaces %s ecn   must show %d and %d kbytes for queue %d", w.Ports[0].Name, w.ECNMin, w.ECNMax, w.Priority)
	}
	p.note(
		"The watchdog looks only at queues with guaranteed bandwidth; whether and where your model takes   bandwidth guaranteed   is in " +
			"its manual.")
}
