package plain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// CostLines describes the cost of a plan: reboots and power-offs, how many at a time and for how long, changes that cannot be
// undone, other traffic that is affected, and the cost of loading the fabric afterwards. expected is engine.Expected of the plan, 0
// if unknown.
func CostLines(p *plan.Plan, a *answers.Answers, inv *backends.Inventory, loads []perftest.LoadPlan, expected time.Duration) []string {
	hosts, cycled, listed := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, v := range a.VMs {
		listed[v.Name] = true
		if vm := inv.VM(v.Name); vm != nil {
			listed[vm.Name] = true
		}
	}
	var others []string
	for _, b := range p.Brackets {
		switch {
		case b.Kind == backends.BracketReboot:
			hosts[b.Target.Name] = true
		case b.Kind == backends.BracketVMPower && !cycled[b.Target.Name]:
			cycled[b.Target.Name] = true
			if !listed[b.Target.Name] {
				others = append(others, b.Target.Name)
			}
		}
	}
	ceiling := p.Ceiling()
	reboots, cycles := ceiling.HostReboots, ceiling.PowerCycles
	first := Counted(reboots, "host reboot")
	if reboots > len(hosts) {
		first += " on " + Counted(len(hosts), "host")
	}
	hostsDown, vmsOff := max(1, a.Run.Reboot.MaxUnavailable), a.Run.Power.Limit(len(a.VMs))
	if len(hosts) > 0 {
		first += fmt.Sprintf(", at most %d at a time", hostsDown)
	}
	first += "; " + Counted(cycles, "VM power cycle")
	if cycles > len(cycled) {
		first += " of " + Counted(len(cycled), "VM")
	}
	restarts := 0
	for _, c := range p.Changes {
		if c.Kind == backends.KindRestart {
			restarts++
		}
	}
	if vmsOff == 0 {
		vmsOff = max(1, len(cycled))
	}
	if _, together := plan.OffTogether(p.Brackets, p.Changes); len(cycled) > 0 {
		vmsOff = max(vmsOff, together)
		first += fmt.Sprintf(", at most %s off at a time", Counted(min(vmsOff, len(cycled)), "VM"))
	}
	if restarts > 0 {
		first += "; " + Counted(restarts, "guest reboot")
	}
	out := []string{first}
	if len(hosts)+len(cycled) > 0 && expected > 0 {
		host := fmt.Sprintf("a host is out of service for %d min", plan.MinutesOut(backends.BracketReboot))
		vm := fmt.Sprintf("off for %d min", plan.MinutesOut(backends.BracketVMPower))
		switch {
		case len(cycled) == 0:
			out = append(out, "about "+About(expected)+" if "+host)
		case len(hosts) == 0:
			out = append(out, "about "+About(expected)+" if a VM is "+vm+", changes in guests included")
		default:
			out = append(out, "about "+About(expected)+" if "+host+" and a VM "+vm)
		}
	}
	if what := irreversible(p); what != "" {
		out = append(out, "cannot be undone: "+what)
	}
	if len(others) > 0 {
		out = append(out, "VMs that are not in the answers and are powered off: "+Listed(others))
	} else if len(hosts) > 0 {
		out = append(out, "other VMs on these hosts are moved first; none of them is powered off")
	}
	if also := bystandingPorts(p, inv); also != "" {
		out = append(out, "other pNICs affected: "+also)
	}
	if flaps := flapping(p); len(flaps) > 0 {
		out = append(out, "uplinks go down and up: "+Listed(flaps))
	}
	for _, l := range loads {
		out = append(out, "afterwards the fabric is loaded: "+LoadLine(l))
	}
	total := Counted(len(p.Changes), "change") + " in total"
	if p.Stages > 0 {
		total += "; some values are read during the run"
	}
	return backends.Shown(append(out, total))
}

// irreversible lists the changes that cannot be undone, each once with its targets.
func irreversible(p *plan.Plan) string {
	var who Gathered[string, string]
	for _, c := range p.Changes {
		if c.Irreversible != "" {
			who.Add(plan.Title(c), c.Target.Name)
		}
	}
	return onTargets(who)
}

// onTargets lists what happens, each with the names of its targets.
func onTargets(who Gathered[string, string]) string {
	var parts []string
	for what, names := range who.All() {
		parts = append(parts, what+" on "+Listed(names))
	}
	return strings.Join(parts, "; ")
}

func flapping(p *plan.Plan) []string {
	var out []string
	for _, c := range p.Changes {
		if slices.Contains(c.Disrupts, plan.UplinkFlap) {
			out = append(out, c.Target.Name)
		}
	}
	return out
}

// bystandingPorts lists the pNICs with other traffic that a driver parameter, a firmware setting or flow control also affects: every
// port of the driver, or of the card.
func bystandingPorts(p *plan.Plan, inv *backends.Inventory) string {
	var who Gathered[string, string]
	for _, c := range p.Changes {
		h := inv.Host(c.Target.Name)
		if c.Target.Type != backends.TypeHost || h == nil {
			continue
		}
		for _, n := range h.NICs {
			if len(n.Roles) > 0 && actsOn(c, n) {
				who.Add(n.Device+" ("+strings.Join(n.Roles, ", ")+")", h.Name)
			}
		}
	}
	return onTargets(who)
}

func actsOn(c plan.Change, n backends.NIC) bool {
	card, _, _ := strings.Cut(n.PCI, ".")
	switch c.Kind {
	case backends.KindModuleParams:
		return n.Driver == c.Name
	case backends.KindFirmware, backends.KindFirmwareImage:
		return card != "" && strings.HasPrefix(c.Name, card+".")
	case backends.KindPause:
		return n.Device == c.Name
	}
	return false
}

// LoadLine describes the cost of loading the fabric with several simultaneous senders.
func LoadLine(p perftest.LoadPlan) string {
	more := ""
	if p.RaisedBytes > 0 {
		more = fmt.Sprintf("; if nothing is congested, one more round (%d s, %s)", p.RaisedSeconds, volume(p.RaisedBytes))
	}
	return fmt.Sprintf(
		"%s: %s with up to %s at once: about %s, %s, at most %.0f Gb/s%s; other traffic on these ports is slowed down meanwhile",
		p.Load, Counted(p.Rounds, "round"), Counted(p.Senders, "sender"), About(p.Time), volume(p.Bytes), p.PeakGbps, more)
}

// LoadRound reports the start of a round of a load with the estimated remaining time, or the result of the round.
func LoadRound(p perftest.Progress) string {
	if p.Flows == nil {
		return backends.Clean(fmt.Sprintf("loading %d/%d  %s: about %s left", p.Round, p.Rounds, p.Flowing(), About(p.Left)))
	}
	sum, bad, apart := 0.0, 0, ""
	for _, m := range p.Flows {
		sum += m.AchievedGbps
		if m.Apart {
			apart = "; inconclusive: not all sent at the same time"
		}
		if m.Verdict == perftest.VerdictFail {
			bad++
		}
	}
	return backends.Clean(fmt.Sprintf("loaded %d/%d  %s: %.1f Gb/s together, %d failed%s", p.Round, p.Rounds, p.Flowing(), sum, bad, apart))
}

// volume formats a number of bytes, rounded for an estimate.
func volume(bytes int64) string {
	if bytes < 1e12 {
		return fmt.Sprintf("%.0f GB", float64(bytes)/1e9)
	}
	return fmt.Sprintf("%.1f TB", float64(bytes)/1e12)
}

// About formats a duration, rounded for an estimate.
func About(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(1, int(d.Round(time.Second).Seconds())))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Round(time.Hour).Hours()))
}
