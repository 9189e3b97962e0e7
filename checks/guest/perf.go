package guest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// guestTestChecks examine what tests and applications need in the guests.
func guestTestChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "GST-MEMLOCK-020", Scope: checks.Guest, Link: checks.InGuest, Fixes: []backends.Kind{backends.KindMemlock},
			Source:   "openucx issues 8229, 7930",
			Criteria: "unlimited / >= 512 MB / less", Remedy: "Set memlock to unlimited in limits.d.",
			Run: eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				switch {
				case g.MemlockKB == -1:
					return row.Pass(t, "memlock of %s is unlimited", g.User)
				case g.MemlockKB == 0:
					return row.Unknown(t, "memlock could not be read")
				case g.MemlockKB >= 512<<10:
					return row.Warn(t, "memlock of %s is %d KB", g.User, g.MemlockKB)
				}
				return row.Fail(t, "memlock of %s is %d KB", g.User, g.MemlockKB)
			}),
		},
		{
			ID: "GST-HUGE-021", Scope: checks.Guest, Link: checks.InGuest, Fix: checks.Manual, Source: "ours",
			Criteria: "always passes, for information: the answers plan no huge pages / - / -",
			Remedy:   "Reserve huge pages if the application asks for them.",
			Run: eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				if g.HugePages == nil {
					return row.Waiting(t, "huge pages were not read")
				}
				return row.Pass(t, "HugePages_Total is %d", *g.HugePages)
			}),
		},
		{
			ID: "GST-FIREWALL-022", Scope: checks.Guest, Link: checks.InGuest, Fix: checks.Manual, Unverified: true, Source: "unverified",
			Criteria: "no firewall, or TCP 18515 and UDP 4791 allowed / - / blocked", Remedy: "Open the ports, or stop the firewall for the test.",
			Run: eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				if g.Firewall == nil {
					return row.Waiting(t, "the guest's firewall could not be read: sudo for %s: %s", g.User, cmp.Or(g.Sudo, "none"))
				}
				open := g.Firewall.Open
				ok := !g.Firewall.Active || slices.Contains(open, "all") || slices.Contains(open, "18515/tcp") && slices.Contains(open, "4791/udp")
				return row.PassIf(ok, t, "%s, active %t, allows: %s", cmp.Or(g.Firewall.Kind, "none"), g.Firewall.Active,
					cmp.Or(strings.Join(open, ", "), "none"))
			}),
		},
		{
			ID: "GST-PERFTEST-023", Scope: checks.Guest, Link: checks.InGuest, Fixes: []backends.Kind{backends.KindPackages},
			Source: row.BitfusionGuide,
			Criteria: "perftest that measures with that of the other guests / 5.70 and newer refuse older ones: the guests that are fewer, else " +
				"older, are named / missing",
			Remedy: "Name a source of perftest for all guests in measure.perftest, or install one release in all.",
			Run: eachGuest(func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				found, _ := f.VMs()
				var like, unlike []*backends.Guest
				for _, v := range found {
					switch o := f.Guest(v.Name); {
					case o == nil || o.Tests() == "":
					case sizing.PerftestRefuses(g.Tests(), o.Tests()):
						unlike = append(unlike, o)
					default:
						like = append(like, o)
					}
				}
				// One release is the problem, not each guest that it cannot measure with: that of fewer guests, else the older one.
				if n := len(unlike); n > len(like) || n > 0 && n == len(like) && sizing.PerftestOlder(g.Tests(), unlike[0].Tests()) {
					return row.Warn(t, "perftest %s, which cannot measure with %s on %s", g.Tests(), unlike[0].Tests(), others(unlike))
				}
				return row.PassIf(g.Tests() != "", t, "perftest %s", cmp.Or(g.Tests(), "does not exist"))
			}),
		},
		{
			ID: "GST-OFED-024", Scope: checks.Guest, Link: checks.InGuest, Modes: row.SRIOV, Fix: checks.Manual,
			Fixes:    []backends.Kind{backends.KindOFED},
			Source:   row.SRIOVStudy,
			Criteria: "the same MLNX_OFED in all guests, or none / differs / -", Remedy: "Install the same MLNX_OFED release in all guests.",
			Run: sameGuests("MLNX_OFED", func(g *backends.Guest) string { return cmp.Or(g.MOFED, "none") }),
		},
		{
			ID: "GST-TCLASS-025", Scope: checks.Guest, Link: checks.InGuest, Modes: row.Direct, Except: row.PVRDMA,
			Fixes:  []backends.Kind{backends.KindTrafficClass, backends.KindEnvironment},
			Source: "rules of DSCP: traffic class = DSCP x 4, + 2 with ECN",
			Criteria: "the traffic class of the DSCP, and with guest.environment also set for applications / unset, or not set for applications / " +
				"another; without qos.lossless pfc: " +
				"passes, for information", Remedy: "Set the traffic class of the device.",
			Run: eachVerbs("GST-TCLASS-025", func(f *checks.Facts, t backends.Ref, d *backends.VerbsDevice) checks.Answer {
				q := f.Answers.QoS
				want := sizing.TrafficClass(q.DSCP, q.ECN)
				switch {
				case d.Class == nil:
					return row.Waiting(t, "the traffic class of %s is not visible: without MLNX_OFED this needs the module rdma_cm", d.Name)
				case q.Lossless == answers.LosslessPFC && *d.Class == want && d.ClassPartly:
					return row.Warn(t, "%s: traffic class %d is set, but not persistent", d.Name, want)
				case q.Lossless == answers.LosslessPFC && *d.Class == want && f.Answers.Guest.Environment && !setsClass(f.Guest(t.Name), want):
					return row.Warn(t, "%s: traffic class %d, but the environment of applications (UCX, NCCL) does not set it, or lacks the index of "+
						"the address", d.Name, want)
				case q.Lossless != answers.LosslessPFC || *d.Class == want:
					return row.Pass(t, "%s: traffic class %d, qos.lossless is %s", d.Name, *d.Class, cmp.Or(string(q.Lossless), "none"))
				case *d.Class == 0:
					return row.Warn(t, "%s: no traffic class, wanted %d", d.Name, want)
				}
				return row.Fail(t, "%s: traffic class %d, wanted %d", d.Name, *d.Class, want)
			}),
		},
		portQoSCheck(),
		{
			ID: "GST-CNT-026", Scope: checks.Guest, Link: checks.InGuest, Fix: checks.Manual, Source: "nccl issue 394",
			Criteria: "no retries during tests / congestion notifications only / retries grow",
			Remedy:   "Check PFC and ECN on every hop between the guests.",
			Run: eachGuest(func(f *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
				var retries, cnps int64
				read := false
				for _, p := range f.Pairs {
					if (p.From == g.VM || p.To == g.VM) && p.Retries != nil {
						read, retries = true, retries+*p.Retries
						if p.CNPs != nil {
							cnps += *p.CNPs
						}
					}
				}
				if !read {
					return row.Waiting(t, "no test ran in this guest, or its counters were not read (check --pairs does both)")
				}
				return lossless(t, retries, cnps)
			}),
		},
	}
}

