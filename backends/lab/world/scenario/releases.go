package scenario

import "github.com/rdma-setup/rdma-setup/backends/lab/world"

// A release is an ESXi as the lab runs it, and the newest virtual hardware of the VMs that were made on it.
type release struct {
	version, build string
	driver         string // nmlx5 of NVIDIA's own package for it
	hardware       int
}

// The builds are those of Broadcom KB 316595 ("Build numbers and versions of VMware ESXi/ESX"): 6.7 Update 3, 7.0 Update 3,
// 9.0.0.0. The drivers are those of NVIDIA's release notes for native ESXi drivers; that of 9.0 is unverified.
var (
	esx67 = release{"6.7.0", "14320388", "4.17.71.1-1OEM.670.0.0.8169922", 14}
	esx70 = release{"7.0.3", "20328353", "4.21.71.101-1OEM.702.0.0.17630552", 19}
	esx90 = release{"9.0.0", "24755229", "4.24.0.7-1OEM.900.0.0.24755229", 22}
)

// releases are data centres with releases other than 8.0 U3.
func releases() []Scenario {
	return []Scenario{
		{Name: "esx-6.7", Text: "healthy, on vCenter and ESXi 6.7 Update 3", Apply: all(esx67)},
		{Name: "esx-7.0", Text: "healthy, on vCenter and ESXi 7.0 Update 3", Apply: all(esx70)},
		{Name: "esx-9.0", Text: "healthy, on vCenter and ESX 9.0", Apply: all(esx90)},
		{Name: "mixed-versions", Text: "a vCenter 8.0 U3 with hosts of 6.7, 7.0 and 8.0", Apply: func(s *world.State) {
			if n := len(s.Hosts); n > 1 {
				install(s, s.Hosts[n-1], esx67)
			}
			if n := len(s.Hosts); n > 2 {
				install(s, s.Hosts[n-2], esx70)
			}
		}},
	}
}

// all installs one release everywhere, including vCenter.
func all(r release) func(*world.State) {
	return func(s *world.State) {
		s.VCenter = r.version
		for _, h := range s.Hosts {
			install(s, h, r)
		}
	}
}

// install installs a release on a host, and sets the virtual hardware of its VMs that new VMs have on that release.
func install(s *world.State, h *world.Host, r release) {
	h.Version, h.Build = r.version, r.build
	for _, p := range h.PNICs {
		p.DriverVersion = r.driver
	}
	for _, m := range h.Modules {
		if m.Version == nmlxVersion {
			m.Version = r.driver
		} else if m.Version == "8.0.3" {
			m.Version = r.version
		}
	}
	for i, v := range h.VIBs {
		switch v.Name {
		case "nmlx5-core", "nmlx5-rdma":
			h.VIBs[i].Version = r.driver
		case "esx-base":
			h.VIBs[i].Version = r.version + "-0.0." + r.build
		}
	}
	for _, v := range s.VMs {
		if v.Host == h.Name {
			v.Hardware = r.hardware
		}
	}
}
