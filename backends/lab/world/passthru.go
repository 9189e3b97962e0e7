package world

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// SetPassthru passes a PCI function through to VMs, or takes it back (ErrUnknown, ErrInvalid, ErrBusy). A network adapter
// changes at the next boot; other devices at once when now is set, else at the next boot too.
func (w *World) SetPassthru(host, pci string, enabled, now bool) error {
	return w.setHost(host, func(s *State, h *Host) (Event, error) {
		d := h.PCIDevice(pci)
		switch {
		case d == nil:
			return Event{}, fmt.Errorf("PCI device %s: %w", pci, ErrUnknown)
		case !d.PassthruCapable || d.PF != "":
			return Event{}, fmt.Errorf("PCI device %s: %w", pci, ErrInvalid)
		}
		p := h.PNICAt(pci)
		if enabled && p != nil && (s.SwitchOf(host, p.Device) != "" || p.ActiveVFs > 0) {
			return Event{}, fmt.Errorf("%s is %w", p.Device, ErrBusy)
		}
		d.PassthruEnabled = enabled
		if now && d.Class>>8 != 0x02 {
			d.PassthruActive = enabled
		}
		return Event{What: HostHardware, Detail: fmt.Sprintf("%s passthrough %t", pci, enabled)}, nil
	})
}

// ErrNoDevice says that a device is not passed through, or that another VM has it.
var ErrNoDevice = errors.New("no such device is free")

// AssignDevices gives a VM that is being switched on the devices that it is to have (ErrNoDevice).
func (s *State) AssignDevices(v *VM) error {
	h := s.Host(v.Host)
	taken := map[string]bool{}
	for _, other := range s.VMs {
		if other.Host != v.Host || !other.On || other.Name == v.Name {
			continue
		}
		for _, d := range other.Devices {
			taken[d.PCI], taken[d.Assigned] = true, true
		}
	}
	for _, d := range v.Devices {
		at := find(h.PCI, func(c *PCIDevice) bool {
			return c.PassthruActive && !taken[c.Address] && c.Vendor == d.Vendor && c.Device == d.Device && (d.PCI == "" || d.PCI == c.Address)
		})
		if at == nil {
			return fmt.Errorf("%s, %04x:%04x %s: %w", v.Name, d.Vendor, d.Device, d.PCI, ErrNoDevice)
		}
		taken[at.Address] = true
		if d.PCI == "" {
			d.Assigned = at.Address
		}
	}
	return nil
}

// detach takes adapters that are passed through as a whole out of the host's list, and puts back those that are not any
// more.
func (h *Host) detach() {
	all := append(h.PNICs, h.Detached...)
	h.PNICs, h.Detached = nil, nil
	for _, p := range all {
		if d := h.PCIDevice(p.PCI); d != nil && d.PassthruActive {
			h.Detached = append(h.Detached, p)
			continue
		}
		h.PNICs = append(h.PNICs, p)
	}
	slices.SortStableFunc(h.PNICs, func(a, b *PNIC) int { return natural(a.Device, b.Device) })
}

// natural orders vmnic2 before vmnic10.
func natural(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// SetPowerPolicy sets the power policy by its short name: static, dynamic, low, custom. It acts at once (ErrInvalid).
func (w *World) SetPowerPolicy(host, policy string) error {
	return w.setHost(host, func(_ *State, h *Host) (Event, error) {
		if !slices.Contains([]string{"static", "dynamic", "low", "custom"}, policy) {
			return Event{}, fmt.Errorf("power policy %q: %w", policy, ErrInvalid)
		}
		h.PowerPolicy = policy
		return Event{What: HostHardware, Detail: "power policy " + policy}, nil
	})
}

// PFC is the mask of priorities that priority flow control acts on at the driver's ports: pfctx and pfcrx, which must
// be equal, as they were at the last boot.
func (h *Host) PFC(p *PNIC) int {
	m := h.Module(p.Driver)
	if m == nil || m.Parameter("pfctx") == nil || m.Parameter("pfcrx") == nil {
		return 0
	}
	tx, rx := 0, 0
	_, _ = fmt.Sscanf(m.Parameter("pfctx").Active, "%v", &tx)
	_, _ = fmt.Sscanf(m.Parameter("pfcrx").Active, "%v", &rx)
	if tx != rx {
		return 0
	}
	return tx & 0xff
}

// Pause is the global pause in force: priority flow control suspends it.
func (h *Host) Pause(p *PNIC) (rx, tx bool) {
	if h.PFC(p) != 0 {
		return false, false
	}
	return p.RxPause, p.TxPause
}
