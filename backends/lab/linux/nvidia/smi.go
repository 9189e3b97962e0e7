package nvidia

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// Programs returns nvidia-smi, dkms and p2pBandwidthLatencyTest.
func (d *Driver) Programs() map[string]sh.Program {
	return map[string]sh.Program{"nvidia-gridd": gridd, "nvidia-smi": d.smi, "nvidia-persistenced": d.persistenced, "dkms": d.dkms,
		"p2pBandwidthLatencyTest": d.peerTest}
}

// Exit codes of nvidia-smi.
const (
	badArgument   = 2
	noDevice      = 6
	badOption     = 255
	driverMissing = 9
)

const cudaVersion = "12.8"

func (d *Driver) smi(_ context.Context, p *sh.Proc) int {
	args := p.Args[1:]
	if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
		p.Printf("NVIDIA System Management Interface -- v570.133.20\n\nnvidia-smi [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...\n")
		return 0
	}
	for n, a := range p.Args {
		switch a { // parsed as one option, although it looks like several
		case "-pm":
			p.Args[n] = "--persistence-mode"
		case "-p2p":
			p.Args[n] = "--p2p"
		}
	}
	o, err := p.Options("q L i: d: x l: query-gpu: format: list-gpus query id: display: persistence-mode: m p2p:")
	topo, list := slices.Contains(args, "topo"), o.Has("L", "list-gpus")
	switch {
	case err != nil && topo:
		p.Printf("Option \"%s\" is not recognized.\n", args[1])
		return badArgument
	case err != nil || len(o.Args) > 0 && !topo:
		p.Printf("ERROR: Option %s is not recognized. Please run 'nvidia-smi -h'.\n\n", args[0])
		return badOption
	case list && o.Has("i", "id"):
		p.Printf("ERROR: Option -i is not valid for this command. Please run 'nvidia-smi -h' for help.\n\n")
		return badArgument
	}
	if !d.Ready() {
		p.Printf(
			"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed " +
				"and running.\n\n")
		return driverMissing
	}
	gpus := d.GPUs()
	missing := len(gpus) == 0 && !topo && !list
	if id := o.Value("i", "id"); id != "" {
		n, err := strconv.Atoi(id)
		if err != nil { // an index or a PCI address
			n = slices.IndexFunc(gpus, func(g GPU) bool { return strings.EqualFold(g.Address, id) || strings.EqualFold(g.busID(), id) })
		}
		if missing = n < 0 || n >= len(gpus); !missing {
			gpus = gpus[n : n+1]
		}
	}
	switch {
	case missing:
		p.Printf("No devices were found\n")
		return noDevice
	case topo:
		if o.Has("p2p") {
			return p2p(p, gpus, o.Value("p2p"))
		}
		return d.topo(p, gpus, o.Has("m"))
	case o.Has("persistence-mode"):
		return d.persistence(p, gpus, o.Value("persistence-mode"))
	case list:
		if len(gpus) == 0 {
			p.Printf("No devices found.\n")
		}
		for n, g := range gpus {
			p.Printf("GPU %d: %s (UUID: %s)\n", n, g.Name, g.UUID())
		}
	case o.Value("query-gpu") == "driver_version" && o.Value("format") == "csv,noheader":
		version, _ := d.Version()
		p.Printf("%s", strings.Repeat(version+"\n", len(gpus)))
	case o.Value("query-gpu") != "":
		p.Printf("Field \"%s\" is not a valid field to query.\n\n", o.Value("query-gpu"))
		return badArgument
	default:
		d.full(p, gpus)
	}
	return 0
}

// gridd is the daemon that fetches licenses: the lab looks for a token instead.
func gridd(context.Context, *sh.Proc) int { return 0 }

// persistence implements -pm. A user without rights is refused only if the mode would change.
func (d *Driver) persistence(p *sh.Proc, gpus []GPU, value string) int {
	mode := "Disabled"
	if value == "1" {
		mode = "Enabled"
	} else if value != "0" {
		p.Printf("Invalid persistence mode: %s\nTerminating early due to previous errors.\n", value)
		return badArgument
	}
	for n, g := range gpus {
		switch {
		case d.persistent(g, "Enabled", "Disabled") == mode:
			p.Printf("Persistence mode is already %s for GPU %s.\n", mode, g.busID())
			continue
		case !p.Root():
			p.Printf("Unable to set persistence mode for GPU %s: Insufficient Permissions\nTerminating early due to previous errors.\n", g.busID())
			return 4
		}
		d.persistAll(gpus[n:n+1], value == "1")
		p.Printf("%s persistence mode for GPU %s.\n", mode, g.busID())
	}
	p.Printf("All done.\n")
	return 0
}

