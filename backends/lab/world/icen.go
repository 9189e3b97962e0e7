package world

import (
	"fmt"
	"slices"
	"strings"
)

// Icen is Intel's driver for E810 cards. Its list parameter RDMA contains one number per port, which enables the port's RDMA
// device at boot (irdman 1.4.4.0 release notes: RDMA is turned on in the LAN driver by parameter RDMA, after a reboot; the
// format is that of configure_icen.sh in public repositories).
const Icen = "icen"

// rdmaByIcen adds or removes the RDMA devices of icen's ports according to the module parameter.
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

// freeRDMA returns the first unused RDMA device name of the host.
func (h *Host) freeRDMA() string {
	for n := 0; ; n++ {
		name := fmt.Sprintf("vmrdma%d", n)
		if !slices.ContainsFunc(h.PNICs, func(p *PNIC) bool { return p.RDMA != nil && p.RDMA.Name == name }) {
			return name
		}
	}
}
