package world

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors returned when a host rejects a setting.
var (
	ErrUnknown = errors.New("not found")
	ErrInvalid = errors.New("invalid value")
)

func (w *World) setHost(host string, f func(*State, *Host) (Event, error)) error {
	return w.Update(func(s *State) ([]Event, error) {
		h := s.Host(host)
		if h == nil {
			return nil, noHost(host)
		}
		e, err := f(s, h)
		if err != nil {
			return nil, err
		}
		e.Host = host
		return []Event{e}, nil
	})
}

// refresh calls f, which removes vCenter's outdated copy of settings of a host and reports whether there was one. Without one, no
// event is published.
func (w *World) refresh(host string, e Event, f func(*Host) (stale bool)) error {
	return w.Update(func(s *State) ([]Event, error) {
		h := s.Host(host)
		if h == nil {
			return nil, noHost(host)
		}
		if !f(h) {
			return nil, nil
		}
		e.Host = host
		return []Event{e}, nil
	})
}

// SetOption sets an advanced option. It returns ErrUnknown if the key does not exist and ErrInvalid if the value does not have
// the option's type (string, int64 or bool). Any string is valid for Net.PVRDMAVmknic, as on ESXi.
func (w *World) SetOption(host, key string, value any) error {
	return w.setHost(host, func(_ *State, h *Host) (Event, error) {
		old, known := h.Options[key]
		if !known {
			return Event{}, fmt.Errorf("option %s: %w", key, ErrUnknown)
		}
		if fmt.Sprintf("%T", old) != fmt.Sprintf("%T", value) {
			return Event{}, fmt.Errorf("option %s: %w", key, ErrInvalid)
		}
		h.Options[key] = value
		return Event{What: HostOption, Detail: fmt.Sprintf("%s=%v", key, value)}, nil
	})
}

// SetRuleset enables or disables a firewall ruleset (ErrUnknown).
func (w *World) SetRuleset(host, key string, enabled bool) error {
	return w.setHost(host, func(_ *State, h *Host) (Event, error) {
		r := h.Ruleset(key)
		if r == nil {
			return Event{}, fmt.Errorf("ruleset %s: %w", key, ErrUnknown)
		}
		r.Enabled = enabled
		if h.Copied != nil {
			h.Copied.Firewall = nil
		}
		return Event{What: HostFirewall, Detail: fmt.Sprintf("%s=%t", key, enabled)}, nil
	})
}

// RefreshFirewall makes vCenter read the firewall of a host again.
func (w *World) RefreshFirewall(host string) error {
	return w.refresh(host, Event{What: HostFirewall, Detail: "refreshed"}, func(h *Host) (stale bool) {
		if h.Copied != nil {
			stale, h.Copied.Firewall = h.Copied.Firewall != nil, nil
		}
		return stale
	})
}

// RefreshServices makes vCenter read the services of a host again.
func (w *World) RefreshServices(host string) error {
	return w.refresh(host, Event{What: HostService, Detail: "refreshed"}, func(h *Host) (stale bool) {
		if h.Copied != nil {
			stale, h.Copied.Services = h.Copied.Services != nil, nil
		}
		return stale
	})
}

// SetService starts or stops a service such as TSM-SSH (ErrUnknown).
func (w *World) SetService(host, key string, running bool) error {
	return w.setHost(host, func(_ *State, h *Host) (Event, error) {
		svc := h.Service(key)
		if svc == nil {
			return Event{}, fmt.Errorf("service %s: %w", key, ErrUnknown)
		}
		svc.Running = running
		return Event{What: HostService, Detail: fmt.Sprintf("%s=%t", key, running)}, nil
	})
}