func (d *Driver) persistAll(gpus []GPU, on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.persist == nil {
		d.persist = map[string]bool{}
	}
	for _, g := range gpus {
		d.persist[g.Address] = on
	}
}

func (d *Driver) persistent(g GPU, on, off string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.persist[g.Address] {
		return on
	}
	return off
}

// persistenced implements the start of nvidia-persistenced, which detaches itself: it keeps all GPUs initialized, unless
// --no-persistence-mode is set (nvidia-persistenced(1)).
func (d *Driver) persistenced(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("u: g: V user: group: verbose persistence-mode no-persistence-mode")
	switch {
	case err != nil:
		return p.Usage(1, err)
	case !d.Ready():
		return p.Fail(1, "nvidia-persistenced failed to initialize. Check syslog for more details.")
	case !o.Has("no-persistence-mode"):
		d.persistAll(d.GPUs(), true)
	}
	return 0
}

// full implements the part of nvidia-smi -q that is used here, with the layout of R580.
func (d *Driver) full(p *sh.Proc, gpus []GPU) {
	version, _ := d.Version()
	p.Printf("\n==============NVSMI LOG==============\n\n")
	row := func(indent int, key, value string) {
		p.Printf("%s%-*s : %s\n", strings.Repeat(" ", indent), 54-indent, key, value)
	}
	row(0, "Timestamp", p.Sys.Now().UTC().Format(time.ANSIC))
	row(0, "Driver Version", version)
	row(0, "CUDA Version", cudaVersion)
	p.Printf("\n")
	row(0, "Attached GPUs", strconv.Itoa(len(gpus)))
	for n, g := range gpus {
		mode := "Pass-Through"
		if g.Profile != "" {
			mode = "VGPU"
		}
		p.Printf("GPU %s\n", g.busID())
		for _, l := range []struct {
			indent     int
			key, value string
		}{
			{4, "Product Name", g.Name}, {4, "Product Brand", "NVIDIA"}, {4, "Product Architecture", g.Architecture},
			{4, "Display Mode", "Disabled"}, {4, "Display Active", "Disabled"}, {4, "Persistence Mode", d.persistent(g, "Enabled", "Disabled")},
			{4, "Serial Number", fmt.Sprint(1320000000000 + int64(g.Slot))}, {4, "GPU UUID", g.UUID()}, {4, "Minor Number", strconv.Itoa(n)},
			{4, "VBIOS Version", g.VBIOS}, {4, "MultiGPU Board", map[bool]string{true: "Yes", false: "No"}[g.Name == "Tesla K80"]},
			{4, "GPU Virtualization Mode", ""}, {8, "Virtualization Mode", mode}, {8, "Host VGPU Mode", "N/A"},
			{4, "PCI", ""}, {8, "Bus", "0x" + strings.ToUpper(g.Address[5:7])}, {8, "Device", "0x" + strings.ToUpper(g.Address[8:10])},
			{8, "Domain", "0x0000"},
			{8, "Device Id", fmt.Sprintf("0x%04X10DE", g.Device)}, {8, "Bus Id", g.busID()}, {8, "Sub System Id", fmt.Sprintf("0x%04X10DE", g.Sub)},
			{8, "GPU Link Info", ""}, {12, "PCIe Generation", ""}, {16, "Max", strconv.Itoa(g.Gen)}, {16, "Current", strconv.Itoa(g.Gen)},
			{16, "Device Current", strconv.Itoa(g.Gen)}, {16, "Device Max", strconv.Itoa(g.Gen)}, {16, "Host Max", "N/A"},
			{12, "Link Width", ""}, {16, "Max", "16x"}, {16, "Current", "16x"},
			{4, "FB Memory Usage", ""}, {8, "Total", mib(g.MemoryMiB)}, {8, "Reserved", mib(g.reserved())}, {8, "Used", mib(0)},
			{8, "Free", mib(g.MemoryMiB - g.reserved())},
			{4, "BAR1 Memory Usage", ""}, {8, "Total", mib(g.bar1())}, {8, "Used", mib(1)}, {8, "Free", mib(g.bar1() - 1)},
			{4, "Compute Mode", "Default"},
			{4, "vGPU Software Licensed Product", ""}, {8, "Product Name", "NVIDIA Virtual Compute Server"}, {8, "License Status", d.license()},
		} {
			if g.Profile == "" && l.key == "vGPU Software Licensed Product" {
				break // a passed-through GPU requires no license
			}
			if l.value == "" {
				p.Printf("%s%s\n", strings.Repeat(" ", l.indent), l.key)
				continue
			}
			row(l.indent, l.key, l.value)
		}
	}
	p.Printf("\n")
}

