package esxi

import (
	"context"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// named returns the device given with the option -d, and whether the option is present.
func (h *Host) named(args []string) (name string, found []device) {
	if i := slices.IndexFunc(args, func(a string) bool { return a == "-d" || a == "--dev" }); i >= 0 && i+1 < len(args) {
		name = args[i+1]
	}
	h.host(func(host *world.Host) {
		if d := open(host, name); d != nil {
			found = []device{*d}
		} else if name == "" && host.MST {
			found = devices(host)
		}
	})
	return name, found
}

// mlxfwmanager shows the firmware versions. No images are available, because the host has no internet access.
func (h *Host) mlxfwmanager(_ context.Context, p *sh.Proc) int {
	if slices.Contains(p.Args, "--online") {
		p.Printf("-E- Failed to connect to the online server. Check the network connection of the host.\n")
		return 1
	}
	name, found := h.named(p.Args)
	switch {
	case len(found) == 0 && name != "":
		p.Printf("-E- Failed to open device: %s\n", name)
		return 1
	case len(found) == 0:
		p.Printf("-E- No devices found or specified, mst might be stopped, run 'mst start' to load MST modules\n")
		return 1
	}
	p.Printf("Querying Mellanox devices firmware ...\n\n")
	for n, d := range found {
		c, shown := d.card, d.name
		if name != "" {
			shown = name
		}
		p.Printf("Device #%d:\n----------\n\n", n+1)
		for _, line := range [][2]string{{"Device Type:", c.Type}, {"Part Number:", c.Part}, {"Description:", c.Description}, {"PSID:", c.PSID},
			{"PCI Device Name:", shown}, {"Base GUID:", guid(c)}, {"Base MAC:", c.MAC}, {"Versions:", "Current        Available"}} {
			p.Printf("  %-18s%s\n", line[0], line[1])
		}
		if c.Held() != c.Version {
			p.Printf("     %-15s%-15s%s\n", "FW (Running)", c.Version, "N/A")
		}
		for _, v := range [][2]string{{"FW", c.Held()}, {"PXE", c.PXE}, {"UEFI", c.UEFI}} {
			p.Printf("     %-15s%-15s%s\n", v[0], v[1], "N/A")
		}
		p.Printf("\n  %-18s%s\n\n", "Status:", "No matching image found")
	}
	return 0
}

func guid(c *firmware.Card) string { return c.MAC[:6] + "0300" + c.MAC[6:] }

// mlxlink shows the PCIe link of one device: its current speed and width, with the maximum in brackets.
func (h *Host) mlxlink(_ context.Context, p *sh.Proc) int {
	name, found := h.named(p.Args)
	i := slices.Index(p.Args, "--port_type")
	switch {
	case name == "" || len(found) == 0:
		p.Errorf("-E- Device is not supported or does not exist: %s\n", name)
		return 1
	case i < 0 || i+1 == len(p.Args) || p.Args[i+1] != "PCIE":
		p.Errorf("-E- The lab knows the PCIe port only (--port_type PCIE).\n")
		return 1
	}
	c, most := found[0].card, 16
	rate := map[int]string{1: "2.5G", 2: "5G", 3: "8G", 4: "16G", 5: "32G"}[c.Gen]
	p.Printf("\nPCIe Operational (Enabled) Info\n-------------------------------\n%-32s: 0, 0, 0\n", "Depth, pcie index, node")
	p.Printf("%-32s: %s-Gen %d (%s-Gen %d)\n%-32s: %dX (%dX)\n", "Link Speed Active (Enabled)", rate, c.Gen, rate, c.Gen, "Link Width Active (Enabled)", c.Lanes, most)
	return 0
}
