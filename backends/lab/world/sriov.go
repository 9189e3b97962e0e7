package world

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
)

// Nmlx5 is the driver whose ports share one list max_vfs.
const Nmlx5 = "nmlx5_core"

// ErrNoVF reports that a physical function has no free VF.
var ErrNoVF = errors.New("no VF is free")

// ErrBusy reports that a setting cannot change while the device is in use.
var ErrBusy = errors.New("in use")

// A SRIOVRequest is a port's setting that was requested through vCenter (HostSriovConfig). It takes effect at the next boot,
// instead of the port's entry in max_vfs, until the module parameter is written again: the last writer wins.
type SRIOVRequest struct {
	Enabled bool
	VFs     int
	Booted  bool // the host has booted since
}

// Ports are the ports that a driver has claimed, in the order of its list parameters: by PCI address, regardless of
// device names (KB 309346).
func (h *Host) Ports(driver string) []*PNIC {
	var list []*PNIC
	for _, p := range h.PNICs {
		if p.Driver == driver {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *PNIC) int { return strings.Compare(a.PCI, b.PCI) })
	return list
}

// Card finds the card of a PCI function; nil when the lab models no firmware there.
func (h *Host) Card(pci string) *firmware.Card {
	return find(h.Cards, func(c *firmware.Card) bool { return c.Has(pci) })
}

// PNICAt finds the physical adapter at a PCI address; nil when there is none.
func (h *Host) PNICAt(pci string) *PNIC {
	return find(h.PNICs, func(p *PNIC) bool { return p.PCI == pci })
}

// VFs returns the virtual functions of a port, in order.
func (h *Host) VFs(p *PNIC) []*PCIDevice {
	var list []*PCIDevice
	for _, d := range h.PCI {
		if d.PF == p.PCI {
			list = append(list, d)
		}
	}
	return list
}

// wanted returns the number of VFs requested for a port at this boot: by vCenter, else by its position in max_vfs. A list that is
// too short leaves the last ports without; a single number is for the first port only.
func (h *Host) wanted(p *PNIC) int {
	if r := p.SRIOV; r != nil {
		if !r.Enabled {
			return 0
		}
		return r.VFs
	}
	m := h.Module(p.Driver)
	if m == nil || m.Parameter("max_vfs") == nil {
		return 0
	}
	list := strings.Split(m.Parameter("max_vfs").Active, ",")
	at := slices.Index(h.Ports(p.Driver), p)
	if at >= len(list) {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(list[at]), 0, 16)
	if err != nil || n > 128 {
		return 0 // the driver takes 0-128 and ignores the rest
	}
	return int(n)
}

// populate creates the VFs that BIOS, firmware and driver allow, never more than the firmware of this boot allows.
func (h *Host) populate() {
	h.rdmaByIcen()
	h.PCI = slices.DeleteFunc(h.PCI, func(d *PCIDevice) bool { return d.PF != "" })
	for _, p := range h.PNICs {
		card := h.Card(p.PCI)
		if card != nil {
			p.MaxVFs = 0
			if h.BIOSSRIOV {
				p.MaxVFs = card.VFs()
			}
		}
		p.Shown = nil
		if p.SRIOV != nil {
			p.SRIOV.Booted = true
		}
		p.ActiveVFs = min(h.wanted(p), p.MaxVFs)
		for n := range p.ActiveVFs {
			h.PCI = append(h.PCI, virtualFunction(h.PCIDevice(p.PCI), p, n))
		}
	}
}

// virtualFunction creates the nth VF of a port: VFs follow the physical functions of their card, those of the second
// port after all that the first could have.
func virtualFunction(pf *PCIDevice, p *PNIC, n int) *PCIDevice {
	port := int(p.PCI[len(p.PCI)-1] - '0')
	rid := 2 + port*(p.MaxVFs) + n
	d := *pf
	d.Address = fmt.Sprintf("%s%02x.%x", p.PCI[:len(p.PCI)-4], rid>>3, rid&7)
	d.PF, d.Device = p.PCI, virtualID(pf.Device)
	d.DeviceName = strings.TrimSuffix(pf.DeviceName, "]") + " Virtual Function]"
	d.PassthruCapable, d.PassthruEnabled, d.PassthruActive = true, true, true
	return &d
}

// DecimalPCI writes 0000:3b:00.2 as 00000:059:00.2, as VMX files and older releases of ESXi do.
func DecimalPCI(address string) string {
	var segment, bus, slot, function int
	_, _ = fmt.Sscanf(address, "%04x:%02x:%02x.%x", &segment, &bus, &slot, &function)
	return fmt.Sprintf("%05d:%03d:%02d.%d", segment, bus, slot, function)
}

// virtualID is the device id of a VF: the port's plus one through ConnectX-6, one for all after that.
func virtualID(pf uint16) uint16 {
	if pf >= 0x101d {
		return 0x101e
	}
	return pf + 1
}

// freeVF is the first VF of a port that neither a running VM nor one of taken has; "" when there is none.
func (s *State) freeVF(h *Host, p *PNIC, taken []*Adapter) string {
	for _, d := range h.VFs(p) {
		if s.Owner(h.Name, d.Address) == nil && !slices.ContainsFunc(taken, func(a *Adapter) bool { return a.VF == d.Address }) {
			return d.Address
		}
	}
	return ""
}

// PortOf returns the port of an adapter's VF and the VF itself, or nil if the adapter has none.
func (h *Host) PortOf(a *Adapter) (*PNIC, *PCIDevice) {
	d := h.PCIDevice(a.VF)
	if a.VF == "" || d == nil {
		return nil, nil
	}
	return h.PNICAt(d.PF), d
}

