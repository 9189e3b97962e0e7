package nvidia

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// value returns a property in --query-gpu of the GPU with index n. A size is a number of MiB, which its heading and its value name.
func (d *Driver) value(property string, n int, g GPU) (text string, size, known bool) {
	switch property {
	case "index":
		text = strconv.Itoa(n)
	case "count":
		text = strconv.Itoa(len(d.GPUs()))
	case "driver_version":
		text, _ = d.Version()
	case "persistence_mode":
		text = d.persistent(g, "Enabled", "Disabled")
	case "name":
		text = g.Name
	case "uuid":
		text = g.UUID()
	case "pci.bus_id":
		text = g.busID()
	case "pci.device_id":
		text = fmt.Sprintf("0x%04X10DE", g.Device)
	case "pci.sub_device_id":
		text = fmt.Sprintf("0x%04X10DE", g.Sub)
	case "vbios_version":
		text = g.VBIOS
	case "pcie.link.gen.current", "pcie.link.gen.max":
		text = strconv.Itoa(g.Gen)
	case "pcie.link.width.current", "pcie.link.width.max":
		text = "16"
	case "memory.total":
		text, size = fmt.Sprint(g.MemoryMiB), true
	case "memory.reserved":
		text, size = fmt.Sprint(g.reserved()), true
	case "memory.used":
		text, size = "0", true
	case "memory.free":
		text, size = fmt.Sprint(g.MemoryMiB-g.reserved()), true
	default:
		return "", false, false
	}
	return text, size, true
}

// canonical returns the name of a property in the heading: some have a second one.
func canonical(name string) string {
	switch name {
	case "gpu_name", "gpu_uuid":
		return name[len("gpu_"):]
	case "gpu_bus_id":
		return "pci.bus_id"
	}
	return name
}

// query implements --query-gpu with --format=csv[,noheader][,nounits]; csv is the default.
func (d *Driver) query(p *sh.Proc, gpus []GPU, names, format string) int {
	options := strings.Split(format, ",")
	for _, o := range options {
		if o != "" && o != "csv" && o != "noheader" && o != "nounits" {
			p.Printf("Format modifier is not recognized.\n")
			return badArgument
		}
	}
	var wanted, head []string
	for name := range strings.SplitSeq(names, ",") {
		name = canonical(strings.TrimSpace(name))
		_, size, known := d.value(name, 0, GPU{})
		if !known {
			p.Printf("Field \"%s\" is not a valid field to query.\n\n", name)
			return badArgument
		}
		wanted = append(wanted, name)
		if size {
			name += " [MiB]"
		}
		head = append(head, name)
	}
	if !slices.Contains(options, "noheader") {
		p.Printf("%s\n", strings.Join(head, ", "))
	}
	for n, g := range gpus {
		var row []string
		for _, name := range wanted {
			text, size, _ := d.value(name, n, g)
			if size && !slices.Contains(options, "nounits") {
				text += " MiB"
			}
			row = append(row, text)
		}
		p.Printf("%s\n", strings.Join(row, ", "))
	}
	return 0
}

// dkms rebuilds the modules for the running kernel.
func (d *Driver) dkms(_ context.Context, p *sh.Proc) int {
	version, _ := d.Version()
	if len(p.Args) < 2 || p.Args[1] == "status" {
		if version != "" {
			p.Printf("nvidia/%s, %s, x86_64: installed\n", version, d.Kernel.Release)
		}
		return 0
	}
	switch verb := p.Args[1]; {
	case !slices.Contains([]string{"autoinstall", "build", "install", "remove"}, verb):
		return p.Fail(1, "Error! Unknown action specified: \"%s\"", verb)
	case !p.Root():
		return p.Fail(1, "Error! You must be root to use this command.")
	case verb == "install":
		d.Rebuild()
		p.Printf("\nnvidia.ko:\nRunning module version sanity check.\n - Installing to /lib/modules/%s/updates/dkms/\n\ndepmod...\n", d.Kernel.Release)
	}
	return 0
}
