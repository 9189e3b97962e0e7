package linux

import (
	"context"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// A function is a PCI function as lspci shows it.
type function struct{ at, class, classID, text, id, revision string }

// functions returns the functions on the VM's PCI buses.
func (m *Machine) functions() []function {
	list := []function{{at: "00:00.0", class: "Host bridge", classID: "0600", text: "Intel Corporation 440BX/ZX/DX - 82443BX/ZX/DX Host bridge", id: "8086:7190"},
		{at: "00:0f.0", class: "VGA compatible controller", classID: "0300", text: "VMware SVGA II Adapter", id: "15ad:0405"},
		{at: "03:00.0", class: "Serial Attached SCSI controller", classID: "0107", text: "VMware PVSCSI SCSI Controller", id: "15ad:07c0"}}
	for _, l := range m.net.Stack.Links() {
		bus := fmt.Sprintf("%02x:00.", netif.Bus(l.Slot))
		if l.HCA != nil {
			list = append(list, function{at: bus + "0", class: "Ethernet controller", classID: "0200", text: "Mellanox Technologies " + l.HCA.Name,
				id: fmt.Sprintf("15b3:%04x", l.HCA.Device)})
			continue
		}
		list = append(list, function{at: bus + "0", class: "Ethernet controller", classID: "0200", text: "VMware VMXNET3 Ethernet Controller", id: "15ad:07b0"})
		if l.Paired {
			list = append(list, function{at: bus + "1", class: "Infiniband controller", classID: "0207", text: "VMware Paravirtual RDMA controller", id: "15ad:0820"})
		}
	}
	for _, g := range m.site.gpus(m.cfg.VM) {
		class := map[uint16]string{0x0300: "VGA compatible controller", 0x0302: "3D controller"}[g.Class]
		list = append(list, function{at: strings.TrimPrefix(g.Address, "0000:"), class: class, classID: fmt.Sprintf("%04x", g.Class),
			text: "NVIDIA Corporation " + g.Text, id: fmt.Sprintf("10de:%04x", g.Device), revision: "a1"})
	}
	return list
}

func (m *Machine) lspci(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("n D")
	if err != nil {
		return p.Usage(1, err)
	}
	numeric := 0
	for _, a := range p.Args[1:] {
		numeric += strings.Count(a, "n")
	}
	for _, d := range m.functions() {
		d.head(p, o.Has("D"), numeric)
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

// loaded returns the name of a module if it is loaded, otherwise "".
func (m *Machine) loaded(module string) string {
	if m.kernel.Loaded(module) {
		return module
	}
	return ""
}
