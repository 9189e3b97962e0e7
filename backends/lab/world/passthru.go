package world

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SetPassthru enables or disables passthrough of a PCI function and of the functions that belong to it (ErrUnknown, ErrInvalid,
// ErrBusy). For network adapters and devices that the host uses, the change takes effect at the next boot. For other devices it
// takes effect immediately if now is true, otherwise at the next boot.
func (w *World) SetPassthru(host, pci string, enabled, now bool) error {
	return w.setHost(host, func(s *State, h *Host) (Event, error) {
		d := h.PCIDevice(pci)
		switch {
		case d == nil:
			return Event{}, fmt.Errorf("PCI device %s: %w", pci, ErrUnknown)
		case !d.PassthruCapable || d.PF != "":
			return Event{}, fmt.Errorf("PCI device %s: %w", pci, ErrInvalid)
		}
		group := h.group(d)
		for _, m := range group {
			if v := s.Owner(host, m.Address); v != nil && m.PassthruEnabled != enabled {
				return Event{}, fmt.Errorf("%s is %w by %s", m.Address, ErrBusy, v.Name)
			}
			p := h.PNICAt(m.Address)
			if enabled && p != nil && (s.SwitchOf(host, p.Device) != "" || p.ActiveVFs > 0) {
				return Event{}, fmt.Errorf("%s is %w", p.Device, ErrBusy)
			}
		}
		for _, m := range group {
			m.PassthruEnabled = enabled
			if now && m.Class>>8 != 0x02 && !m.AtBoot {
				m.PassthruActive = enabled
			}
		}
		return Event{What: HostHardware, Detail: fmt.Sprintf("%s passthrough %t", pci, enabled)}, nil
	})
}

// group returns a function and the functions that must be passed through together with it.
func (h *Host) group(d *PCIDevice) []*PCIDevice {
	head := d.Address
	if d.Dependent != "" {
		head = d.Dependent
	}
	var list []*PCIDevice
	for _, m := range h.PCI {
		if m.Address == head || m.Dependent == head {
			list = append(list, m)
		}
	}
	return list
}

// Errors returned when a device cannot be assigned to a VM.
var (
	ErrNotPassthrough = errors.New("not a passthrough device")
	ErrNoDevice       = errors.New("no such device is free")
)

// A DeviceError describes a problem with a device of a VM.
type DeviceError struct {
	Index int    // index in the VM's device list
	PCI   string // "" for a dynamic device
	Err   error  // ErrNotPassthrough, ErrNoDevice
}

// Error implements error.
func (e *DeviceError) Error() string {
	return fmt.Sprintf("pciPassthru%d %s: %v", e.Index, e.PCI, e.Err)
}

// Unwrap returns the underlying error.
func (e *DeviceError) Unwrap() error { return e.Err }

// AssignDevices assigns the requested devices to a VM that is being powered on: a fixed device by its address, a dynamic device
// by an allowed model and the requested label. Errors are of type DeviceError.
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
	for n, d := range v.Devices {
		if d.Profile != "" {
			continue
		}
		if c := h.PCIDevice(d.PCI); d.PCI != "" && (c == nil || !c.PassthruActive) {
			return &DeviceError{n, d.PCI, ErrNotPassthrough}
		}
		at := find(h.PCI, func(c *PCIDevice) bool {
			return c.PassthruActive && c.PF == "" && !taken[c.Address] && (d.PCI == c.Address || d.PCI == "" && d.allows(c))
		})
		if at == nil {
			return &DeviceError{n, d.PCI, ErrNoDevice}
		}
		taken[at.Address] = true
		if d.PCI == "" {
			d.Assigned = at.Address
		}
	}
	return s.AssignVGPUs(v)
}

// allows reports whether a function matches a dynamic device.
func (d *Passthrough) allows(c *PCIDevice) bool {
	makes := append([]Make{{d.Vendor, d.Device}}, d.Others...)
	return d.Label == c.Label && slices.Contains(makes, Make{c.Vendor, c.Device})
}

