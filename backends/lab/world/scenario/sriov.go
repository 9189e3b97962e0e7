package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// sriov returns the scenarios with a partial setup of VFs. Unless the text says otherwise, faults are only on the last host.
func sriov() []Scenario {
	last := func(f func(*world.Host)) func(*world.State) {
		return func(s *world.State) {
			bareHosts(s)
			f(s.Hosts[len(s.Hosts)-1])
		}
	}
	return []Scenario{
		{Name: "bare", Text: "no MFT, no NMST, SRIOV_EN=0, their VIBs on the datastore", Apply: bareHosts},
		{Name: "sriov-half", Text: "the tools are installed, the firmware is set for SR-IOV but the hosts have not rebooted", Apply: half},
		{Name: "sriov-api", Text: "vCenter created VFs on vmnic2, the module parameter is empty", Apply: byVCenter},
		{Name: "sriov-ready", Text: "hosts have 8 VFs on vmnic2 by max_vfs, no VM has one", Apply: ready},
		{Name: "sriov-added", Text: "VMs have VFs, then a third card was inserted before the others: max_vfs now applies to other ports",
			Apply: thirdCard},
		{Name: "sriov-reversed", Text: "bare, the ConnectX-5 has the lower PCI address and the vmnic numbers follow neither", Apply: reversed},
		{Name: "sriov-vectors", Text: "sriov-ready, the last host has interrupt vectors for only one VF", Apply: func(s *world.State) {
			ready(s)
			s.Hosts[len(s.Hosts)-1].Vectors = 12
		}},
		{Name: "sriov-bios", Text: "bare, SR-IOV is off in the BIOS of one host", Apply: last(func(h *world.Host) { h.BIOSSRIOV = false })},
		{Name: "sriov-oem", Text: "bare, one host has an OEM's card with old firmware", Apply: last(oem)},
		{Name: "sriov-single", Text: "bare, the RDMA card of one host has one port and supports Ethernet only", Apply: last(single)},
		{Name: "sriov-lockdown", Text: "bare, one host is in lockdown mode", Apply: last(func(h *world.Host) { h.Lockdown = "lockdownNormal" })},
		{Name: "sriov-acceptance", Text: "bare with Secure Boot, one host takes certified VIBs only", Apply: func(s *world.State) {
			last(func(h *world.Host) { h.Acceptance = "VMwareCertified" })(s)
			for _, h := range s.Hosts {
				h.SecureBoot = true
			}
		}},
		{Name: "sriov-password", Text: "sriov-half, root of the last host has the password " + otherPassword, Apply: func(s *world.State) {
			half(s)
			s.Hosts[len(s.Hosts)-1].Password = otherPassword
		}},
		{Name: "vpi-infiniband",
			Text:  "bare, both ports of the ConnectX-5 are set to InfiniBand, the factory default: two PCI functions without a vmnic",
			Apply: infiniband},
		{Name: "sriov-firmware",
			Text:  "the tools are installed, SRIOV_EN=0, the ConnectX-5 has vulnerable firmware, and newer images are on the datastore",
			Apply: withImages},
		{Name: "sriov-firmware-cold", Text: "sriov-firmware, and the ConnectX-5 of the last host loads new firmware only after its power was cut",
			Apply: func(s *world.State) {
				withImages(s)
				s.Hosts[len(s.Hosts)-1].Card("0000:3b:00.0").Cold = true
			}},
		{Name: "sriov-bluefield",
			Text: "the tools are installed, SRIOV_EN=0, the RDMA card of the first host is a BlueField-2 in NIC mode, that of the last one " +
				"in DPU mode", Apply: bluefield},
		{Name: "sriov-bluefield-bare", Text: "bare, the RDMA card of the last host is a BlueField-2 in DPU mode",
			Apply: last(func(h *world.Host) { blueField(h, false) })},
		{Name: "sriov-image", Text: "bare, the cluster is managed by an image, and a web server has the bundles of the tools", Apply: imaged},
		{Name: "sriov-image-7.0", Text: "sriov-image, on vCenter and ESXi 7.0 Update 3", Apply: imagedOf(esx70)},
		{Name: "sriov-image-9.0", Text: "sriov-image, on vCenter and ESX 9.0", Apply: imagedOf(esx90)},
		{Name: "sriov-image-draft", Text: "sriov-image, and someone else is editing the image", Apply: func(s *world.State) {
			imaged(s)
			s.Services.Image.NewDraft("VSPHERE.LOCAL\\maria")
		}},
	}
}

