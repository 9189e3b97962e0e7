package model

import (
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func number(r types.ManagedObjectReference, first int) int {
	_, digits, ok := strings.Cut(r.Value, "-")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return -1
	}
	return n - first
}

// HostOf returns the host of a reference, or of a reference to one of its sub-objects. It returns nil if there is none.
func HostOf(s *world.State, r types.ManagedObjectReference) *world.Host {
	if n := number(r, 1001); n >= 0 && n < len(s.Hosts) && r.Type != "VirtualMachine" {
		return s.Hosts[n]
	}
	return nil
}

// VMOf returns the VM of a reference, or nil if there is none.
func VMOf(s *world.State, r types.ManagedObjectReference) *world.VM {
	n := number(r, 10001)
	switch {
	case n < 0 || r.Type != "VirtualMachine":
		return nil
	case n < len(s.VMs) && s.VMs[n].Index == n:
		return s.VMs[n]
	}
	for _, v := range s.VMs { // after a VM was removed, the others are at lower positions
		if v.Index == n {
			return v
		}
	}
	return nil
}

// SwitchOf returns the DVS of a reference, or nil if there is none.
func SwitchOf(s *world.State, r types.ManagedObjectReference) *world.DVS {
	for _, d := range s.Switches {
		if SwitchRef(d) == r {
			return d
		}
	}
	return nil
}

// SwitchByUUID returns the DVS with a UUID, or nil if there is none.
func SwitchByUUID(s *world.State, uuid string) *world.DVS {
	for _, d := range s.Switches {
		if d.UUID == uuid {
			return d
		}
	}
	return nil
}

// PortGroupByKey returns a distributed port group and its DVS, or nil if there is none.
func PortGroupByKey(s *world.State, key string) (*world.DVS, *world.PortGroup) {
	for _, d := range s.Switches {
		for _, p := range d.PortGroups {
			if p.Key == key {
				return d, p
			}
		}
	}
	return nil, nil
}
