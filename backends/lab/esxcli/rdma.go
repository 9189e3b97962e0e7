package esxcli

import (
	"fmt"
	"strconv"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func rdmaDeviceList(w *world.World, host string, _ Args) (Answer, error) {
	return view(w, host, "RDMADevice", func(s *world.State, h *world.Host) (rows [][]Field) {
		for _, p := range h.PNICs {
			if p.RDMA == nil {
				continue
			}
			state, speed := "Active", fmt.Sprintf("%d Gbps", p.SpeedMbps/1000)
			if !p.LinkUp {
				state, speed = "Down", "0"
			}
			rows = append(rows, row("Name", p.RDMA.Name, "Driver", p.RDMA.Driver, "State", state, "MTU", strconv.Itoa(world.RDMAMTU(s.MTU(h, p))),
				"Speed", speed, "Paired Uplink", p.Device, "Description", p.Model))
		}
		return rows
	})
}

func rdmaProtocolList(w *world.World, host string, _ Args) (Answer, error) {
	return view(w, host, "RDMADeviceProtocol", func(_ *world.State, h *world.Host) (rows [][]Field) {
		for _, p := range h.PNICs {
			if r := p.RDMA; r != nil {
				rows = append(rows, row("Device", r.Name, "RoCE v1", strconv.FormatBool(r.RoCEv1),
					"RoCE v2", strconv.FormatBool(r.RoCEv2), "iWARP", strconv.FormatBool(r.IWARP)))
			}
		}
		return rows
	})
}

func rdmaStats(w *world.World, host string, args Args) (Answer, error) {
	found := false
	a, err := view(w, host, "RDMAStats", func(_ *world.State, h *world.Host) [][]Field {
		p := h.RDMADevice(args["device"])
		if p == nil {
			return nil
		}
		found = true
		n := func(v int64) string { return strconv.FormatInt(v, 10) }
		c := p.RDMA.Stats
		return [][]Field{row(
			"Packets received", n(c.PacketsReceived), "Packets sent", n(c.PacketsSent), "Bytes received", n(c.BytesReceived), "Bytes sent", n(c.BytesSent),
			"Error packets received", n(c.ErrorPackets), "Error packets sent", "0", "Error length packets received", "0",
			"Unicast packets received", n(c.PacketsReceived), "Multicast packets received", "0",
			"Unicast bytes received", n(c.BytesReceived), "Multicast bytes received", "0",
			"Unicast packets sent", n(c.PacketsSent), "Multicast packets sent", "0",
			"Unicast bytes sent", n(c.BytesSent), "Multicast bytes sent", "0",
			"Queue pairs allocated", n(c.QueuePairs), "Completion queues allocated", n(2*c.QueuePairs),
			"Protection domains allocated", "0", "Memory regions allocated", "0", "Memory windows allocated", "0")}
	})
	if err == nil && !found {
		err = refuse("RDMA device %s not found", args["device"])
	}
	return a, err
}
