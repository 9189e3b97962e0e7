package vcenter

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// policyChecks examine what the cluster may do automatically with hosts and VMs.
func policyChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "CL-DRS-011", Scope: checks.Cluster, Link: checks.InHost, Modes: row.Direct, Quick: true, Fix: checks.Manual,
			Source:   "vSphere Networking 6.5, p. 153",
			Criteria: "DRS off, manual, partial, or off for the VM / fully automated / -",
			Remedy:   "Add a VM override or an affinity rule: VMs with VFs or passed-through devices cannot migrate.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				c := clusterOf(f, v)
				if c == nil {
					return row.Waiting(t, "the settings of cluster %s were not read", cmp.Or(v.Cluster, "none"))
				}
				mode := c.DRSMode
				if own := c.DRSOverride[v.Name]; own != "" {
					mode = own
				}
				if !c.DRS {
					mode = "off"
				}
				a := row.WarnIf(mode == "fullyAutomated", t, "DRS of %s for this VM: %s", c.Name, cmp.Or(mode, "none"))
				a.Quiet = true // no step sets an override, and DRS does not move VMs with VFs, so it is reported without lowering the status
				return a
			}),
		},
		{
			ID: "CL-HA-012", Scope: checks.Cluster, Link: checks.InHost, Modes: row.Direct, Quick: true, Fix: checks.NoFix,
			Source:   "vSphere Networking 6.5, p. 153; Exposing Hardware Accelerators using Assignable Hardware (VMware)",
			Criteria: "HA off / HA on, which restarts no VM with fixed passthrough or a VF / -",
			Remedy:   "Document how to restart the VM manually, or use Dynamic DirectPath, which HA can restart.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				c := clusterOf(f, v)
				if c == nil {
					return row.Waiting(t, "the settings of cluster %s were not read", cmp.Or(v.Cluster, "none"))
				}
				fixed := f.Adapter(v, "sriov") != nil ||
					slices.ContainsFunc(v.Passthrough, func(p string) bool { return !strings.HasPrefix(p, "dynamic") })
				return row.WarnIf(c.HA && fixed, t, "HA of %s is %s, fixed devices: %t", c.Name, row.OnOff(c.HA), fixed)
			}),
		},
		{
			ID: "CL-RULE-013", Scope: checks.Cluster, Link: checks.InVM, Modes: row.PVRDMA, Quick: true, Fix: checks.Manual,
			Source:   row.KubernetesGuide,
			Criteria: "the VMs are on different hosts / on one host / -",
			Remedy:   "Add an anti-affinity rule or move a VM: a pair on the same host measures its memory, not the network.",
			Run: func(f *checks.Facts) []checks.Answer {
				found, _ := f.VMs()
				on := map[string]bool{}
				for _, v := range found {
					on[v.Host] = true
				}
				return []checks.Answer{row.WarnIf(len(found) > 1 && len(on) < 2, f.ClusterRef(), "VMs: %d, hosts under them: %d", len(found), len(on))}
			},
		},
		{
			ID: "CL-EVC-014", Scope: checks.Cluster, Link: checks.InHost, Quick: true, Fix: checks.NoFix, Unverified: true, Source: "unverified",
			Criteria: "EVC off / on / -",
			Remedy:   "Be aware that EVC can hide CPU features such as AVX from guests; disable EVC if applications need them.",
			Run: func(f *checks.Facts) []checks.Answer {
				return eachCluster(f, func(c *backends.Cluster, t backends.Ref) checks.Answer {
					if c.EVC == nil {
						return row.Unknown(t, "the EVC mode of %s was not read", c.Name)
					}
					return row.WarnIf(*c.EVC != "", t, "EVC mode %s", cmp.Or(*c.EVC, "none"))
				})
			},
		},
		{
			ID: "CL-VSAN-015", Scope: checks.Cluster, Link: checks.InHost, Modes: row.Direct, Quick: true, Fix: checks.Manual, Source: "ours",
			Criteria: "no vSAN, or nothing resyncs / a resync runs / -",
			Remedy:   "Wait for the resync, and reboot one host at a time.",
			Run:      row.EachHost(vsan),
		},
	}
}

func clusterOf(f *checks.Facts, v *backends.VM) *backends.Cluster {
	name := v.Cluster
	if h := f.Inventory.Host(v.Host); name == "" && h != nil {
		name = h.Cluster
	}
	for i := range f.Inventory.Clusters {
		if c := &f.Inventory.Clusters[i]; c.Name == name {
			return c
		}
	}
	return nil
}

// eachCluster evaluates the clusters of selected hosts.
func eachCluster(f *checks.Facts, ask func(c *backends.Cluster, t backends.Ref) checks.Answer) []checks.Answer {
	var out []checks.Answer
	for i := range f.Inventory.Clusters {
		c := &f.Inventory.Clusters[i]
		if slices.ContainsFunc(f.Hosts(), func(h *backends.Host) bool { return h.Cluster == c.Name }) {
			out = row.Said(out, ask(c, backends.Ref{Type: backends.TypeCluster, Name: c.Name}))
		}
	}
	if len(out) == 0 {
		return []checks.Answer{row.Waiting(f.ClusterRef(), "the settings of the cluster were not read")}
	}
	return out
}

func vsan(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
	if !slices.ContainsFunc(h.VMKs, func(v backends.VMKernelNIC) bool { return slices.Contains(v.Roles, "vsan") }) {
		return row.Pass(t, "no vmknic carries vSAN")
	}
	var r backends.Fact[int64]
	if h.System != nil {
		r = h.System.Resync
	}
	if r.Known() {
		return row.WarnIf(r.Value > 0, t, "vSAN has %d bytes left to resync", r.Value)
	}
	return row.Unread(t, "the host carries vSAN; its resync status", r)
}
