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

// Nmlx5 is the driver whose list parameter max_vfs applies to all of its ports.
const Nmlx5 = "nmlx5_core"

// ErrNoVF reports that a physical function has no free VF.
var ErrNoVF = errors.New("no VF is free")

// ErrBusy reports that a setting cannot change while the device is in use.
var ErrBusy = errors.New("in use")

// A SRIOVRequest is the setting of a port that was requested through vCenter (HostSriovConfig). It takes effect at the next
// boot and overrides the port's entry in max_vfs until the module parameter is written again: the last change has precedence.
type SRIOVRequest struct {
	Enabled bool
	VFs     int
	Booted  bool // the host has booted since the request
}

// Ports returns the ports that a driver has claimed, in the order of its list parameters: by PCI address, regardless of device
// names (KB 309346).
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

// Card returns the card of a PCI function, or nil if the lab does not model its firmware.
func (h *Host) Card(pci string) *firmware.Card {
	return find(h.Cards, func(c *firmware.Card) bool { return c.Has(pci) })
}

// PNICAt returns the physical adapter at a PCI address, or nil if there is none.
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

// wanted returns the number of VFs requested for a port at this boot, by vCenter or by the port's entry in max_vfs. If the list
// is too short, the remaining ports have no VFs. A single number applies to the first port only.
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
		return 0 // the driver accepts 0-128 and ignores other values
	}
	return int(n)
}

// populate creates the VFs that BIOS, firmware and driver allow. The limit of the firmware is the one at this boot.
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

// virtualFunction creates VF n of a port. VFs follow the physical functions of their card; the VFs of the second port follow
// the maximum number of VFs of the first.
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

// DecimalPCI converts 0000:3b:00.2 to 00000:059:00.2, the format of VMX files and older releases of ESXi.
func DecimalPCI(address string) string {
	var segment, bus, slot, function int
	_, _ = fmt.Sscanf(address, "%04x:%02x:%02x.%x", &segment, &bus, &slot, &function)
	return fmt.Sprintf("%05d:%03d:%02d.%d", segment, bus, slot, function)
}

// virtualID returns the device ID of a VF: through ConnectX-6, the port's ID plus one; for later cards, one common ID.
func virtualID(pf uint16) uint16 {
	if pf >= 0x101d {
		return 0x101e
	}
	return pf + 1
}

// freeVF returns the first VF of a port that is used neither by a running VM nor by an adapter of taken, or "" if there is
// none.
func (s *State) freeVF(h *Host, p *PNIC, taken []*Adapter) string {
	for _, d := range h.VFs(p) {
		if s.Owner(h.Name, d.Address) == nil && !slices.ContainsFunc(taken, func(a *Adapter) bool { return a.VF == d.Address }) {
			return d.Address
		}
	}
	return ""
}

// PortOf returns the VF of an adapter and its port, or nil if the adapter has none.
func (h *Host) PortOf(a *Adapter) (*PNIC, *PCIDevice) {
	d := h.PCIDevice(a.VF)
	if a.VF == "" || d == nil {
		return nil, nil
	}
	return h.PNICAt(d.PF), d
}

// Owner returns the running VM that uses a VF or a device, or nil if it is free.
func (s *State) Owner(host, pci string) *VM {
	return find(s.VMs, func(v *VM) bool {
		return v.Host == host && v.On && (slices.ContainsFunc(v.Adapters, func(a *Adapter) bool { return a.VF == pci }) ||
			slices.ContainsFunc(v.Devices, func(d *Passthrough) bool { return d.PCI+d.Assigned == pci }))
	})
}

// functions returns the ports that an SR-IOV adapter can use: the configured one or, if none is configured, the uplinks of its
// switch.
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

// AssignVFs assigns a free VF to each SR-IOV adapter of a VM that is being powered on. On ErrNoVF, it assigns none.
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

// vfVectors is the number of interrupt vectors of a host available to VFs: 4096 less those of the host's own devices (vSphere
// Networking, SR-IOV support).
const vfVectors = 3072

// outOfVectors reports whether the host has too few interrupt vectors for the VFs of a VM. The VM powers on, but is powered off
// when the guest's driver registers the vectors (vSphere Networking, "Powered Off Because the Host Is Out of Interrupt
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

// vectors returns the number of interrupt vectors of one VF of a card.
func vectors(c *firmware.Card) int {
	if c != nil && c.Setting("NUM_VF_MSIX") != nil {
		return c.Setting("NUM_VF_MSIX").Current
	}
	return 3
}

// staleFor is the time for which vCenter reports the old number of VFs after a change, unless the host is refreshed.
const staleFor = 2 * time.Second

// RefreshPassthru makes vCenter report the current devices of a host.
func (w *World) RefreshPassthru(host string) error {
	return w.refresh(host, Event{What: HostNetwork, Detail: "devices read again"}, func(h *Host) (stale bool) {
		for _, p := range h.PNICs {
			stale = stale || p.Shown != nil
			p.Shown = nil
		}
		return stale
	})
}

// SetSRIOV requests VFs of a port through vCenter (ErrUnknown, ErrInvalid, ErrBusy). It takes effect after the next reboot.
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
		w.afterLocked(staleFor, func() { _ = w.RefreshPassthru(host) }) // if the host was removed, nothing needs a refresh
		p.SRIOV = &SRIOVRequest{Enabled: enabled, VFs: vfs, Booted: p.ActiveVFs == vfs}
		return Event{What: HostHardware, Detail: fmt.Sprintf("%s %d VFs", pci, vfs)}, nil
	})
}

// RebootPending returns ESXi's flag for a required reboot. Changes of module parameters and firmware do not set it.
func (h *Host) RebootPending() bool {
	return h.RebootRequired || slices.ContainsFunc(h.PNICs, func(p *PNIC) bool { return p.SRIOV != nil && !p.SRIOV.Booted }) ||
		h.Staged() ||
		slices.ContainsFunc(h.PCI, func(d *PCIDevice) bool { return d.PassthruActive != d.PassthruEnabled })
}
