package world

import (
	"net/netip"
	"slices"
)

// MTU returns the MTU that a pNIC has from its switch, or its own if it has no switch.
func (s *State) MTU(h *Host, p *PNIC) int {
	if v := h.VSwitchOf(p.Device); v != nil {
		return v.MTU
	}
	for _, d := range s.Switches {
		if m := d.Member(h.Name); m != nil && slices.Contains(m.PNICs, p.Device) {
			return d.MTU
		}
	}
	return p.MTU
}

// RDMAMTU is the RDMA path MTU that fits into an Ethernet MTU: the headers take up to 96 bytes
// (Linux, include/rdma/ib_addr.h, iboe_get_mtu).
func RDMAMTU(ethernet int) int {
	for _, mtu := range []int{4096, 2048, 1024, 512} {
		if ethernet-96 >= mtu {
			return mtu
		}
	}
	return 256
}

// Netmask is the IPv4 netmask of a vmkernel adapter.
func (v *VMK) Netmask() string {
	m := ^uint32(0) << (32 - v.Prefix)
	return netip.AddrFrom4([4]byte{byte(m >> 24), byte(m >> 16), byte(m >> 8), byte(m)}).String()
}

// Uplinks are the pNICs with a link behind a vmkernel adapter.
func (s *State) uplinks(h *Host, v *VMK) []*PNIC {
	var devices []string
	if d := s.Switch(v.DVS); d != nil && d.Member(h.Name) != nil {
		devices = d.Member(h.Name).PNICs
	}
	for _, sw := range h.VSwitch {
		if sw.Name == v.VSwitch {
			devices = sw.Uplinks
		}
	}
	var list []*PNIC
	for _, name := range devices {
		if p := h.PNIC(name); p != nil && p.LinkUp {
			list = append(list, p)
		}
	}
	return list
}

// carries reports whether a packet passes a vmkernel adapter and the switch behind it.
func (s *State) carries(h *Host, v *VMK, bytes int, whole bool) bool {
	links := s.uplinks(h, v)
	return len(links) > 0 && (!whole || bytes <= v.MTU && bytes <= s.MTU(h, links[0]))
}

// Ping reports whether a packet of that many bytes gets from a host's vmkernel adapter ("" any) to an address of
// another host, and whether it is refused at once because it is larger than the adapter's MTU and may not be
// fragmented.
func (s *State) Ping(h *Host, vmk, to string, bytes int, whole bool) (reached, tooBig bool) {
	from := h.VMK(vmk)
	if vmk == "" && len(h.VMKs) > 0 {
		from = h.VMKs[0]
	}
	if from == nil {
		return false, false
	}
	if whole && bytes > from.MTU {
		return false, true
	}
	for _, peer := range s.Hosts {
		for _, v := range peer.VMKs {
			if v.IP != to || peer.State != Up {
				continue
			}
			if peer == h {
				return true, false
			}
			return s.carries(h, from, bytes, whole) && s.carries(peer, v, bytes, whole), false
		}
	}
	return false, false
}
