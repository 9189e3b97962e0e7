// Package scenario defines the data centres with which a lab can start: the default site without faults, in any size, and the
// differences of each scenario.
package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A Scenario is an initial state of the lab. All scenarios are rows of one table; add a row to add a scenario.
type Scenario struct {
	Name  string
	Text  string // one-line description
	Hosts int    // default number of hosts; 0: 4
	VMs   int    // default number of VMs; 0: two per host
	Apply func(*world.State)
}

// All returns the available scenarios.
func All() []Scenario {
	return append([]Scenario{
		{Name: "healthy", Text: "without problems, not yet configured"},
		{Name: "mixed", Text: "hosts without RDMA device, with iWARP only, without link, with management on the RDMA NIC", Hosts: 6,
			Apply: mixed},
		{Name: "done", Text: "configured for PVRDMA, guests included", Apply: done},
		{Name: "drifted", Text: "was configured for PVRDMA, then changed by someone else", Apply: drifted},
		{Name: "names", Text: "healthy, with VM names that are special to a shell, a terminal, HTML, YAML or a file system", VMs: len(oddNames),
			Apply: names},
		{Name: "no-pause", Text: "healthy, with global pause off on the RDMA NICs", Apply: func(s *world.State) {
			for _, h := range s.Hosts {
				h.PNICs[2].RxPause, h.PNICs[2].TxPause = false, false
			}
		}},
		{Name: "containers", Text: "healthy, with Docker and an image of NVIDIA's NGC in the guests", Apply: func(s *world.State) {
			for _, v := range s.VMs {
				v.Guest.Preset = "docker"
			}
		}},
		{Name: "dhcp", Text: "healthy, with a DHCP server in the RDMA network", Apply: func(s *world.State) { s.DHCP = "192.168.50.0/24" }},
		{Name: "perftest-versions", Text: "healthy, with perftest v4.4-0.11 (5.60) in the first guest, and a newer release's source on a share",
			Hosts: 2, VMs: 2, Apply: func(s *world.State) {
				for _, v := range s.VMs {
					v.Guest.Preset = "gpu-source"
				}
				s.VMs[0].Guest.Defects = append(s.VMs[0].Guest.Defects, world.OldPerftest)
			}},
		{Name: "centos", Text: "healthy, with RHEL and CentOS 8 and 9 in the guests", Apply: centos},
	}, slices.Concat(releases(), rails(), sriov(), placed(), clustered(), gpudirect(), intel(), broadcom(), cardless(), fabrics(),
		broken())...)
}

func scenarioNamed(name string) (Scenario, error) {
	if name == "" {
		name = "healthy"
	}
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
	}
	return Scenario{}, fmt.Errorf("unknown scenario %q", name)
}

// mixed adds a different fault to each of the last hosts, but never to the first two: a measurement requires them.
func mixed(s *world.State) {
	faults := []func(*world.Host){
		func(h *world.Host) { // the RDMA module is not loaded
			h.PNICs[2].RDMA, h.PNICs[3].RDMA = nil, nil
			h.Module("nmlx5_rdma").Loaded = false
		},
		intelIWARP,
		func(h *world.Host) { h.PNICs[2].LinkUp = false },
		func(h *world.Host) {
			h.VSwitch[0].Uplinks = []string{"vmnic2"}
			h.VMKs[0].MAC = h.PNICs[2].MAC
		},
	}
	first := max(2, len(s.Hosts)-len(faults))
	for i, h := range s.Hosts[min(first, len(s.Hosts)):] {
		faults[i](h)
	}
}

// done applies the full PVRDMA setup on vmnic2, according to the guides.
func done(s *world.State) {
	d := &world.DVS{
		Name: "RDMA-DVS", UUID: world.SwitchUUID("RDMA-DVS"), Version: "8.0.3", MTU: 9000,
		Uplinks: []string{DefaultUplink}, Discovery: "lldp listen",
		PortGroups: []*world.PortGroup{{Name: "RDMA-PG", Ports: 8, Binding: "earlyBinding", Active: []string{DefaultUplink}}},
	}
	for _, h := range s.Hosts {
		d.Members = append(d.Members, &world.Member{Host: h.Name, PNICs: []string{"vmnic2"}})
		h.Options["Net.PVRDMAVmknic"] = "vmk0"
		h.Ruleset("pvrdma").Enabled = true
	}
	s.Switches = append(s.Switches, d)
	pg := d.PortGroups[0]
	pg.Ports = max(pg.Ports, len(s.VMs))
	for _, v := range s.VMs {
		v.Guest.OS = "ubuntu-22.04" // one release, so that all guests have the same perftest
		v.Locked, v.Reserved = true, v.MemoryMB
		v.Guest.Preset = "pvrdma"
		v.Adapters = append(v.Adapters, &world.Adapter{Key: 4001, Type: world.PVRDMA, Label: "Network adapter 2", MAC: world.MAC(v.Index, 1),
			DVS: d.Name, PortGroup: pg.Name, Protocol: "rocev2", Connected: true, Start: true, Slot: v.NextSlot()})
	}
}

// drifted is "done" with later changes by other administrators.
func drifted(s *world.State) {
	done(s)
	at := func(i int) *world.Host { return s.Hosts[min(i, len(s.Hosts)-1)] }
	at(1).Ruleset("pvrdma").Enabled = false
	at(2).Options["Net.PVRDMAVmknic"] = ""
	s.Switch("RDMA-DVS").MTU = 1500
	if len(s.VMs) > 0 {
		a := s.VMs[len(s.VMs)-1].RDMA()[0]
		a.Connected, a.Start = false, false
	}
	if len(s.VMs) > 1 {
		v := s.VMs[1]
		v.Locked, v.Reserved = false, 0
	}
}

func centos(s *world.State) {
	systems := []string{"rhel-8", "rhel-9", "centos-8", "rhel-9"}
	for _, v := range s.VMs {
		runs(&v.Guest, systems[v.Index%len(systems)])
	}
}

// runs sets the operating system of a guest and the user of its cloud image.
func runs(g *world.Guest, system string) {
	g.OS, g.User = system, User(system)
}

// oddNames are unusual VM names and names that an attacker would choose. vCenter stores / \ and % escaped.
var oddNames = [...]string{
	`vm "one" $(touch /tmp/owned)`,
	"vm`touch /tmp/owned`; touch /tmp/owned #",
	"-rf --help",
	"<script>alert(1)</script> & 'it''s'",
	"a/b%2f%s..\\c",
	"\u202eright to left \u200b\u2028end",
	"two\nlines\tand a tab",
	"\u009b31mC1\u009b2J \u0085 \u2066isolated", // XML allows these, and many terminals interpret them
	"ünïcödé 日本語 🚀",
	strings.Repeat("a very long name ", 5) + "- end",
	"- {yaml: [true, &a *a]} # no",
}

func names(s *world.State) {
	for i, v := range s.VMs {
		if i < len(oddNames) {
			v.Name = oddNames[i]
			v.Path = v.Path[:strings.LastIndexByte(v.Path, '/')+1] + world.Escaped(v.Name)
		}
	}
}
