package answers

import "slices"

// firstTable is the routing table of a VM's first adapter if several are in one subnet; the others follow. iproute2 names the
// tables 253 to 255, and other programs use small numbers (/etc/iproute2/rt_tables).
const firstTable = 5001

// Table returns the routing table for packets from an adapter of a VM, given all its adapters: 0 if no other one is in its
// subnet. Linux sends packets from the address of any interface through the first interface in the subnet, and answers ARP
// requests for all addresses on each (kernel, ip-sysctl.rst, arp_ignore; Red Hat Solution 30564).
func Table(all []Adapter, n Adapter) int {
	alone := func(o Adapter) bool { return o == n || !o.IP.IsValid() || o.IP.Masked() != n.IP.Masked() }
	if !n.IP.IsValid() || !slices.ContainsFunc(all, func(o Adapter) bool { return !alone(o) }) {
		return 0
	}
	return firstTable + slices.Index(all, n)
}
