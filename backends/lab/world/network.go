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

// A Defect is a mistake in the manual setup of a guest. Its effect is visible in the guest's shell.
type Defect string

// Defects of a guest whose Preset is "gpudirect".
const (
	NoGPUDriver   Defect = "nvidia"        // NVIDIA's driver is not installed
	ClosedDriver  Defect = "closed"        // the driver has the closed kernel modules: no DMA-BUF
	NoPeermem     Defect = "peermem"       // nvidia_peermem, which the closed modules require, is not loaded
	NoPersistence Defect = "persistence"   // GPUs are not kept initialized, as Ubuntu's daemon leaves them
	OFEDLater     Defect = "ofed too late" // MLNX_OFED was installed after the driver, so nvidia_peermem was built for another ib_core
)

// NoLicenseServer is the defect of a guest whose network does not reach the license server of its vGPU.
const NoLicenseServer Defect = "license server"

// NoLicense is the defect of a guest without the client configuration token of its vGPU.
const NoLicense Defect = "license"

// Nouveau is the defect of a kernel that contains the module nouveau, which claims NVIDIA's GPUs at boot (Ubuntu:
// linux-modules-extra).
const Nouveau Defect = "nouveau"

// Defects of a guest whose Preset is "pvrdma".
const (
	NoDriver     Defect = "driver"       // the kernel does not contain vmw_pvrdma
	NoMemlock    Defect = "memlock"      // limits.d sets no memory lock limit
	NoPerftest   Defect = "perftest"     // perftest is not installed
	OldPerftest  Defect = "perftest-old" // v4.4-0.11 is installed in /usr/local, which has precedence over the distribution's
	NoProvider   Defect = "provider"     // rdma-core is not installed
	NoDiags      Defect = "diags"        // diagnostic tools are not installed
	NoModules    Defect = "modules"      // the modules are not loaded at boot
	NoReload     Defect = "reload"       // no systemd unit reloads the driver
	PortDown     Defect = "port"         // the driver was reloaded while the network interface was down
	NoAddress    Defect = "address"      // the interface is configured without an address
	WrongAddress Defect = "mistyped"     // the address belongs to another network
	AddressLost  Defect = "unsaved"      // the address is set by another unit and is not in the network configuration
	LowMTU       Defect = "mtu"          // the MTU is 1500
	TwoInSubnet  Defect = "subnet"       // the management interface also has an address of the RDMA network
	MOFED        Defect = "mofed"        // MLNX_OFED is installed
	NoSudo       Defect = "sudo"         // the user may not use sudo
	NoLogin      Defect = "login"        // logins of the user are refused
	Trace        Defect = "call trace"   // the kernel log contains a call trace
)
