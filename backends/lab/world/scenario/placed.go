package scenario

import "github.com/rdma-setup/rdma-setup/backends/lab/world"

// placed returns scenarios with objects at unusual places in the inventory.
func placed() []Scenario {
	return []Scenario{
		{Name: "vapp", Text: "healthy, with the second VM in a vApp", Apply: func(s *world.State) {
			if len(s.VMs) > 1 {
				v := s.VMs[1]
				v.VApp, v.Path = "app-01", "/"+s.Datacenter+"/vm/app-01/"+v.Name
			}
		}},
		{Name: "stale", Text: "done, then the ruleset pvrdma of the first host was closed on the host itself: vCenter still shows it open", Apply: func(s *world.State) {
			done(s)
			h := s.Hosts[0]
			for _, r := range h.Firewall {
				shown := *r
				if h.Copied == nil {
					h.Copied = &world.Copied{}
				}
				h.Copied.Firewall = append(h.Copied.Firewall, &shown)
			}
			h.Ruleset("pvrdma").Enabled = false
		}},
		{Name: "nsx", Text: "healthy, with the RDMA NIC of the last host in an N-VDS of NSX, and EVC on", Apply: func(s *world.State) {
			s.Services.EVC = "intel-cascadelake"
			h := s.Hosts[len(s.Hosts)-1]
			h.Opaque = append(h.Opaque, &world.OpaqueSwitch{ID: world.UUID("opaque", h.Index), Name: "nvds-overlay", Uplinks: []string{"vmnic2"}})
		}},
		{Name: "shared-card", Text: "bare, and vMotion of the first host only uses the second port of the RDMA card", Apply: func(s *world.State) {
			bareHosts(s)
			h := s.Hosts[0]
			p := h.PNIC("vmnic3")
			p.LinkUp, p.SpeedMbps = true, p.MaxSpeedMbps
			h.VSwitch = append(h.VSwitch, &world.VSwitch{Name: "vSwitch1", MTU: 9000, Uplinks: []string{"vmnic3"}, PortGroups: []string{"vMotion"}})
			h.VMKs = append(h.VMKs, &world.VMK{Device: "vmk1", MAC: "00:50:56:60:00:03", IP: "10.12.0.11", Prefix: 24, MTU: 9000,
				VSwitch: "vSwitch1", PortGroup: "vMotion", NetStack: "defaultTcpipStack", Roles: []string{"vmotion"}})
		}},
	}
}
