package nvidia

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// field is a property in --query-gpu.
type field struct {
	unit string // unit in the heading
	text func(d *Driver, n int, g GPU) string
}

func fields() map[string]field {
	plain := func(f func(g GPU) string) field {
		return field{text: func(_ *Driver, _ int, g GPU) string { return f(g) }}
	}
	memory := func(f func(g GPU) int64) field {
		return field{unit: "MiB", text: func(_ *Driver, _ int, g GPU) string { return strconv.FormatInt(f(g), 10) }}
	}
	all := map[string]field{
		"index":                   {text: func(_ *Driver, n int, _ GPU) string { return strconv.Itoa(n) }},
		"count":                   {text: func(d *Driver, _ int, _ GPU) string { return strconv.Itoa(len(d.GPUs())) }},
		"driver_version":          {text: func(d *Driver, _ int, _ GPU) string { v, _ := d.Version(); return v }},
		"persistence_mode":        {text: func(d *Driver, _ int, g GPU) string { return d.persistent(g, "Enabled", "Disabled") }},
		"name":                    plain(func(g GPU) string { return g.Name }),
		"uuid":                    plain(GPU.UUID),
		"pci.bus_id":              plain(GPU.busID),
		"pci.device_id":           plain(func(g GPU) string { return fmt.Sprintf("0x%04X10DE", g.Device) }),
		"pci.sub_device_id":       plain(func(g GPU) string { return fmt.Sprintf("0x%04X10DE", g.Sub) }),
		"vbios_version":           plain(func(g GPU) string { return g.VBIOS }),
		"pcie.link.gen.current":   plain(func(g GPU) string { return strconv.Itoa(g.Gen) }),
		"pcie.link.gen.max":       plain(func(g GPU) string { return strconv.Itoa(g.Gen) }),
		"pcie.link.width.current": plain(func(GPU) string { return "16" }),
		"pcie.link.width.max":     plain(func(GPU) string { return "16" }),
		"memory.total":            memory(func(g GPU) int64 { return g.MemoryMiB }),
		"memory.reserved":         memory(GPU.reserved),
		"memory.used":             memory(func(GPU) int64 { return 0 }),
		"memory.free":             memory(func(g GPU) int64 { return g.MemoryMiB - g.reserved() }),
	}
	for short, long := range map[string]string{"gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id"} {
		all[short] = all[long]
	}
	return all
}

// query implements --query-gpu with --format=csv[,noheader][,nounits].
func (d *Driver) query(p *sh.Proc, gpus []GPU, names, format string) int {
	options := strings.Split(format, ",")
	if !slices.Contains(options, "csv") {
		p.Printf("\"--format=\" switch is missing. One of the valid --format=csv,[noheader,nounits] has to be specified.\n\n")
		return badArgument
	}
	known := fields()
	var wanted []field
	var head []string
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		f, ok := known[name]
		if !ok {
			p.Printf("Field \"%s\" is not a valid field to query.\n\n", name)
			return badArgument
		}
		if wanted = append(wanted, f); f.unit != "" {
			name += " [" + f.unit + "]"
		}
		head = append(head, name)
	}
	if !slices.Contains(options, "noheader") {
		p.Printf("%s\n", strings.Join(head, ", "))
	}
	for n, g := range gpus {
		var row []string
		for _, f := range wanted {
			text := f.text(d, n, g)
			if f.unit != "" && !slices.Contains(options, "nounits") {
				text += " " + f.unit
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
