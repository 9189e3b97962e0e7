package checks

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// clusterChecks compare the hosts with each other.
func clusterChecks() []Check {
	return []Check{
		{
			ID: "CL-HOSTS-001", Scope: Cluster, Quick: true, Preflight: true, Fix: Manual, Source: "seed 000",
			Criteria: ">= 2 connected hosts that are not in maintenance / 1 / 0",
			Remedy:   "Select at least two hosts for a pair test.",
			Run: func(f *Facts) []Answer {
				n := 0
				for _, h := range f.hosts() {
					if h.State == "connected" && !h.InMaintenance {
						n++
					}
				}
				t := backends.Ref{Type: backends.TypeCluster, Name: orNone(f.Answers.Hosts.Cluster)}
				switch n {
				case 0:
					return []Answer{fail(t, "no selected host is connected and out of maintenance")}
				case 1:
					return []Answer{warn(t, "one usable host: nothing can be measured over the fabric")}
				}
				return []Answer{pass(t, "%d usable hosts", n)}
			},
		},
		compare("CL-VER-002", "same ESXi version and build", "Align ESXi builds.", "seed 003", Manual, "ESXi", func(_ *Facts, h *backends.Host) string {
			return h.Version + " build " + h.Build
		}),
		compare("CL-CPU-003", "same CPU model, sockets, cores", "Expect unequal results.", "seed 003", NoFix, "CPU", func(_ *Facts, h *backends.Host) string {
			return fmt.Sprintf("%s, %d sockets, %d cores", h.CPUModel, h.Sockets, h.Cores)
		}),
		compareNIC("CL-NIC-004", "same RDMA NIC model", "Use identical adapters.", "seed 003", Manual, "NIC", func(n *backends.NIC) string {
			return n.Vendor + ":" + n.PCIDeviceID
		}),
		compareNIC("CL-FW-005", "same NIC firmware", "Flash the same firmware.", "seed 002, seed 003", Manual, "firmware", func(n *backends.NIC) string { return n.Firmware }),
		compareNIC("CL-DRV-006", "same NIC driver and version", "Install the same driver component.", "seed 003", Reboot, "driver", func(n *backends.NIC) string {
			return strings.TrimSpace(n.Driver + " " + n.DriverVersion)
		}),
		compareNIC("CL-SLOT-007", "same PCI address and NUMA node of the NIC", "Move cards to the same slots.", "seed 003, Host Configuration", Manual, "slot", func(n *backends.NIC) string {
			return fmt.Sprintf("%s, NUMA node %d", n.PCI, n.NUMA)
		}),
		compare("CL-POWER-010", "same power policy", "Set High Performance everywhere.", "seed 002", Automatic, "power policy", func(_ *Facts, h *backends.Host) string { return h.PowerPolicy }),
		{
			ID: "CL-RULE-013", Scope: Cluster, Modes: []answers.Mode{answers.PVRDMA}, Quick: true, Fix: Automatic, Source: "seed 003",
			Criteria: "the VMs live on different hosts / on one host / -",
			Remedy:   "Add an anti-affinity rule or move a VM: a pair on one host measures memory.",
			Run: func(f *Facts) []Answer {
				found, _ := f.vms()
				on := map[string]bool{}
				for _, v := range found {
					on[v.Host] = true
				}
				t := backends.Ref{Type: backends.TypeCluster, Name: orNone(f.Answers.Hosts.Cluster)}
				return []Answer{warnIf(len(found) > 1 && len(on) < 2, t, "%d VMs on %d hosts", len(found), len(on))}
			},
		},
	}
}

// compare is a row that warns where a host differs from the most.
func compare(id, criteria, remedy, source string, fix Fix, what string, of func(*Facts, *backends.Host) string) Check {
	return Check{
		ID: id, Scope: Cluster, Quick: true, Fix: fix, Source: source, Criteria: criteria + " / differs / -", Remedy: remedy,
		Run: func(f *Facts) []Answer {
			return same(f, what, func(h *backends.Host) string { return of(f, h) })
		},
	}
}

// compareNIC is the same for the RDMA pNIC; hosts without one have their own row.
func compareNIC(id, criteria, remedy, source string, fix Fix, what string, of func(*backends.NIC) string) Check {
	return compare(id, criteria, remedy, source, fix, what, func(f *Facts, h *backends.Host) string {
		if n := f.nic(h); n != nil {
			return of(n)
		}
		return "none"
	})
}
