package esxcli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// sriovList lists the NICs that have VFs.
func sriovList(w *world.World, host string, _ Args) (Answer, error) {
	all, err := nicList(w, host, nil)
	if err != nil {
		return all, err
	}
	some := Answer{Shape: Table, Type: "SriovNic"}
	w.View(func(s *world.State) {
		for _, r := range all.Rows {
			if p := s.Host(host).PNIC(r[0].Value); p != nil && p.ActiveVFs > 0 {
				r = append(r[:3:3], r[4:]...) // without the column for the admin status
				r[3].Name = "Link"
				some.Rows = append(some.Rows, r)
			}
		}
	})
	return some, nil
}

// decimalBefore is the first version whose VF tables have no decimal addresses.
const decimalBefore = "8.0.0"

func vfList(w *world.World, host string, args Args) (Answer, error) {
	found := false
	a, err := view(w, host, Table, "VF", func(s *world.State, h *world.Host) (rows [][]Field) {
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
	a, err := view(w, host, Record, "DCBStatus", func(_ *world.State, h *world.Host) [][]Field {
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

func pciList(w *world.World, host string, args Args) (Answer, error) {
	return view(w, host, Titled, "PCIDevice", func(_ *world.State, h *world.Host) (rows [][]Field) {
		for n, d := range h.PCI {
			var segment, bus, slot, function int
			_, _ = fmt.Sscanf(d.Address, "%04x:%02x:%02x.%x", &segment, &bus, &slot, &function)
			if args["class"] != "" && fmt.Sprintf("0x%04x", d.Class) != strings.ToLower(args["class"]) {
				continue
			}
			name, owner, module := "", "VMkernel", "None"
			if p := h.PNICAt(d.Address); p != nil {
				name, module = p.Device, p.Driver
			}
			if d.PassthruActive {
				owner = "VM Passthru"
			}
			var ds, db, dd, df int
			dependent := d.Address
			if d.Dependent != "" {
				dependent = d.Dependent
			}
			_, _ = fmt.Sscanf(dependent, "%04x:%02x:%02x.%x", &ds, &db, &dd, &df)
			parent := "PCI 0:0:0:0"
			if d.Parent != "" {
				var ps, pb, pd, pf int
				_, _ = fmt.Sscanf(d.Parent, "%04x:%02x:%02x.%x", &ps, &pb, &pd, &pf)
				parent = fmt.Sprintf("PCI %d:%d:%d:%d", ps, pb, pd, pf)
			}
			rows = append(rows, row("Address", d.Address, "Segment", fmt.Sprintf("0x%04x", segment), "Bus", fmt.Sprintf("0x%02x", bus),
				"Slot", fmt.Sprintf("0x%02x", slot), "Function", fmt.Sprintf("0x%x", function), "VMkernel Name", name,
				"Vendor Name", d.VendorName, "Device Name", d.DeviceName, "Configured Owner", owner, "Current Owner", owner,
				"Vendor ID", fmt.Sprintf("0x%04x", d.Vendor), "Device ID", fmt.Sprintf("0x%04x", d.Device),
				"SubVendor ID", fmt.Sprintf("0x%04x", d.SubVendor), "SubDevice ID", fmt.Sprintf("0x%04x", d.SubDevice),
				"Device Class", fmt.Sprintf("0x%04x", d.Class), "Device Class Name", className(d.Class), "Programming Interface", "0x00",
				"Revision ID", "0x00", "Interrupt Line", "0xff", "IRQ", "255", "Interrupt Vector", "0x00", "PCI Pin", "0x00",
				"Spawned Bus", "0x00", "Flags", "0x3201", "Module ID", strconv.Itoa(70+n), "Module Name", module, "Chassis", "0",
				"Physical Slot", "4294967295", "Slot Description", "", "Passthru Capable", strconv.FormatBool(d.PassthruCapable),
				"Parent Device", parent, "Dependent Device", fmt.Sprintf("PCI %d:%d:%d:%d", ds, db, dd, df),
				"Reset Method", "Function reset", "FPT Sharable", "true"))
		}
		return rows
	})
}

func className(class uint16) string {
	if class == 0x0207 {
		return "Infiniband controller"
	}
	switch class >> 8 {
	case 0x02:
		return "Ethernet controller"
	case 0x03:
		return "3D controller"
	case 0x04:
		return "Audio device"
	case 0x06:
		return "PCI bridge"
	}
	return "Unassigned class"
}

func pciPassthruList(w *world.World, host string, _ Args) (Answer, error) {
	return view(w, host, Table, "PCIPassthru", func(_ *world.State, h *world.Host) (rows [][]Field) {
		for _, d := range h.PCI {
			if d.PassthruCapable {
				rows = append(rows, row("Device ID", d.Address, "Enabled", strconv.FormatBool(d.PassthruEnabled)))
			}
		}
		return rows
	})
}

func pciPassthruSet(w *world.World, host string, args Args) (Answer, error) {
	on, err := truth(args["enable"])
	if err != nil {
		return Answer{}, err
	}
	err = w.SetPassthru(host, args["deviceid"], on, args["applynow"] == "true")
	if errors.Is(err, world.ErrUnknown) || errors.Is(err, world.ErrInvalid) || errors.Is(err, world.ErrBusy) {
		return Answer{}, refuse("Unable to configure the PCI device: %s", err)
	}
	return Answer{Shape: Text}, err
}
