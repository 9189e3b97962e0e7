package linux

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A function is a PCI function as lspci shows it.
type function struct {
	at, class, classID, text, id string
	driver, modules              string
	revision                     string
	sub                          string // subsystem name
	slot                         int    // physical slot number
	bars                         []world.BAR
}

// functions returns the functions on the VM's PCI buses.
func (m *Machine) functions() []function {
	list := []function{{at: "00:00.0", class: "Host bridge", classID: "0600", text: "Intel Corporation 440BX/ZX/DX - 82443BX/ZX/DX Host bridge", id: "8086:7190"},
		{at: "00:0f.0", class: "VGA compatible controller", classID: "0300", text: "VMware SVGA II Adapter", id: "15ad:0405"},
		{at: "03:00.0", class: "Serial Attached SCSI controller", classID: "0107", text: "VMware PVSCSI SCSI Controller", id: "15ad:07c0", driver: "vmw_pvscsi"}}
	for _, l := range m.net.Stack.Links() {
		bus := fmt.Sprintf("%02x:00.", netif.Bus(l.Slot))
		if l.HCA != nil {
			list = append(list, function{at: bus + "0", class: "Ethernet controller", classID: "0200", text: "Mellanox Technologies " + l.HCA.Name,
				id: fmt.Sprintf("15b3:%04x", l.HCA.Device), driver: m.loaded("mlx5_core"), modules: "mlx5_core", slot: l.Slot,
				sub: fmt.Sprintf("Mellanox Technologies Device [15b3:%04x]", l.HCA.Sub), bars: []world.BAR{{Index: 0, MB: 32, Wide: true}}})
			continue
		}
		list = append(list, function{at: bus + "0", class: "Ethernet controller", classID: "0200", text: "VMware VMXNET3 Ethernet Controller", id: "15ad:07b0", driver: "vmxnet3"})
		if l.Paired {
			list = append(list, function{at: bus + "1", class: "Infiniband controller", classID: "0207", text: "VMware Paravirtual RDMA controller", id: "15ad:0820",
				driver: m.loaded("vmw_pvrdma")})
		}
	}
	for _, g := range m.site.gpus(m.cfg.VM) {
		class := map[uint16]string{0x0300: "VGA compatible controller", 0x0302: "3D controller"}[g.Class]
		list = append(list, function{at: strings.TrimPrefix(g.Address, "0000:"), class: class, classID: fmt.Sprintf("%04x", g.Class),
			text: "NVIDIA Corporation " + g.Text, id: fmt.Sprintf("10de:%04x", g.Device), driver: cmp.Or(m.loaded("nvidia"), m.loaded("nouveau")), modules: "nvidiafb, nouveau",
			revision: "a1", slot: g.Slot, sub: fmt.Sprintf("NVIDIA Corporation Device [10de:%04x]", g.Sub), bars: g.BARs})
		if _, there := m.kernel.Find("nvidia"); there {
			list[len(list)-1].modules += ", nvidia_drm, nvidia"
		}
	}
	return list
}

// loaded returns the name of a module if it is loaded, otherwise "".
func (m *Machine) loaded(module string) string {
	if m.kernel.Loaded(module) {
		return module
	}
	return ""
}

func (m *Machine) lspci(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("n k v d: s: D m")
	if err != nil {
		return p.Usage(1, err)
	}
	numeric, verbose := 0, 0
	for _, a := range p.Args[1:] {
		if strings.HasPrefix(a, "-") {
			numeric += strings.Count(a, "n")
			verbose += strings.Count(a, "v")
		}
	}
	want, slot := strings.ToLower(o.Value("d")), o.Value("s")
	for _, d := range m.functions() {
		vendor, id, _ := strings.Cut(want, ":")
		if want != "" && (!strings.HasPrefix(d.id, vendor+":") || id != "" && !strings.HasSuffix(d.id, id)) || slot != "" && !strings.Contains("0000:"+d.at, slot) {
			continue
		}
		d.head(p, o.Has("D"), numeric)
		switch {
		case d.bars != nil && (verbose > 0 || o.Has("k")):
			d.details(p, verbose)
		case o.Has("k", "v") && d.driver != "":
			p.Printf("\tSubsystem: VMware %s\n\tKernel driver in use: %s\n\tKernel modules: %s\n", strings.TrimPrefix(d.text, "VMware "), d.driver, d.driver)
		}
	}
	return 0
}

func (d function) head(p *sh.Proc, domain bool, numeric int) {
	at, revision := d.at, "01"
	if domain {
		at = "0000:" + at
	}
	if d.revision != "" {
		revision = d.revision
	}
	switch {
	case numeric == 1:
		p.Printf("%s %s: %s", at, d.classID, d.id)
	case numeric > 1:
		p.Printf("%s %s [%s]: %s [%s]", at, d.class, d.classID, d.text, d.id)
	default:
		p.Printf("%s %s: %s", at, d.class, d.text)
	}
	p.Printf(" (rev %s)\n", revision)
}

// details prints the lines below the first line of a passed-through device. The link is that of the virtual root port: the
// guest cannot read the speed and width of the physical link.
func (d function) details(p *sh.Proc, verbose int) {
	p.Printf("\tSubsystem: %s\n", d.sub)
	if verbose > 0 {
		p.Printf("\tPhysical Slot: %d\n", d.slot)
		p.Printf("\tFlags: bus master, fast devsel, latency 64\n")
		for _, b := range d.bars {
			kind, at := "32-bit, non-prefetchable", int64(0xfc000000)+int64(d.slot)<<16
			if b.Wide {
				kind, at = "64-bit, prefetchable", 0xe000000000+int64(d.slot)<<32+int64(b.Index)<<37
			}
			p.Printf("\tRegion %d: Memory at %x (%s) [size=%s]\n", b.Index, at, kind, size(b.MB))
		}
	}
	if verbose > 1 {
		p.Printf("\t\tLnkCap:\tPort #0, Speed 5GT/s, Width x32, ASPM L0s, Exit Latency L0s <64ns\n\t\tLnkSta:\tSpeed 5GT/s, Width x32\n")
	}
	if d.driver != "" {
		p.Printf("\tKernel driver in use: %s\n", d.driver)
	}
	p.Printf("\tKernel modules: %s\n", d.modules)
}

func size(mb int64) string {
	if mb >= 1024 {
		return fmt.Sprintf("%dG", mb/1024)
	}
	return fmt.Sprintf("%dM", mb)
}
