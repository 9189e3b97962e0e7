package world

import (
	"fmt"
	"slices"
	"strings"
)

// Icen is Intel's driver of E810 cards. Whether a port has an RDMA device is set by the position of the port in its
// list parameter RDMA, at boot (irdman 1.4.4.0 release notes: RDMA is turned on in the LAN driver by parameter RDMA,
// after a reboot; a number for each port, as configure_icen.sh in public repositories writes it).
const Icen = "icen"

// rdmaByIcen adds RDMA devices to the ports of icen, or removes them.
func (h *Host) rdmaByIcen() {
	m := h.Module(Icen)
	if m == nil || m.Parameter("RDMA") == nil {
		return
	}
	list := strings.Split(m.Parameter("RDMA").Active, ",")
	for at, p := range h.Ports(Icen) {
		switch on := at < len(list) && strings.TrimSpace(list[at]) == "1"; {
		case !on:
			p.RDMA = nil
		case p.RDMA == nil:
			p.RDMA = &RDMA{Name: h.freeRDMA(), Driver: "irdman", RoCEv2: true}
		}
	}
}

// freeRDMA is the first name that no RDMA device of the host has.
func (h *Host) freeRDMA() string {
	for n := 0; ; n++ {
		name := fmt.Sprintf("vmrdma%d", n)
		if !slices.ContainsFunc(h.PNICs, func(p *PNIC) bool { return p.RDMA != nil && p.RDMA.Name == name }) {
			return name
		}
	}
}