const otherPassword = "Lab-esxi-2"

// bareHosts removes everything that SR-IOV requires and copies the VIBs of the tools to the datastore.
func bareHosts(s *world.State) {
	s.Lossless = "pfc"
	offerTools(s, mftVersion, nmstVersion)
	for _, h := range s.Hosts {
		var kept []world.VIB
		for _, v := range h.VIBs {
			if v.Name != "mft" && v.Name != "nmst" {
				kept = append(kept, v)
			}
		}
		h.VIBs = kept
		for _, c := range h.Cards {
			c.Set("SRIOV_EN", 0)
			c.Set("NUM_OF_VFS", 8)
		}
	}
}

// offerTools copies the VIBs of the firmware tools to the datastore.
func offerTools(s *world.State, mft, nmst string) {
	for _, v := range []world.VIB{
		{Name: "mft", Version: mft, Vendor: "MEL", Acceptance: "PartnerSupported"},
		{Name: "nmst", Version: nmst, Vendor: "MEL", Acceptance: "PartnerSupported"},
	} {
		s.Depot = append(s.Depot, &world.Package{Path: fmt.Sprintf("/vmfs/volumes/shared-01/rdma/%s-%s.x86_64.vib", v.Name, v.Version),
			VIBs: []world.VIB{v}})
	}
}

// infiniband sets the ConnectX-5 ports of bare hosts to InfiniBand, the default of VPI cards.
func infiniband(s *world.State) {
	bareHosts(s)
	s.Port = "0000:3b:00.0"
	const why = "3 (the RDMA ports speak InfiniBand, and this mode sets no firmware)"
	s.Refused = map[string]string{"pvrdma": why, "gpudirect": why}
	for _, h := range s.Hosts {
		c := h.Card(s.Port)
		c.Set("LINK_TYPE_P1", 1)
		c.Set("LINK_TYPE_P2", 1)
	}
}

// imagedOf is like imaged, but with another release.
func imagedOf(r release) func(s *world.State) {
	return func(s *world.State) {
		imagedWith(s, r.mft, r.nmst)
		all(r)(s)
		s.Services.Image.Base = r.version + "-0." + r.build
	}
}

func imaged(s *world.State) { imagedWith(s, mftVersion, nmstVersion) }

// imagedWith configures an image that manages bare hosts. Names of bundles and components are those of NVIDIA's downloads for
// ESXi; the bundles of both tools have the version of NMST.
func imagedWith(s *world.State, mft, release string) {
	bareHosts(s)
	s.Depot = nil
	bundle := func(name, build string, vib world.VIB) world.Bundle {
		vib.Vendor, vib.Acceptance = "MEL", "PartnerSupported"
		return world.Bundle{Location: ImageDepot + name + "_" + release + "_" + build + ".zip", Name: name, Version: release, Vendor: "NVIDIA",
			VIBs: []world.VIB{vib}}
	}
	s.Services.Image = &world.Image{Base: "8.0.3-0.35.24022510", Components: map[string]string{}, Commits: 1}
	s.Lifecycle.Bundles = []world.Bundle{
		bundle("Mellanox-MFT-Tools", "23580150", world.VIB{Name: "mft", Version: mft}),
		bundle("Mellanox-NATIVE-NMST", "23580151", world.VIB{Name: "nmst", Version: release}),
	}
}

