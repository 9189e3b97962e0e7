package esxi

import (
	"context"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// esxcfgModule shows or replaces the options of a kernel module.
func (h *Host) esxcfgModule(_ context.Context, p *sh.Proc) int {
	if len(p.Args) == 4 && p.Args[1] == "-s" {
		if err := h.world.SetModule(h.name, p.Args[3], p.Args[2]); err != nil {
			p.Printf("Error: %v\n", err)
			return 1
		}
		return 0
	}
	if len(p.Args) != 3 || p.Args[1] != "-g" {
		p.Printf("esxcfg-module <options> [module]\n")
		return 1
	}
	found := false
	h.host(func(host *world.Host) {
		m := host.Module(p.Args[2])
		if m == nil {
			return
		}
		found = true
		var set []string
		for _, param := range m.Parameters {
			if param.Value != "" {
				set = append(set, param.Name+"="+param.Value)
			}
		}
		p.Printf("%s enabled = 1 options = '%s'\n", m.Name, strings.Join(set, " "))
	})
	if !found {
		p.Printf("Unable to find module %s\n", p.Args[2])
		return 1
	}
	return 0
}

// lspci lists the PCI functions in short format.
func (h *Host) lspci(_ context.Context, p *sh.Proc) int {
	h.host(func(host *world.Host) {
		for _, d := range host.PCI {
			class, alias := "Bridge", ""
			switch d.Class >> 8 {
			case 0x02:
				class = "Network controller"
				if d.Class == 0x0207 {
					class = "Infiniband controller"
				}
			case 0x03:
				class = "Display controller"
			}
			if nic := host.PNICAt(d.Address); nic != nil {
				alias = " [" + nic.Device + "]"
			}
			if d.PF != "" {
				alias = " [PF_" + strings.TrimPrefix(d.PF, "0000:") + "_VF]"
			}
			p.Printf("%s %s: %s %s%s\n", d.Address, class, d.VendorName, d.DeviceName, alias)
		}
	})
	return 0
}
