package esxcli

import (
	"strconv"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

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
		return [][]Field{row("NIC name", p.Device, "Packets received", "184213", "Packets sent", "90312", "Bytes received", "21913320", "Bytes sent", "8120443",
			"Receive packets dropped", "0", "Transmit packets dropped", "0", "Multicast packets received", "1203", "Broadcast packets received", "811",
			"Multicast packets sent", "12", "Broadcast packets sent", "37", "Total receive errors", bad, "Receive length errors", "0", "Receive over errors", "0",
			"Receive CRC errors", bad, "Receive frame errors", "0", "Receive FIFO errors", "0", "Receive missed errors", "0", "Total transmit errors", "0",
			"Transmit aborted errors", "0", "Transmit carrier errors", "0", "Transmit FIFO errors", "0", "Transmit heartbeat errors", "0", "Transmit window errors", "0")}
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
			"Device Type", "Direct-Access", "Vendor", "NVMe", "Model", "Dell BOSS-N1", "Is Local", "true", "Is Removable", "false", "Is SSD", "true", "Is Offline", "false",
			"Is USB", "false", "Is Boot Device", "true", "Status", "on")}
	})
}
