package twin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// adapters copies pNICs and PCI functions. VFs are left out: the lab creates them.
func (t *Twin) adapters(h *backends.Host, w *world.Host) {
	for _, n := range h.NICs {
		p := &world.PNIC{Device: n.Device, MAC: n.MAC, PCI: n.PCI, Driver: n.Driver, DriverVersion: n.DriverVersion, Firmware: n.Firmware,
			Model:  n.Model,
			Vendor: vendors[id(n.Vendor)], SpeedMbps: cmp.Or(n.SpeedMbps, n.MaxSpeedMbps), MaxSpeedMbps: n.MaxSpeedMbps, LinkUp: n.SpeedMbps > 0,
			MTU: 1500, NUMA: max(0, n.NUMA), RxPause: true, TxPause: true}
		if n.SRIOV != nil && n.SRIOV.Capable {
			p.MaxVFs = n.SRIOV.Max
		}
		if pause, told := system(h).Pause.Value[n.Device]; told {
			p.RxPause, p.TxPause = pause.Rx, pause.Tx
		}
		for _, r := range h.RDMA {
			if r.NIC == n.Device {
				p.RDMA = &world.RDMA{Name: r.Name, Driver: r.Driver, RoCEv1: r.RoCEv1, RoCEv2: r.RoCEv2, IWARP: r.IWARP}
			}
		}
		w.PNICs = append(w.PNICs, p)
	}
	if !system(h).Pause.Known() {
		t.note(h.Name, "global pause of the pNICs was not read: on in both directions")
	}
	for _, d := range h.PCI {
		if virtual(h, d) {
			continue
		}
		w.PCI = append(w.PCI, t.function(h, d))
		switch class := id(d.Class) >> 8; {
		case infiniband(h, d.Address):
			t.unnamed(h, w, d, "is a port in InfiniBand mode")
		case class == 0x02 && d.Active && h.NICs != nil && !slices.ContainsFunc(h.NICs, func(n backends.NIC) bool { return n.PCI == d.Address }):
			t.unnamed(h, w, d, "is passed through whole")
		}
	}
	t.cards(h, w)
}

// virtual reports whether a function is a VF: neither a pNIC of the host nor, by its name, a function of a card.
func virtual(h *backends.Host, d backends.PCIDevice) bool {
	if id(d.Class)>>8 != 0x02 || slices.ContainsFunc(h.NICs, func(n backends.NIC) bool { return n.PCI == d.Address }) {
		return false
	}
	for _, f := range system(h).VFs {
		if slices.ContainsFunc(f.Value, func(v backends.VF) bool { return v.Address == d.Address }) {
			return true
		}
	}
	return strings.Contains(d.Name, "Virtual Function")
}

func (t *Twin) function(h *backends.Host, d backends.PCIDevice) *world.PCIDevice {
	f := &world.PCIDevice{Address: d.Address, Parent: d.Parent, Class: id(d.Class), Vendor: id(d.Vendor), Device: id(d.Device),
		SubVendor:  id(d.Vendor),
		VendorName: vendors[id(d.Vendor)], DeviceName: d.Name, NUMA: max(0, d.NUMA), Bridge: id(d.Class) == 0x0604,
		PassthruCapable: d.Capable, PassthruEnabled: d.Enabled, PassthruActive: d.Active}
	for _, g := range h.GPUs {
		if g.PCI == d.Address {
			f.MemoryMB = g.MemoryMB
		}
	}
	if !scenario.Know(f) {
		t.note(h.Name+" "+d.Address,
			"the lab does not know this GPU ("+d.Name+"): its memory regions are left out, so that power-on does not fail for them")
	}
	for _, other := range d.Dependents {
		if other < d.Address && (f.Dependent == "" || other < f.Dependent) {
			f.Dependent = other
		}
	}
	return f
}

// infiniband reports whether a function is a port that a plan sets to Ethernet.
func infiniband(h *backends.Host, address string) bool {
	return slices.ContainsFunc(h.Hidden, func(n backends.NIC) bool { return n.PCI == address && nic.ToEthernet(&n) != nil })
}

