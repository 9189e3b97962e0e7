package world

import "slices"

// Evacuate migrates the running VMs of a host to other hosts, as DRS does. The target is the host with the fewest VMs that is
// up, is not in maintenance mode, has enough memory, is a member of every DVS to which the VM is connected, and violates no
// affinity rule. VMs with VFs are not migrated, because they cannot be. If DRS is not fully automated, it only makes
// recommendations. No VM is migrated if that would violate HA's failover level.
func (w *World) Evacuate(host string) {
	_ = w.Update(func(s *State) ([]Event, error) { return s.services(host, false), nil })
	_ = w.Update(func(s *State) ([]Event, error) {
		if services := s.ServicesOf(host); services.NoDRS || services.DRS != "" || !s.Level(0, host, true) {
			return nil, nil
		}
		var events []Event
		for _, v := range s.VMs {
			if v.Host != host || !v.On {
				continue
			}
			to := s.RoomFor(v, nil)
			if to == nil {
				continue
			}
			v.Host = to.Name
			events = append(events, Event{What: VMPower, VM: v.Name, Host: to.Name, Detail: "moved"}, Event{What: HostVMs, Host: to.Name})
		}
		if events != nil {
			events = append(events, Event{What: HostVMs, Host: host})
		}
		return events, nil
	})
}

// services powers the vSphere Cluster Services VMs of a host on or off. Source: Broadcom KB 370222.
func (s *State) services(host string, on bool) []Event {
	var events []Event
	for _, v := range s.VMs {
		if v.Host == host && v.Service && v.On != on {
			v.On = on
			events = append(events, Event{What: VMPower, VM: v.Name, Host: host}, Event{What: HostVMs, Host: host})
		}
	}
	return events
}

// RoomFor returns the host that DRS recommends for a VM, or nil if none is suitable. If among is not empty, only those hosts
// are considered.
func (s *State) RoomFor(v *VM, among []string) *Host {
	if v.Pinned() || v.Local || v.Sharing != "" {
		return nil
	}
	var best *Host
	fewest := 0
	for _, h := range s.Hosts {
		if len(among) > 0 && !slices.Contains(among, h.Name) || h.Name == v.Host || !s.together(h.Name, v.Host) || h.State != Up ||
			h.Maintenance || !s.Allows(v, h.Name, true) {
			continue
		}
		used, n, fits := int64(0), 0, true
		for _, other := range s.VMs {
			if other.Host == h.Name && other.On {
				used += other.MemoryMB
				n++
			}
		}
		for _, a := range v.Adapters {
			if d := s.Switch(a.DVS); d != nil && d.Member(h.Name) == nil {
				fits = false
			}
		}
		if fits && used+v.MemoryMB <= h.MemoryMB && (best == nil || n < fewest) {
			best, fewest = h, n
		}
	}
	return best
}

// Pinned reports whether a device prevents migration of the VM.
func (v *VM) Pinned() bool {
	for _, a := range v.Adapters {
		if a.Type == SRIOV {
			return true
		}
	}
	return len(v.Devices) > 0
}