// Owner returns the running VM that has a VF or a device, or nil if it is free.
func (s *State) Owner(host, pci string) *VM {
	return find(s.VMs, func(v *VM) bool {
		return v.Host == host && v.On && (slices.ContainsFunc(v.Adapters, func(a *Adapter) bool { return a.VF == pci }) ||
			slices.ContainsFunc(v.Devices, func(d *Passthrough) bool { return d.PCI+d.Assigned == pci }))
	})
}

// functions are the ports that may serve an SR-IOV adapter: the one that it names or, when it names none, the uplinks of
// its switch.
func (s *State) functions(h *Host, a *Adapter) []*PNIC {
	if a.PF != "" {
		if p := h.PNICAt(a.PF); p != nil {
			return []*PNIC{p}
		}
		return nil
	}
	var list []*PNIC
	for _, p := range h.PNICs {
		if s.SwitchOf(h.Name, p.Device) == a.DVS && a.DVS != "" {
			list = append(list, p)
		}
	}
	return list
}

// AssignVFs assigns a free VF to each SR-IOV adapter of a VM that is being powered on, or none with ErrNoVF.
func (s *State) AssignVFs(v *VM) error {
	h := s.Host(v.Host)
	for _, a := range v.Adapters {
		a.VF = ""
	}
	for _, a := range v.Adapters {
		if a.Type != SRIOV {
			continue
		}
		for _, p := range s.functions(h, a) {
			if a.VF == "" {
				a.VF = s.freeVF(h, p, v.Adapters)
			}
		}
		if a.VF == "" {
			for _, other := range v.Adapters {
				other.VF = ""
			}
			return fmt.Errorf("%s, %s: %w", v.Name, a.Label, ErrNoVF)
		}
	}
	return nil
}

// vfVectors are the interrupt vectors of a host that VFs may have: 4096 less those for the host's own devices (vSphere
// Networking, SR-IOV support).
const vfVectors = 3072

// outOfVectors reports whether the host has no interrupt vectors left for the VFs of a VM. It shows when the guest's driver
// registers them, not at power-on: the VM is powered off (vSphere Networking, "Powered Off Because the Host Is Out of Interrupt
// Vectors").
func (s *State) outOfVectors(v *VM) bool {
	h := s.Host(v.Host)
	if h == nil || !slices.ContainsFunc(v.Adapters, func(a *Adapter) bool { return a.VF != "" }) {
		return false
	}
	left := h.Vectors
	if left == 0 {
		left = vfVectors
	}
	for _, other := range s.VMs {
		if other.Host != h.Name || !other.On || other != v && !other.Guest.Up {
			continue
		}
		for _, a := range other.Adapters {
			if p, _ := h.PortOf(a); p != nil {
				left -= vectors(h.Card(p.PCI))
			}
		}
	}
	return left < 0
}

// vectors is the number of interrupt vectors of one VF of a card.
func vectors(c *firmware.Card) int {
	if c != nil && c.Setting("NUM_VF_MSIX") != nil {
		return c.Setting("NUM_VF_MSIX").Current
	}
	return 3
}

// staleFor is how long vCenter shows the old number of VFs after a change, unless it is told to refresh the host.
const staleFor = 2 * time.Second

// RefreshPassthru lets vCenter show a host's devices as they are.
func (w *World) RefreshPassthru(host string) error {
	return w.setHost(host, func(_ *State, h *Host) (Event, error) {
		for _, p := range h.PNICs {
			p.Shown = nil
		}
		return Event{What: HostNetwork, Detail: "devices read again"}, nil
	})
}

// SetSRIOV asks for VFs of a port, as vCenter does (ErrUnknown, ErrInvalid, ErrBusy). It takes effect after the next reboot.
func (w *World) SetSRIOV(host, pci string, enabled bool, vfs int) error {
	return w.setHost(host, func(s *State, h *Host) (Event, error) {
		p := h.PNICAt(pci)
		switch {
		case p == nil:
			return Event{}, fmt.Errorf("PCI device %s: %w", pci, ErrUnknown)
		case enabled && (p.MaxVFs == 0 || vfs < 1 || vfs > p.MaxVFs):
			return Event{}, fmt.Errorf("%d virtual functions on %s, which supports %d: %w", vfs, pci, p.MaxVFs, ErrInvalid)
		}
		for _, v := range s.VMs {
			for _, a := range v.Adapters {
				if d := h.PCIDevice(a.VF); v.Host == host && v.On && d != nil && d.PF == pci {
					return Event{}, fmt.Errorf("a virtual function of %s is %w by %s", pci, ErrBusy, v.Name)
				}
			}
		}
		if !enabled {
			vfs = 0
		}
		p.Shown = &SRIOVRequest{Enabled: p.ActiveVFs > 0, VFs: p.ActiveVFs}
		if p.SRIOV != nil {
			shown := *p.SRIOV
			p.Shown = &shown
		}
		w.afterLocked(staleFor, func() { _ = w.RefreshPassthru(host) }) // the host exists, or nobody reads it
		p.SRIOV = &SRIOVRequest{Enabled: enabled, VFs: vfs, Booted: p.ActiveVFs == vfs}
		return Event{What: HostHardware, Detail: fmt.Sprintf("%s %d VFs", pci, vfs)}, nil
	})
}

// RebootPending returns ESXi's flag that a reboot is required. Module parameters and firmware do not set it.
func (h *Host) RebootPending() bool {
	return h.RebootRequired || slices.ContainsFunc(h.PNICs, func(p *PNIC) bool { return p.SRIOV != nil && !p.SRIOV.Booted }) ||
		h.Staged() ||
		slices.ContainsFunc(h.PCI, func(d *PCIDevice) bool { return d.PassthruActive != d.PassthruEnabled })
}
