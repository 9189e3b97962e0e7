package esxi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// flint queries the firmware of a device or a file, and burns firmware from a file to a device (mstflint,
// flint/subcommands.cpp).
func (h *Host) flint(ctx context.Context, p *sh.Proc) int {
	name, found := h.named(p.Args)
	file := ""
	if i := slices.IndexFunc(p.Args, func(a string) bool { return a == "-i" || a == "--image" }); i >= 0 && i+1 < len(p.Args) {
		file = p.Args[i+1]
	}
	image := h.imageFile(file)
	verb := p.Args[len(p.Args)-1]
	switch {
	case name == "" && file == "":
		p.Printf("-E- No device or image given. Use -d or -i.\n")
	case name != "" && len(found) == 0:
		p.Printf("-E- Cannot open Device: %s. No such file or directory. MFE_CR_ERROR\n", name)
	case file != "" && image == nil:
		p.Printf("-E- Cannot open Image: %s. No such file or directory\n", file)
	case verb == "q" || verb == "query":
		if name == "" {
			p.Printf("%s", imageText(image.Version, "", image.PSID, "N/A", "N/A", "", ""))
			return 0
		}
		var text string
		h.host(func(*world.Host) {
			c := found[0].card
			running := ""
			if c.Held() != c.Version {
				running = c.Version
			}
			text = imageText(c.Held(), running, c.PSID, guid(c), c.MAC, c.UEFI, c.PXE)
		})
		p.Printf("%s", text)
		return 0
	case verb != "b" && verb != "burn":
		p.Printf("-E- Unknown command: %s\n", verb)
	case name == "" || image == nil:
		p.Printf("-E- Burning needs an image (-i).\n")
	default:
		return h.burn(ctx, p, found[0].card, *image)
	}
	return 1
}

// imageFile returns the image at a path of the datastore, or nil if there is none.
func (h *Host) imageFile(path string) (image *firmware.Image) {
	h.world.View(func(s *world.State) {
		if i := slices.IndexFunc(s.Images, func(i firmware.Image) bool { return i.Path == path }); i >= 0 {
			image = &s.Images[i]
		}
	})
	return image
}

// imageText returns the output of a query. It contains the running version only if that is different.
func imageText(version, running, psid, guid, mac, uefi, pxe string) string {
	var b strings.Builder
	line := func(label, value string) { fmt.Fprintf(&b, "%-22s %s\n", label, value) }
	line("Image type:", "FS4")
	line("FW Version:", version)
	if running != "" {
		line("FW Version(Running):", running)
	}
	line("FW Release Date:", "7.11.2024")
	line("Product Version:", "rel-"+strings.NewReplacer(".", "_").Replace(version))
	if uefi != "" {
		line("Rom Info:", "type=UEFI version="+dropZeros(uefi)+" cpu=AMD64")
		line("", "type=PXE version="+dropZeros(pxe)+" cpu=AMD64")
	}
	line("Description:", "UID                GuidsNumber")
	line("Base GUID:", guid+"        4")
	line("Base MAC:", mac+"            4")
	line("Image VSD:", "N/A")
	line("Device VSD:", "N/A")
	line("PSID:", psid)
	line("Security Attributes:", "N/A")
	return b.String()
}

// burnParts is the number of steps in which an image is burned.
const burnParts = 4

// burn writes an image next to the current one and activates it in the last step, so that an interrupted burn leaves the current
// firmware in place (MFT documentation, flint: the default burn is failsafe and alternates between two locations). An image for
// another board is refused, and an image that is not newer requires confirmation (mstflint, BurnSubCommand::checkPSID and
// checkFwVersion). The card runs its old firmware until the next boot.
func (h *Host) burn(ctx context.Context, p *sh.Proc, c *firmware.Card, image firmware.Image) int {
	var held, psid string
	locked := false
	_ = h.world.Update(func(*world.State) ([]world.Event, error) {
		held, psid, locked = c.Held(), c.PSID, c.Burning
		c.Burning = true
		return nil, nil
	})
	if locked {
		p.Printf(
			"-E- Cannot open Device: Can not obtain Flash semaphore (63). You can run \"flint -clear_semaphore -d <device>\" to force semaphore " +
				"unlock. See help for details.\n")
		return 1
	}
	//nolint:errcheck // does not change the result of a failure
	defer h.world.Update(func(*world.State) ([]world.Event, error) { c.Burning = false; return nil, nil })
	p.Printf("\n    Current FW version on flash:  %s\n    New FW version:               %s\n\n", held, image.Version)
	if image.PSID != psid {
		p.Printf("\n-E- PSID mismatch. The PSID on flash (%s) differs from the PSID in the given image (%s).\n", psid, image.PSID)
		return 1
	}
	if !later(image.Version, held) {
		p.Printf("\n    Note: The new FW version is not newer than the current FW version on flash.\n\n Do you want to continue ? (y/n) [n] : ")
		p.Printf("\n-E- Aborted by user\n")
		return 1
	}
	p.Printf("FSMST_INITIALIZE -   OK\n")
	for range burnParts {
		if !p.Spend(ctx, "flint part") {
			return 1
		}
	}
	p.Printf("Writing Boot image component -   OK\n")
	err := h.world.Update(func(*world.State) ([]world.Event, error) {
		c.Flash = image.Version
		return []world.Event{{What: world.HostHardware, Host: h.name, Detail: "flint burn " + c.PCI + " " + image.Version}}, nil
	})
	if err != nil {
		p.Printf("-E- Burning FS4 image failed: %v\n", err)
		return 1
	}
	p.Printf("Restoring signature                     - OK\n-I- To load new FW run mlxfwreset or reboot machine.\n")
	if !p.Spend(ctx, "flint part") {
		return 1
	}
	return 0
}

// later reports whether a version is newer than another, number by number.
func later(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, errM := strconv.Atoi(x[i])
		n, errN := strconv.Atoi(y[i])
		if errM != nil || errN != nil || m != n {
			return errM == nil && errN == nil && m > n
		}
	}
	return false
}

// dropZeros removes leading zeros: 14.29.0015 becomes 14.29.15.
func dropZeros(version string) string {
	parts := strings.Split(version, ".")
	for i, part := range parts {
		if trimmed := strings.TrimLeft(part, "0"); trimmed != "" {
			parts[i] = trimmed
		}
	}
	return strings.Join(parts, ".")
}

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
	p.Printf("%-32s: %s-Gen %d (%s-Gen %d)\n%-32s: %dX (%dX)\n", "Link Speed Active (Enabled)", rate, c.Gen, rate, c.Gen,
		"Link Width Active (Enabled)", c.Lanes, most)
	return 0
}
