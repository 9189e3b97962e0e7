// Package vcenter contains the rows about vCenter, about its clusters and about what the hosts of a fabric have in common.
package vcenter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	goversion "github.com/hashicorp/go-version"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// Checks returns the rows of vCenter, of its clusters and of properties that hosts have in common.
func Checks() []checks.Check { return slices.Concat(vCenterChecks(), clusterChecks(), policyChecks()) }

// vCenterChecks examine vCenter itself.
func vCenterChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "VC-CONN-001", Scope: checks.VCenter, Link: checks.InHost, Quick: true, Preflight: true, Fix: checks.Manual, Source: "vSphere API",
			Criteria: "responds / thumbprint changed / unreachable",
			Remedy:   "Confirm the new certificate thumbprint or fix the address.",
			Run: func(f *checks.Facts) []checks.Answer {
				vc, known := f.Inventory.VCenter, f.Answers.VCenter.Thumbprint
				switch {
				case vc.Version == "":
					return []checks.Answer{row.Fail(f.VCenterRef(), "vCenter did not report its product and version")}
				case len(known) == len(vc.Thumbprint) && !strings.EqualFold(known, vc.Thumbprint):
					return []checks.Answer{row.Warn(f.VCenterRef(), "the certificate is %s, but the answers have %s", vc.Thumbprint, known)}
				}
				return []checks.Answer{row.Pass(f.VCenterRef(), "vCenter %s build %s answers", vc.Version, vc.Build)}
			},
		},
		{
			ID: "VC-VERSION-002", Scope: checks.VCenter, Link: checks.InHost, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   row.KubernetesGuide + "; vSphere API",
			Criteria: ">= 7.0 / 6.5 to 6.7 (no rdmaDevice property) / < 6.5",
			Remedy:   "Upgrade vCenter.",
			Run: func(f *checks.Facts) []checks.Answer {
				return []checks.Answer{vcenterVersion(f)}
			},
		},
		{
			ID: "VC-PRIV-003", Scope: checks.VCenter, Link: checks.InHost, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   row.GPUDirectGuide + ", " + row.KubernetesGuide,
			Criteria: "all / only those for reading / missing for the chosen actions",
			Remedy:   "Grant the listed privileges to the account.",
			Run:      privileges,
		},
		{
			ID: "VC-TIME-004", Scope: checks.VCenter, Link: checks.InHost, Quick: true, Fix: checks.Manual,
			Source:   row.KubernetesGuide + "; thresholds are ours",
			Criteria: "the clocks of vCenter and the guests differ from this machine's by <= 5 s / <= 60 s / more",
			Remedy:   "Configure NTP.",
			Run: func(f *checks.Facts) []checks.Answer {
				vc := f.Inventory.VCenter
				if vc.Clock.IsZero() || vc.ClockAsked.IsZero() {
					return []checks.Answer{row.Unknown(f.VCenterRef(), "vCenter did not report its time")}
				}
				off := vc.Clock.Sub(vc.ClockAsked).Abs().Round(time.Second)
				list := []checks.Answer{row.Grade(off.Seconds(), 5, 60, f.VCenterRef(), "vCenter's clock differs from this machine's by %s", off)}
				for _, g := range f.Inventory.Guests {
					if g.ClockSkew != nil {
						list = append(list, guestClock(g))
					}
				}
				return list
			},
		},
		{
			ID: "VC-DC-005", Scope: checks.VCenter, Link: checks.InHost, Quick: true, Preflight: true, Fix: checks.Manual,
			Source:   "vSphere Networking, PVRDMA Support",
			Criteria: "all selected hosts in one datacenter / - / no",
			Remedy:   "Pick hosts from the same datacenter.",
			Run: func(f *checks.Facts) []checks.Answer {
				var names []string
				for _, h := range f.Hosts() {
					if !slices.Contains(names, h.Datacenter) {
						names = append(names, h.Datacenter)
					}
				}
				return []checks.Answer{row.PassIf(len(names) == 1, f.VCenterRef(), "the hosts are in %s", cmp.Or(strings.Join(names, ", "), "none"))}
			},
		},
		{
			ID: "VC-TASK-006", Scope: checks.VCenter, Link: checks.InHost, Fix: checks.Manual, Preflight: true, Source: "ours",
			Criteria: "no task runs on the hosts / - / some",
			Remedy:   "Wait for the running task.",
			Run: row.EachHost(func(_ *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				return row.PassIf(len(h.RecentTasks) == 0, t, "running tasks: %s", cmp.Or(strings.Join(h.RecentTasks, ", "), "none"))
			}),
		},
		{
			ID: "VC-LICENSE-007", Scope: checks.VCenter, Link: checks.InHost, Modes: row.OnDVS, Quick: true, Fix: checks.Manual, Unverified: true,
			Source:   "unverified",
			Criteria: "hosts are members of a DVS, so the licence has it / - / the existing DVS has no members; no DVS yet: unknown",
			Remedy:   "Assign a licence that includes distributed switches.",
			Run: func(f *checks.Facts) []checks.Answer {
				sw := f.Inventory.Switch(f.Answers.Switch.Name)
				if sw == nil {
					return []checks.Answer{row.Waiting(f.VCenterRef(), "the licence cannot be read, and no DVS proves it yet")}
				}
				return []checks.Answer{row.PassIf(len(sw.Members) > 0, f.VCenterRef(), "%s has %d member hosts", sw.Name, len(sw.Members))}
			},
		},
		{
			ID: "VC-VLCM-008", Scope: checks.VCenter, Link: checks.InHost, Modes: row.Direct, Quick: true, Fix: checks.Manual,
			Source:   "Broadcom KB 440252, KB 379388",
			Criteria: "hosts are managed with baselines / with a vLCM image or by another solution; with baselines on vCenter 9 / -",
			Remedy: "Convert a cluster with baselines to an image; let mode sriov add components to an image (URLs under sriov.components), or " +
				"add them manually.",
			Run: row.EachHost(func(f *checks.Facts, t backends.Ref, h *backends.Host) checks.Answer {
				if len(h.ManagedBy) == 0 && f.Inventory.UnsupportedBaselines(h) {
					return row.Warn(t, "%s; move it to an image", backends.DeadBaselines)
				}
				return row.WarnIf(len(h.ManagedBy) > 0, t, "desired state owned by: %s", cmp.Or(strings.Join(h.ManagedBy, ", "), "none"))
			}),
		},
	}
}