// SetModule replaces all parameters of a kernel module, like "esxcli system module parameters set -p". Parameters that are not
// listed are unset. The change takes effect at the next reboot. It returns ErrUnknown for unknown modules and parameters.
// Setting or removing max_vfs overrides vCenter's setting.
func (w *World) SetModule(host, module, parameters string) error {
	return w.setHost(host, func(_ *State, h *Host) (Event, error) {
		m := h.Module(module)
		if m == nil {
			return Event{}, fmt.Errorf("module %s: %w", module, ErrUnknown)
		}
		wanted := map[string]string{}
		for _, field := range strings.Fields(parameters) {
			name, value, ok := strings.Cut(field, "=")
			if !ok || value == "" {
				return Event{}, fmt.Errorf("parameter %q: %w", field, ErrInvalid)
			}
			if m.Parameter(name) == nil {
				return Event{}, fmt.Errorf("parameter %s of %s: %w", name, module, ErrUnknown)
			}
			wanted[name] = value
		}
		if vfs := m.Parameter("max_vfs"); vfs != nil && (vfs.Value != "" || wanted["max_vfs"] != "") {
			for _, p := range h.Ports(module) {
				p.SRIOV = nil
			}
		}
		for _, p := range m.Parameters {
			p.Value = wanted[p.Name]
		}
		return Event{What: HostModule, Detail: module + " " + parameters}, nil
	})
}

// SetLink connects or disconnects the cable of a pNIC (ErrUnknown).
func (w *World) SetLink(host, pnic string, up bool) error {
	return w.setHost(host, func(_ *State, h *Host) (Event, error) {
		p := h.PNIC(pnic)
		if p == nil {
			return Event{}, fmt.Errorf("%s: %w", pnic, ErrUnknown)
		}
		p.LinkUp = up
		return Event{What: HostNetwork, Detail: fmt.Sprintf("%s link %t", pnic, up)}, nil
	})
}

// SetMaintenance enters or exits maintenance mode. A host cannot enter it while VMs are running on it.
func (w *World) SetMaintenance(host string, on bool) error {
	err := w.setHost(host, func(s *State, h *Host) (Event, error) {
		if on {
			for _, v := range s.VMs {
				if v.Host == host && v.On {
					return Event{}, fmt.Errorf("%s is still running on %s", v.Name, host)
				}
			}
		}
		h.Maintenance = on
		return Event{What: HostMaintenance, Detail: fmt.Sprint(on)}, nil
	})
	if err == nil && !on {
		return w.Update(func(s *State) ([]Event, error) { return s.services(host, true), nil })
	}
	return err
}

// AddTraffic adds to the counters of a host's RDMA device, or of a pNIC (ErrUnknown): traffic that no test of a guest causes. It does
// not notify watchers, because clients poll the counters.
func (w *World) AddTraffic(host, device string, c Counters) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.state.Host(host)
	if h == nil {
		return noHost(host)
	}
	p := h.RDMADevice(device)
	if n := h.PNIC(device); n != nil {
		n.Frames.BytesSent += c.BytesSent
		n.Frames.BytesReceived += c.BytesReceived
		return nil
	}
	if p == nil {
		return fmt.Errorf("RDMA device %s: %w", device, ErrUnknown)
	}
	p.RDMA.Stats.PacketsSent += c.PacketsSent
	p.RDMA.Stats.PacketsReceived += c.PacketsReceived
	p.RDMA.Stats.BytesSent += c.BytesSent
	p.RDMA.Stats.BytesReceived += c.BytesReceived
	p.RDMA.Stats.ErrorPackets += c.ErrorPackets
	p.RDMA.Stats.QueuePairs += c.QueuePairs
	return nil
}

// SetShellAddr sets the address on which the SSH server of a host listens.
func (w *World) SetShellAddr(host, addr string) error {
	return w.setHost(host, func(_ *State, h *Host) (Event, error) {
		h.ShellAddr = addr
		return Event{What: HostService, Detail: "SSH on " + addr}, nil
	})
}

// SetGuestAddr sets the address on which the SSH server of a guest listens.
func (w *World) SetGuestAddr(vm, address string, port int) error {
	return w.setVM(vm, VMGuest, func(v *VM) { v.Guest.Address, v.Guest.Port = address, port })
}

// SetGuestNICs sets the interfaces that VMware Tools report for a guest.
func (w *World) SetGuestNICs(vm string, nics []GuestNIC) error {
	return w.setVM(vm, VMGuest, func(v *VM) { v.Guest.NICs = slices.Clone(nics) })
}

func (w *World) setVM(vm, what string, f func(*VM)) error {
	return w.Update(func(s *State) ([]Event, error) {
		v := s.VM(vm)
		if v == nil {
			return nil, noVM(vm)
		}
		f(v)
		return []Event{{What: what, VM: v.Name}}, nil
	})
}