// withImages copies firmware files for the ConnectX-5 to the datastore: for its own board, for another board, and for Dell's
// board.
func withImages(s *world.State) {
	s.Lossless = "pfc"
	const dir = "/vmfs/volumes/shared-01/rdma/fw-ConnectX5-rel-16_35_8008-"
	s.Images = []firmware.Image{
		{Path: dir + "MCX556A-ECU_Ax-UEFI-14.29.15-FlexBoot-3.6.902.bin", PSID: "MT_0000000009", Version: "16.35.8008"},
		{Path: dir + "MCX515A-CCA_Ax_Bx-UEFI-14.29.15-FlexBoot-3.6.902.bin", PSID: "MT_0000000011", Version: "16.35.8008"},
		{Path: dir + "0R5WK9_0XK7Y2_Ax.bin", PSID: "DEL0000000027", Version: "16.35.8008"},
	}
	for _, h := range s.Hosts {
		for _, c := range h.Cards {
			c.Set("SRIOV_EN", 0)
		}
	}
}

// bluefield replaces the ConnectX-5 of the first and the last host with a BlueField-2.
func bluefield(s *world.State) {
	withImages(s)
	blueField(s.Hosts[0], true)
	blueField(s.Hosts[len(s.Hosts)-1], false)
}

func blueField(h *world.Host, nicMode bool) {
	old := h.Card("0000:3b:00.0")
	*old = *firmware.BlueField2(old.PCI, old.MAC, nicMode)
	for _, p := range h.PNICs {
		if old.Has(p.PCI) {
			p.Model, p.Firmware = "MT42822 BlueField-2 integrated ConnectX-6 Dx network controller", old.Version
			d := h.PCIDevice(p.PCI)
			d.Device, d.DeviceName = 0xa2d6, p.Model
		}
	}
}

// ImageDepot is the URL of the bundles on the web server of scenario sriov-image.
const ImageDepot = "http://depot.lab/esx/"

func half(s *world.State) {
	for _, h := range s.Hosts {
		for _, c := range h.Cards {
			c.Setting("SRIOV_EN").Current, c.Setting("NUM_OF_VFS").Current = 0, 8
		}
	}
}

func byVCenter(s *world.State) {
	for _, h := range s.Hosts {
		h.PNIC("vmnic2").SRIOV = &world.SRIOVRequest{Enabled: true, VFs: 8, Booted: true}
	}
}

func ready(s *world.State) {
	for _, h := range s.Hosts {
		h.PowerPolicy = "static"
		for name, value := range map[string]string{"max_vfs": "0,0,8,0", "pfctx": "0x08", "pfcrx": "0x08", "trust_state": "2", "ecn": "1"} {
			p := h.Module(world.Nmlx5).Parameter(name)
			p.Value, p.Active = value, value
		}
		force := h.Module("nmlx5_rdma").Parameter("dscp_force")
		force.Value, force.Active = "26", "26"
	}
}

// thirdCard is like "ready", with a VF in each VM, and with a new card that is the first in the order of the driver's ports.
// The VMs are off, so the change has had no effect yet.
func thirdCard(s *world.State) {
	ready(s)
	for _, v := range s.VMs {
		v.On, v.Locked, v.Reserved = false, true, v.MemoryMB
		v.Guest.Up = false
		v.Adapters[0].Connected = false
		v.Adapters = append(v.Adapters, &world.Adapter{Key: 13031, Type: world.SRIOV, Label: "Network adapter 2", MAC: world.MAC(v.Index, 1),
			PortGroup: "VM Network", Start: true, Slot: v.NextSlot(), GuestMTU: true, PF: "0000:3b:00.0"})
	}
	for _, h := range s.Hosts {
		addCard(h, "0000:18:00.0")
	}
}

