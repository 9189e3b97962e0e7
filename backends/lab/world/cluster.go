package world

import (
	"cmp"
	"slices"
	"time"
)

// Services are the automatic functions of the cluster.
type Services struct {
	DRS      string // manual, partiallyAutomated; "": fullyAutomated
	NoDRS    bool   // DRS is off
	HA       bool
	Failover int    // host failures for which HA's admission control reserves memory; 0: it is off
	EVC      string // key of the EVC mode; "": off
	VSAN     bool   // data of vSAN objects lies on the hosts
	Resync   int64  // bytes that vSAN has to copy before its objects are compliant again
	Rules    []Rule // affinity rules of DRS
}

// A Rule is an enabled affinity rule of DRS. VM-host rules name hosts; the others, VMs alone.
type Rule struct {
	Key      int32
	Name     string
	Apart    bool     // its VMs run on different hosts; otherwise on one, or on Hosts
	Must     bool     // a VM-host rule that is enforced
	VMs      []string // names
	Hosts    []string // of a VM-host rule: where its VMs run
	NotHosts []string // and where they do not
}

// Allows reports whether the rules of DRS let a VM run on a host. Unless all is set, only enforced rules count: a user may
// violate the others.
func (s *State) Allows(v *VM, host string, all bool) bool {
	for _, r := range s.Services.Rules {
		if !slices.Contains(r.VMs, v.Name) || !all && !r.Must {
			continue
		}
		if slices.Contains(r.NotHosts, host) || len(r.Hosts) > 0 && !slices.Contains(r.Hosts, host) {
			return false
		}
		if len(r.Hosts)+len(r.NotHosts) > 0 {
			continue
		}
		for _, o := range s.VMs {
			if o != v && o.On && slices.Contains(r.VMs, o.Name) && (o.Host == host) == r.Apart {
				return false
			}
		}
	}
	return true
}

// copying is how long vSAN copies after a host came back, and what.
const (
	copying  = 3 * time.Second
	resynced = 4 << 30
)

// Level reports whether HA's admission control lets the memory of running VMs, and more, be reserved on the hosts that are up and
// not named: as much as all but the largest of them have, as many as the failover level says.
func (s *State) Level(more int64, without string) bool {
	if !s.Services.HA || s.Services.Failover == 0 {
		return true
	}
	var room []int64
	for _, h := range s.Hosts {
		if h.State == Up && !h.Maintenance && h.Name != without {
			room = append(room, h.MemoryMB)
		}
	}
	left := len(room) - s.Services.Failover
	if left < 1 {
		return false
	}
	slices.SortFunc(room, func(a, b int64) int { return cmp.Compare(a, b) })
	for _, mb := range room[:left] {
		more -= mb
	}
	for _, v := range s.VMs {
		if v.On {
			more += v.Reserved
		}
	}
	return more <= 0
}

// resync starts to copy the data that a host has missed. The caller holds the mutex.
func (w *World) resync() {
	if !w.state.Services.VSAN {
		return
	}
	w.state.Services.Resync += resynced
	w.afterLocked(copying, func() {
		_ = w.Update(func(s *State) ([]Event, error) {
			s.Services.Resync = max(0, s.Services.Resync-resynced)
			return nil, nil
		})
	})
}
