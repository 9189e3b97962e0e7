package world

import (
	"net/netip"
	"slices"
)

// MTU returns the MTU of a pNIC: that of its switch or, without a switch, its own.
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

// RDMAMTU returns the largest RDMA path MTU that fits into an Ethernet MTU. The headers need up to 96 bytes (Linux,
// include/rdma/ib_addr.h, iboe_get_mtu).
func RDMAMTU(ethernet int) int {
	for _, mtu := range []int{4096, 2048, 1024, 512} {
		if ethernet-96 >= mtu {
			return mtu
		}
	}
	return 256
}

// Netmask returns the IPv4 netmask of a vmkernel adapter.
func (v *VMK) Netmask() string {
	m := ^uint32(0) << (32 - v.Prefix)
	return netip.AddrFrom4([4]byte{byte(m >> 24), byte(m >> 16), byte(m >> 8), byte(m)}).String()
}

// uplinks returns the pNICs with a link that a vmkernel adapter can use.
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

// carries reports whether a vmkernel adapter and its switch can send a packet. If dontFragment is true, the packet must not be
// fragmented.
func (s *State) carries(h *Host, v *VMK, bytes int, dontFragment bool) bool {
	links := s.uplinks(h, v)
	return len(links) > 0 && (!dontFragment || bytes <= v.MTU && bytes <= s.MTU(h, links[0]))
}

// Ping reports whether a packet of the given size from a host's vmkernel adapter ("" for any) reaches an address of another
// host. If dontFragment is true, the packet must not be fragmented; tooBig is true if it is rejected immediately because it exceeds
// the adapter's MTU.
func (s *State) Ping(h *Host, vmk, to string, bytes int, dontFragment bool) (reached, tooBig bool) {
	from := h.VMK(vmk)
	if vmk == "" && len(h.VMKs) > 0 {
		from = h.VMKs[0]
	}
	if from == nil {
		return false, false
	}
	if dontFragment && bytes > from.MTU {
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
			return s.carries(h, from, bytes, dontFragment) && s.carries(peer, v, bytes, dontFragment), false
		}
	}
	return false, false
}