// addCard adds a dual-port ConnectX-6 Lx. Its ports are ordered by PCI address and get the next free vmnic numbers. VFs are
// affected only at the next boot.
func addCard(h *world.Host, pci string) {
	model := "MT2894 Family [ConnectX-6 Lx]"
	first := len(h.PNICs)
	for port := range 2 {
		address := pci[:len(pci)-1] + fmt.Sprint(port)
		h.PNICs = append(h.PNICs, &world.PNIC{
			Device: fmt.Sprintf("vmnic%d", first+port), MAC: fmt.Sprintf("0c:42:a1:%02x:%02x:%02x", h.Index>>8&0xff, h.Index&0xff, first+port),
			PCI:    address,
			Driver: world.Nmlx5, DriverVersion: nmlxVersion, Firmware: "26.38.1900", Model: model, Vendor: mellanox,
			SpeedMbps: 25000, MaxSpeedMbps: 25000, MTU: 1500, RxPause: true, TxPause: true,
		})
		h.PCI = append(h.PCI, &world.PCIDevice{Address: address, Parent: "0000:17:00.0", Class: 0x0200, Vendor: 0x15b3, Device: 0x101f,
			SubVendor: 0x15b3, SubDevice: 0x0011, VendorName: mellanox, DeviceName: model, PassthruCapable: true})
	}
	c := firmware.ConnectX6Lx(pci, h.PNICs[first].MAC)
	c.Set("SRIOV_EN", 1)
	c.Set("NUM_OF_VFS", 16)
	h.Cards = append(h.Cards, c)
}

// reversed moves the management card behind the ConnectX-5 on the PCI bus and renames the adapters: vmnic0 and vmnic1 remain
// the management card's. The ConnectX-5's are vmnic3 and vmnic2, which is its second port and has the link.
func reversed(s *world.State) {
	bareHosts(s)
	move := func(address string) string { return strings.Replace(address, "0000:1a:", "0000:d8:", 1) }
	for _, h := range s.Hosts {
		for _, d := range h.PCI {
			if d.Address != move(d.Address) {
				d.Address, d.Parent = move(d.Address), "0000:ae:00.0"
				d.NUMA = 1
			}
		}
		for _, p := range h.PNICs {
			if p.PCI != move(p.PCI) {
				p.PCI, p.NUMA = move(p.PCI), 1
			}
		}
		for _, c := range h.Cards {
			c.PCI = move(c.PCI)
		}
		a, b := h.PNIC("vmnic2"), h.PNIC("vmnic3")
		a.PCI, b.PCI = b.PCI, a.PCI
	}
}

// single replaces the ConnectX-5 with a card that has one port and no LINK_TYPE parameter.
func single(h *world.Host) {
	const gone = "0000:3b:00.1"
	h.PNICs = slices.DeleteFunc(h.PNICs, func(p *world.PNIC) bool { return p.PCI == gone })
	h.PCI = slices.DeleteFunc(h.PCI, func(d *world.PCIDevice) bool { return d.Address == gone })
	c := h.Card("0000:3b:00.0")
	c.Ports, c.Part, c.PSID = 1, "MCX515A-CCA_Ax_Bx", "MT_0000000011"
	c.Description = "ConnectX-5 EN network interface card; 100GbE single-port QSFP28; PCIe3.0 x16; ROHS R6"
	c.Settings = slices.DeleteFunc(c.Settings, func(s *firmware.Setting) bool {
		return strings.HasPrefix(s.Name, "LINK_TYPE") || strings.HasSuffix(s.Name, "_P2")
	})
	c.Set("NUM_OF_PF", 1)
}

func oem(h *world.Host) {
	c := h.Card("0000:3b:00.0")
	c.PSID, c.Part, c.Version, c.PXE, c.UEFI = "DEL0000000027", "0R5WK9_0XK7Y2_Ax", "16.26.6000", "3.5.0803", "14.19.0017"
	for _, p := range h.PNICs {
		if c.Has(p.PCI) {
			p.Firmware = c.Version
		}
	}
}
