package scenario

import "github.com/rdma-setup/rdma-setup/backends/lab/world"

// A release is an ESXi release, with the latest virtual hardware version of VMs created on it.
type release struct {
	version, build string
	base           string // version of the package esx-base
	driver         string // version of nmlx5
	hardware       int
	mft, nmst      string // versions of NVIDIA's firmware tools
}

// Builds are from Broadcom KB 316595 ("Build numbers and versions of VMware ESXi/ESX"): 6.7 Update 3, 7.0 Update 3, 9.0.0.0.
// Driver versions are from NVIDIA's release notes for native ESXi drivers; that of 9.0 is the inbox driver, as "esxcli software
// vib list" shows it on build 24755229. Versions of the tools are from public installations. It is unverified that NVIDIA has
// no separate tools for 9.0.
var (
	esx67 = release{"6.7.0", "14320388", "6.7.0-0.0.14320388", "4.17.71.1-1OEM.670.0.0.8169922", 14, "4.14.0.105-0",
		"4.14.0.105-1OEM.650.0.0.4598673"}
	esx70 = release{"7.0.3", "20328353", "7.0.3-0.0.20328353", "4.21.71.101-1OEM.702.0.0.17630552", 19, "4.25.0.703-0",
		"4.25.0.703-1OEM.703.0.0.18644231"}
	esx90 = release{"9.0.0", "24755229", "9.0.0-0.24755229", "4.24.0.7-16vmw.900.0.24755229", 22, mftVersion, nmstVersion}
)

// releases returns data centres with releases other than 8.0 U3.
func releases() []Scenario {
	return []Scenario{
		{Name: "esx-6.7", Text: "healthy, on vCenter and ESXi 6.7 Update 3", Apply: all(esx67)},
		{Name: "esx-7.0", Text: "healthy, on vCenter and ESXi 7.0 Update 3", Apply: all(esx70)},
		{Name: "esx-9.0", Text: "healthy, on vCenter and ESX 9.0", Apply: all(esx90)},
		{Name: "mixed-versions", Text: "a vCenter 8.0 U3 with hosts of 6.7, 7.0 and 8.0", Apply: mixReleases},
		{Name: "sriov-mixed",
			Text: "bare, on a vCenter 8.0 U3 with hosts of 6.7, 7.0 and 8.0; the VIBs of the tools for each are on the datastore",
			Apply: func(s *world.State) {
				bareHosts(s)
				mixReleases(s)
				offerTools(s, esx67.mft, esx67.nmst)
				offerTools(s, esx70.mft, esx70.nmst)
			}},
	}
}

// mixReleases installs 6.7 on the last host and 7.0 on the last but one.
func mixReleases(s *world.State) {
	if n := len(s.Hosts); n > 1 {
		install(s, s.Hosts[n-1], esx67)
	}
	if n := len(s.Hosts); n > 2 {
		install(s, s.Hosts[n-2], esx70)
	}
}

// all returns a function that installs one release on all hosts and in vCenter.
func all(r release) func(*world.State) {
	return func(s *world.State) {
		s.VCenter = r.version
		for _, h := range s.Hosts {
			install(s, h, r)
		}
	}
}

// install installs a release on a host and sets the virtual hardware of its VMs to the default of that release.
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
			h.VIBs[i].Version = r.base
		case "mft":
			h.VIBs[i].Version = r.mft
		case "nmst":
			h.VIBs[i].Version = r.nmst
		}
	}
	for _, v := range s.VMs {
		if v.Host == h.Name {
			v.Hardware = r.hardware
		}
	}
}