// unnamed adds the port of a card that the host does not list: it is passed through, or set to InfiniBand.
func (t *Twin) unnamed(h *backends.Host, w *world.Host, d backends.PCIDevice, why string) {
	p := &world.PNIC{PCI: d.Address, Driver: world.Nmlx5, Model: d.Name, Vendor: vendors[id(d.Vendor)], SpeedMbps: 100000,
		MaxSpeedMbps: 100000, LinkUp: true, MTU: 1500,
		MAC: fmt.Sprintf("b8:59:9f:%02x:%02x:%02x", w.Index>>8, w.Index&0xff, 0x80+len(w.PNICs))}
	for n := 0; p.Device == ""; n++ {
		if name := fmt.Sprintf("vmnic%d", n); w.PNIC(name) == nil {
			p.Device = name
		}
	}
	if family := nic.Of(p.Driver); id(d.Vendor) == 0x15b3 && family != nil {
		p.RDMA = &world.RDMA{Name: fmt.Sprintf("vmrdma-%s", p.Device), Driver: family.RDMA(), RoCEv1: true, RoCEv2: true}
	}
	for i := range t.site.VMs {
		v := &t.site.VMs[i]
		g := t.site.Guest(v.Name)
		if v.Host != h.Name || g == nil || !slices.Contains(v.Passthrough, d.Address) {
			continue
		}
		if c := g.Card(v); c != nil {
			p.MAC = c.MAC
		}
	}
	w.PNICs = append(w.PNICs, p)
	t.note(h.Name+" "+d.Address, why+", so the host reports neither its name nor its MAC nor its speed: 100 Gbps with a link is assumed")
}

func (t *Twin) cards(h *backends.Host, w *world.Host) {
	for _, p := range w.PNICs {
		d := w.PCIDevice(p.PCI)
		if d == nil || d.Vendor != 0x15b3 || w.Card(p.PCI) != nil {
			continue
		}
		c := scenario.NewCard(d.Device, p.PCI, p.MAC)
		if c == nil {
			t.note(h.Name+" "+p.PCI, "the lab does not support the firmware of this card: firmware tools do not find it")
			continue
		}
		c.Version = cmp.Or(p.Firmware, c.Version)
		for port := range c.Ports {
			if infiniband(h, c.Function(port)) {
				c.Set("LINK_TYPE_P"+strconv.Itoa(port+1), 1)
			}
		}
		if p.MaxVFs > 0 {
			c.Set("SRIOV_EN", 1)
			c.Set("NUM_OF_VFS", p.MaxVFs)
		}
		if read, told := system(h).Firmware[p.PCI]; told {
			settle(c, read)
		} else {
			t.note(h.Name,
				"firmware settings were not read (collect --esxi-shell reads them): values that fit the number of VFs, otherwise factory defaults")
			if c.Setting("INTERNAL_CPU_OFFLOAD_ENGINE") != nil {
				t.note(h.Name+" "+p.PCI,
					"the mode of this BlueField was not read (collect --esxi-shell reads it): NIC mode; in DPU mode the run would fail")
			}
		}
		w.Cards = append(w.Cards, c)
	}
}

func settle(c *firmware.Card, read backends.Firmware) {
	c.PSID = cmp.Or(read.PSID, c.PSID)
	if read.Slot.Gen > 0 {
		c.Gen, c.Lanes = read.Slot.Gen, read.Slot.Lanes
	}
	for _, name := range slices.Sorted(maps.Keys(read.Current)) {
		s := c.Setting(name)
		if s == nil {
			continue
		}
		if v, ok := number(s, read.Current[name]); ok {
			s.Current, s.Next = v, v
		}
		if v, ok := number(s, read.Next[name]); ok {
			s.Next = v
		}
	}
}

// number parses a value as the tools print it: 16, True(1).
func number(s *firmware.Setting, text string) (int, bool) {
	if i := strings.IndexByte(text, '('); i >= 0 {
		text = strings.TrimSuffix(text[i+1:], ")")
	}
	v, err := s.Parse(text)
	return v, err == nil && text != ""
}

// vendors are names by PCI id, as ESXi shows them.
var vendors = map[uint16]string{
	0x15b3: "Mellanox Technologies", 0x8086: "Intel Corporation", 0x10de: "NVIDIA Corporation", 0x10b5: "PLX Technology, Inc.",
	0x14e4: "Broadcom Inc.",
}