func vcenterVersion(f *checks.Facts) checks.Answer {
	v, err := goversion.NewVersion(f.Inventory.VCenter.Version)
	if err != nil {
		return row.Unknown(f.VCenterRef(), "vCenter reports the version %q", f.Inventory.VCenter.Version)
	}
	major, minor := v.Segments()[0], v.Segments()[1]
	switch {
	case major >= 7:
		return row.Pass(f.VCenterRef(), "vCenter %s", v)
	case major == 6 && minor >= 5:
		return row.Warn(f.VCenterRef(), "vCenter %s does not list RDMA devices; they are read from the hosts with esxcli", v)
	}
	return row.Fail(f.VCenterRef(), "vCenter %s", v)
}

func privileges(f *checks.Facts) []checks.Answer {
	if f.LacksErr != nil {
		return []checks.Answer{row.Unknown(f.VCenterRef(), "the privileges could not be read: %v", f.LacksErr)}
	}
	if len(f.Lacks) == 0 {
		return []checks.Answer{row.Pass(f.VCenterRef(), "%s has all privileges that the mode needs", f.Inventory.VCenter.User)}
	}
	var names []string
	on := map[string][]string{}
	for _, l := range f.Lacks {
		if on[l.Privilege] == nil {
			names = append(names, l.Privilege)
		}
		on[l.Privilege] = append(on[l.Privilege], l.Entity)
	}
	for i, p := range names {
		const most = 3
		entities := on[p]
		more := ""
		if len(entities) > most {
			more = fmt.Sprintf(" and %d more", len(entities)-most)
		}
		names[i] = fmt.Sprintf("%s on %s%s", p, strings.Join(entities[:min(most, len(entities))], ", "), more)
	}
	if !f.Before {
		return []checks.Answer{row.Warn(f.VCenterRef(), "%s can read but not change; missing: %s", f.Inventory.VCenter.User,
			strings.Join(names, ", "))}
	}
	return []checks.Answer{row.Fail(f.VCenterRef(), "%s lacks %s", f.Inventory.VCenter.User, strings.Join(names, ", "))}
}

// guestClock judges the clock of a guest (RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA,
// NVIDIA/Mellanox, 2019: NTP on all hosts and VMs).
func guestClock(g backends.Guest) checks.Answer {
	off := (time.Duration(*g.ClockSkew) * time.Second).Abs()
	return row.Grade(off.Seconds(), 5, 60, backends.GuestRef(g.VM), "the guest's clock differs from this machine's by %s", off)
}
