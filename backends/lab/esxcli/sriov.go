package esxcli

import (
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

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
			rows = append(rows, row("VF ID", strconv.Itoa(n), "Active", strconv.FormatBool(owner != nil), "PCI Address", address, "Owner World ID", id))
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
			{Name: "Capabilities", Sub: row("Priority Group", "true", "Priority Flow Control", "true", "PG Traffic Classes", "8", "PFC Traffic Classes", "8")},
			{Name: "PFC Enabled", Value: strconv.FormatBool(mask != 0)},
			{Name: "PFC Configuration", Value: pfc},
			{Name: "IEEE ETS Configuration", Sub: row("Willing Bit In ETS Config TLV", "1", "Supported Capacity", "8",
				"Credit Based Shaper ETS Algorithm Supported", "0x0", "TX Bandwidth Per TC", eight, "RX Bandwidth Per TC", eight,
				"TSA Assignment Table Per TC", eight, "Priority Assignment Per TC", "1 0 2 3 4 5 6 7", "Recommended TC Bandwidth Per TC", eight,
				"Recommended TSA Assignment Per TC", eight, "Recommended Priority Assignment Per TC", eight)},
			{Name: "IEEE PFC Configuration", Sub: row("Number Of Traffic Classes", "8", "PFC Configuration", pfc, "Macsec Bypass Capability Is Enabled", "0",
				"Round Trip Propagation Delay Of Link", "0", "Sent PFC Frames", strings.Join(sent, " "), "Received PFC Frames", strings.Join(received, " "))},
			{Name: "DCB Apps", Value: ""},
		}}
	})
	if err == nil && !found {
		err = refuse("NIC %s does not exist", args["nicname"])
	}
	return a, err
}
