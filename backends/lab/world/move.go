package world

// Evacuate moves the running VMs of a host to others, as DRS does: to the host with the fewest VMs that is up, not in
// maintenance, has the memory, and is a member of every DVS that the VM is connected to. VMs with VFs stay: they
// cannot move. DRS that is not fully automated only recommends, and none moves where the failover level of HA would break.
func (w *World) Evacuate(host string) {
	_ = w.Update(func(s *State) ([]Event, error) {
		if s.Services.NoDRS || s.Services.DRS != "" || !s.Level(0, host) {
			return nil, nil
		}
		var events []Event
		for _, v := range s.VMs {
			if v.Host != host || !v.On {
				continue
			}
			to := s.roomFor(v)
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

func (s *State) roomFor(v *VM) *Host {
	if v.Pinned() {
		return nil
	}
	var best *Host
	fewest := 0
	for _, h := range s.Hosts {
		if h.Name == v.Host || h.State != Up || h.Maintenance {
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

// Pinned says whether a device keeps the VM on its host.
func (v *VM) Pinned() bool {
	for _, a := range v.Adapters {
		if a.Type == SRIOV {
			return true
		}
	}
	return len(v.Devices) > 0
}