// Given returns the host's functions that are assigned to the devices of a VM, in the order of the VM's list. If the VM is off,
// these are the functions of its last run.
func (s *State) Given(v *VM) []*PCIDevice {
	var list []*PCIDevice
	if h := s.Host(v.Host); h != nil {
		for _, d := range v.Devices {
			if c := h.PCIDevice(d.PCI + d.Assigned); c != nil {
				list = append(list, c)
			}
		}
	}
	return list
}

// detach removes ports that are passed through to VMs, and InfiniBand ports, from the host's adapters, and adds those that are
// neither any more. ESXi's driver for ConnectX supports only Ethernet ports (NVIDIA, ConnectX-4/5 native ESXi driver user
// manual, Introduction). An InfiniBand port has PCI class 0207.
func (h *Host) detach() {
	all := slices.Concat(h.PNICs, h.Detached, h.InfiniBand)
	h.PNICs, h.Detached, h.InfiniBand = nil, nil, nil
	for _, p := range all {
		d, card := h.PCIDevice(p.PCI), h.Card(p.PCI)
		infiniband := card != nil && card.InfiniBand(p.PCI)
		if d != nil && d.PF == "" && d.Class>>8 == 0x02 {
			d.Class = 0x0200
			if infiniband {
				d.Class = 0x0207
			}
		}
		switch {
		case d != nil && d.PassthruActive:
			h.Detached = append(h.Detached, p)
		case infiniband:
			h.InfiniBand = append(h.InfiniBand, p)
		default:
			h.PNICs = append(h.PNICs, p)
		}
	}
	slices.SortStableFunc(h.PNICs, func(a, b *PNIC) int { return natural(a.Device, b.Device) })
}

// Whole returns the passed-through port at a PCI address, or nil if there is none.
func (h *Host) Whole(pci string) *PNIC {
	return find(h.Detached, func(p *PNIC) bool { return p.PCI == pci })
}

// WholeOf returns the port with that MAC that is passed through to a running VM, or nil if there is none.
func (s *State) WholeOf(v *VM, mac string) *PNIC {
	h := s.Host(v.Host)
	if h == nil || !v.On {
		return nil
	}
	for _, d := range v.Devices {
		if p := h.Whole(d.PCI + d.Assigned); p != nil && strings.EqualFold(p.MAC, mac) {
			return p
		}
	}
	return nil
}

// natural compares names in natural order: vmnic2 before vmnic10.
func natural(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// SetPowerPolicy sets the power policy by its short name: static, dynamic, low, custom. It takes effect immediately
// (ErrInvalid).
func (w *World) SetPowerPolicy(host, policy string) error {
	return w.setHost(host, func(_ *State, h *Host) (Event, error) {
		if !slices.Contains([]string{"static", "dynamic", "low", "custom"}, policy) {
			return Event{}, fmt.Errorf("power policy %q: %w", policy, ErrInvalid)
		}
		h.PowerPolicy = policy
		return Event{What: HostHardware, Detail: "power policy " + policy}, nil
	})
}

// SetGraphics sets the graphics type of a host's GPUs. It takes effect at the next boot.
func (w *World) SetGraphics(host, kind string) error {
	return w.setHost(host, func(_ *State, h *Host) (Event, error) {
		if kind != "shared" && kind != "sharedDirect" {
			return Event{}, fmt.Errorf("graphics type %q: %w", kind, ErrInvalid)
		}
		h.NextShared = kind
		return Event{What: HostHardware, Detail: "graphics type " + kind}, nil
	})
}

// PFC returns the mask of priorities for which priority flow control is active on the driver's ports. It is the value of pfctx
// and pfcrx at the last boot; the two must be equal.
func (h *Host) PFC(p *PNIC) int {
	if slices.Contains(h.Detached, p) {
		return p.Guest.PFC
	}
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

// Pause returns the global pause setting that is in effect. Priority flow control suspends global pause.
func (h *Host) Pause(p *PNIC) (rx, tx bool) {
	if h.PFC(p) != 0 {
		return false, false
	}
	return p.RxPause, p.TxPause
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
