package esxcli

import (
	"fmt"
	"strconv"
	"strings"

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
			"Packets received", n(c.PacketsReceived), "Packets sent", n(c.PacketsSent), "Bytes received", n(c.BytesReceived), "Bytes sent",
			n(c.BytesSent),
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

// resyncSummary prints the amount of data that vSAN has to resync. On a host without vSAN, the command fails.
func resyncSummary(w *world.World, host string, _ Args) (Answer, error) {
	vsan := false
	a, err := view(w, host, "ResyncSummary", func(s *world.State, h *world.Host) [][]Field {
		services := s.ClusterServices(h.Cluster)
		if vsan = services.VSAN; !vsan {
			return nil
		}
		objects, left := 0, services.Resync
		if left > 0 {
			objects = 3
		}
		return [][]Field{row("Total Number Of Resyncing Objects", strconv.Itoa(objects), "Total Bytes Left To Resync",
			strconv.FormatInt(left, 10),
			"Total GB Left To Resync", fmt.Sprintf("%.2f", float64(left)/(1<<30)))}
	})
	if err == nil && !vsan {
		err = refuse("vSAN is not enabled on this host")
	}
	return a, err
}

// nicStats returns the counters since boot. As on ESXi, RDMA traffic is not included: the RDMA device counts it.
func nicStats(w *world.World, host string, args Args) (Answer, error) {
	found := false
	a, err := view(w, host, "NicStats", func(_ *world.State, h *world.Host) (rows [][]Field) {
		p := h.PNIC(args["nicname"])
		if p == nil {
			return nil
		}
		found = true
		bad := strconv.FormatInt(int64(h.Uptime().Seconds()*float64(p.BadFrames)), 10)
		return [][]Field{row("NIC name", p.Device, "Packets received", "184213", "Packets sent", "90312", "Bytes received",
			strconv.FormatInt(21913320+p.Frames.BytesReceived, 10), "Bytes sent", strconv.FormatInt(8120443+p.Frames.BytesSent, 10),
			"Receive packets dropped", "0", "Transmit packets dropped", "0", "Multicast packets received", "1203", "Broadcast packets received",
			"811",
			"Multicast packets sent", "12", "Broadcast packets sent", "37", "Total receive errors", bad, "Receive length errors", "0",
			"Receive over errors", "0",
			"Receive CRC errors", bad, "Receive frame errors", "0", "Receive FIFO errors", "0", "Receive missed errors", "0",
			"Total transmit errors", "0",
			"Transmit aborted errors", "0", "Transmit carrier errors", "0", "Transmit FIFO errors", "0", "Transmit heartbeat errors", "0",
			"Transmit window errors", "0")}
	})
	if err == nil && !found {
		err = refuse("NIC %s does not exist", args["nicname"])
	}
	return a, err
}

// deviceList lists only the boot disk. Datastores are on an array that no host lists here.
func deviceList(w *world.World, host string, _ Args) (Answer, error) {
	return view(w, host, "ScsiDevice", func(_ *world.State, h *world.Host) [][]Field {
		const name = "t10.NVMe____Dell_BOSS2DN1"
		return [][]Field{row("Device", name, "Display Name", "Local NVMe Disk ("+name+")", "Has Settable Display Name", "true", "Size", "228936",
			"Device Type", "Direct-Access", "Vendor", "NVMe", "Model", "Dell BOSS-N1", "Is Local", "true", "Is Removable", "false", "Is SSD", "true",
			"Is Offline", "false",
			"Is USB", "false", "Is Boot Device", "true", "Status", "on")}
	})
}

// decimalBefore is the first version whose VF tables have no decimal addresses.
const decimalBefore = "8.0.0"

func vfList(w *world.World, host string, args Args) (Answer, error) {
	found := false
	a, err := view(w, host, "VF", func(s *world.State, h *world.Host) (rows [][]Field) {
		p := h.PNIC(args["nicname"])
		if p == nil || p.ActiveVFs == 0 {
			return nil
		}
		found = true
		for n, d := range h.VFs(p) {
			address, owner := d.Address, s.Owner(host, d.Address)
			if world.VersionLess(h.Version, decimalBefore) {
				address = world.DecimalPCI(address)
			}
			id := "-"
			if owner != nil {
				id = strconv.Itoa(1050000 + owner.Index)
			}
			rows = append(rows, row("VF ID", strconv.Itoa(n), "Active", strconv.FormatBool(owner != nil), "PCI Address", address, "Owner World ID",
				id))
		}
		return rows
	})
	if err == nil && !found {
		err = refuse("There is no SRIOV Nic with name %s", args["nicname"])
	}
	return a, err
}

func dcbGet(w *world.World, host string, args Args) (Answer, error) {
	found := false
	a, err := view(w, host, "DCBStatus", func(_ *world.State, h *world.Host) [][]Field {
		p := h.PNIC(args["nicname"])
		if p == nil {
			return nil
		}
		found = true
		mask := h.PFC(p)
		bits := make([]string, 8)
		for i := range bits {
			bits[i] = strconv.Itoa(mask >> i & 1)
		}
		pfc := strings.Join(bits, " ")
		sent, received := make([]string, 8), make([]string, 8)
		for i, c := range p.Priorities {
			sent[i], received[i] = strconv.FormatInt(c.TxPause, 10), strconv.FormatInt(c.RxPause, 10)
		}
		eight := strings.TrimSpace(strings.Repeat("0 ", 8))
		return [][]Field{{
			{Name: "Nic Name", Value: p.Device},
			{Name: "Mode", Value: "3 - IEEE Mode"},
			{Name: "Enabled", Value: "true"},
			{Name: "Capabilities", Sub: row("Priority Group", "true", "Priority Flow Control", "true", "PG Traffic Classes", "8",
				"PFC Traffic Classes", "8")},
			{Name: "PFC Enabled", Value: strconv.FormatBool(mask != 0)},
			{Name: "PFC Configuration", Value: pfc},
			{Name: "IEEE ETS Configuration", Sub: row("Willing Bit In ETS Config TLV", "1", "Supported Capacity", "8",
				"Credit Based Shaper ETS Algorithm Supported", "0x0", "TX Bandwidth Per TC", eight, "RX Bandwidth Per TC", eight,
				"TSA Assignment Table Per TC", eight, "Priority Assignment Per TC", "1 0 2 3 4 5 6 7", "Recommended TC Bandwidth Per TC", eight,
				"Recommended TSA Assignment Per TC", eight, "Recommended Priority Assignment Per TC", eight)},
			{Name: "IEEE PFC Configuration", Sub: row("Number Of Traffic Classes", "8", "PFC Configuration", pfc, "Macsec Bypass Capability "+
				"Is Enabled", "0",
				"Round Trip Propagation Delay Of Link", "0", "Sent PFC Frames", strings.Join(sent, " "), "Received PFC Frames",
				strings.Join(received, " "))},
			{Name: "DCB Apps", Value: ""},
		}}
	})
	if err == nil && !found {
		err = refuse("NIC %s does not exist", args["nicname"])
	}
	return a, err
}
