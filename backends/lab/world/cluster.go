package world

import (
	"cmp"
	"slices"
	"time"
)

// Services are the cluster services: HA, DRS, EVC, vSAN and the image of Lifecycle Manager.
type Services struct {
	DRS      string // manual, partiallyAutomated; "": fullyAutomated
	NoDRS    bool   // DRS is off
	HA       bool
	Failover int    // host failures for which HA's admission control reserves memory; 0: admission control is off
	EVC      string // key of the EVC mode; "": off
	VSAN     bool   // the hosts store data of vSAN objects
	Resync   int64  // bytes that vSAN must copy before its objects are compliant again
	Rules    []Rule // affinity rules of DRS
	Image    *Image // image that manages the cluster; nil: baselines
}

// A Cluster is a cluster in addition to the first one.
type Cluster struct {
	Name       string
	Datacenter int // number of its datacenter; 0: the first
	Services   Services
}

// ClusterDatacenter returns the number of the datacenter of a cluster, by the number that hosts have.
func (s *State) ClusterDatacenter(n int) int {
	if n == 0 {
		return 0
	}
	return s.Clusters[n-1].Datacenter
}

// VMDatacenter returns the number of the datacenter of a VM, which is that of its host.
func (s *State) VMDatacenter(v *VM) int {
	if len(s.Others) > 0 {
		if h := s.Host(v.Host); h != nil {
			return s.ClusterDatacenter(h.Cluster)
		}
	}
	return 0
}

// DatacenterName returns the name of a datacenter.
func (s *State) DatacenterName(n int) string {
	if n == 0 {
		return s.Datacenter
	}
	return s.Others[n-1]
}

// ServicesOf returns the services of the cluster of a host, those of the first cluster if there is no such host.
func (s *State) ServicesOf(host string) *Services {
	if len(s.Clusters) > 0 {
		if h := s.Host(host); h != nil {
			return s.ClusterServices(h.Cluster)
		}
	}
	return &s.Services
}

// ClusterServices returns the services of a cluster, by the number that hosts have.
func (s *State) ClusterServices(n int) *Services {
	if n == 0 {
		return &s.Services
	}
	return &s.Clusters[n-1].Services
}

// together reports whether two hosts are in one cluster.
func (s *State) together(a, b string) bool { return s.ServicesOf(a) == s.ServicesOf(b) }

// A Rule is an enabled affinity rule of DRS. VM-host rules name VMs and hosts; other rules name only VMs.
type Rule struct {
	Key      int32
	Name     string
	Apart    bool     // its VMs run on different hosts; otherwise on the same host, or on Hosts
	Must     bool     // the VM-host rule is enforced ("must")
	VMs      []string // names
	Hosts    []string // hosts of a VM-host rule on which the VMs run
	NotHosts []string // hosts of a VM-host rule on which the VMs do not run
}

// Allows reports whether the DRS rules allow a VM to run on a host. If all is false, only enforced rules are checked, because a
// user may violate the others.
func (s *State) Allows(v *VM, host string, all bool) bool {
	for _, r := range s.ServicesOf(host).Rules {
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

// copying is the duration of a vSAN resync after a host has returned, and resynced is the number of bytes that it copies.
const (
	copying  = 3 * time.Second
	resynced = 4 << 30
)

// Level reports whether HA's admission control allows more MB to be reserved in the cluster of a host, in addition to the memory of
// the running VMs. The available memory is that of all hosts that are up, without the host itself if it leaves, and without the
// largest hosts, as many as the failover level requires.
func (s *State) Level(more int64, host string, leaves bool) bool {
	v := s.ServicesOf(host)
	if !v.HA || v.Failover == 0 {
		return true
	}
	var room []int64
	for _, h := range s.Hosts {
		if h.State == Up && !h.Maintenance && !(leaves && h.Name == host) && s.together(h.Name, host) {
			room = append(room, h.MemoryMB)
		}
	}
	left := len(room) - v.Failover
	if left < 1 {
		return false
	}
	slices.SortFunc(room, func(a, b int64) int { return cmp.Compare(a, b) })
	for _, mb := range room[:left] {
		more -= mb
	}
	for _, v := range s.VMs {
		if v.On && s.together(v.Host, host) {
			more += v.Reserved
		}
	}
	return more <= 0
}

// resync starts to copy the data that was changed while a host was down. The caller must hold the mutex.
func (w *World) resync(host string) {
	v := w.state.ServicesOf(host)
	if !v.VSAN {
		return
	}
	v.Resync += resynced
	w.afterLocked(copying, func() {
		_ = w.Update(func(s *State) ([]Event, error) {
			v := s.ServicesOf(host)
			v.Resync = max(0, v.Resync-resynced)
			return nil, nil
		})
	})
}