// setsClass reports whether the environment of a guest's applications sets the traffic class.
func setsClass(g *backends.Guest, class int) bool { return g.AppClass != nil && *g.AppClass == class }

func lossless(t backends.Ref, retries, cnps int64) checks.Answer {
	if retries > 0 {
		return row.Fail(t, "%d retries or lost packets, %d congestion notifications during the tests", retries, cnps)
	}
	return row.WarnIf(cnps > 0, t, "no retries, %d congestion notifications during the tests", cnps)
}

// others names one guest and counts the rest.
func others(all []*backends.Guest) string {
	if len(all) == 1 {
		return all[0].VM
	}
	return fmt.Sprintf("%s and %d more", all[0].VM, len(all)-1)
}

// sameGuests warns if a guest differs from the majority, and fails if it has no value.
func sameGuests(what string, of func(g *backends.Guest) string) func(*checks.Facts) []checks.Answer {
	return func(f *checks.Facts) []checks.Answer {
		count, most, total := map[string]int{}, "", 0
		found, _ := f.VMs()
		for _, v := range found {
			if g := f.Guest(v.Name); g != nil && g.Error == "" && of(g) != "" {
				count[of(g)]++
				total++
			}
		}
		for v, n := range count {
			if n > count[most] || n == count[most] && v < most {
				most = v
			}
		}
		return eachGuest(func(_ *checks.Facts, t backends.Ref, g *backends.Guest) checks.Answer {
			if of(g) == "" {
				return row.Fail(t, "%s does not exist", what)
			}
			return row.WarnIf(of(g) != most, t, "%s %s, %s on %d of %d", what, of(g), most, count[most], total)
		})(f)
	}
}