// license returns the license state of a vGPU as in nvidia-smi -q in guests (NVIDIA, Virtual GPU Client Licensing User Guide;
// NREC documentation, "vGPU": Licensed (Expiry: 2023-1-31 11:32:22 GMT)).
func (d *Driver) license() string {
	if d.Token != nil && d.Token() {
		return "Licensed (Expiry: 2027-1-31 11:32:22 GMT)"
	}
	return "Unlicensed (Restricted)"
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", n) }

// The heading of a matrix is underlined, whether or not a terminal reads it.
const underlined, plain = "\x1b[4m", "\x1b[0m"

// p2p implements nvidia-smi topo -p2p for the capabilities r, w, n, a and p, which the lab does not tell apart.
func p2p(p *sh.Proc, gpus []GPU, capability string) int {
	if len(capability) != 1 || !strings.Contains("rwnap", capability) {
		p.Printf("Invalid p2p capability index specified at the command-line\n")
		return badArgument
	}
	p.Printf(" \t%s", underlined)
	for n := range gpus {
		p.Printf("GPU%d\t", n)
	}
	p.Printf("%s", plain)
	for a, g := range gpus {
		p.Printf("\n GPU%d\t", a)
		for b, other := range gpus {
			status := "X"
			if a != b {
				status = peers(g, other)
			}
			p.Printf("%s\t", status)
		}
	}
	p.Printf("\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n  GNS  = GPU not supported\n" +
		"  TNS  = Topology not supported\n  NS   = Not supported\n  U    = Unknown\n")
	return 0
}

// topo implements nvidia-smi topo -m. It shows the VM's own PCI tree, which does not contain the host's switches.
func (d *Driver) topo(p *sh.Proc, gpus []GPU, matrix bool) int {
	if !matrix {
		p.Printf(
			"\n    topo -- Display topological information about the system.\n\n    Usage: nvidia-smi topo [options]\n\n    Options include:\n" +
				"    [-m | --matrix]: Display the GPUDirect communication matrix for the system.\n" +
				"    [-p2p | --p2pstatus]:      Displays the p2p status between the GPUs of a given p2p capability\n\n")
		return 0
	}
	if len(gpus) == 0 {
		p.Printf("Failed to run topology matrix\n\n")
		return badOption
	}
	nics := d.NICs()
	names := make([]string, 0, len(gpus)+len(nics))
	for n := range gpus {
		names = append(names, fmt.Sprintf("GPU%d", n))
	}
	for n := range nics {
		names = append(names, fmt.Sprintf("NIC%d", n))
	}
	link := func(a, b int) string {
		switch {
		case a == b:
			return " X "
		case a < len(gpus) && b >= len(gpus):
			return nics[b-len(gpus)].Remote(gpus[a])
		case b < len(gpus) && a >= len(gpus):
			return nics[a-len(gpus)].Remote(gpus[b])
		}
		return "PHB"
	}
	p.Printf("\t%s%s\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID%s\n", underlined, strings.Join(names, "\t"), plain)
	for a, name := range names {
		p.Printf("%s", name)
		for b := range names {
			p.Printf("\t%s", link(a, b))
		}
		if a < len(gpus) {
			p.Printf("\t0-15\t0\t\tN/A\n")
		} else {
			p.Printf("\t\t\t\t\n")
		}
	}
	p.Printf(
		"\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n" +
			"  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node\n" +
			"  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n" +
			"  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)\n" +
			"  PIX  = Connection traversing at most a single PCIe bridge\n  NV#  = Connection traversing a bonded set of # NVLinks\n")
	if len(nics) > 0 {
		p.Printf("\nNIC Legend:\n\n")
		for n, nic := range nics {
			p.Printf("  NIC%d: %s\n", n, nic.Name)
		}
		p.Printf("\n")
	}
	return 0
}
