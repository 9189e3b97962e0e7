package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// An aftermath is the state of the fabric after a run.
type aftermath struct {
	findings []checks.Finding
	notes    []string
	err      error // the fabric could not be read: the findings are old, and decide nothing
}

// lookAgain makes the full check after a run, including its measurements. An interrupted or broken run keeps the results of the
// preflight, and a note says so: the report must not look newer than it is.
func lookAgain(ctx context.Context, s *session.Session, a *answers.Answers, p *planned, f planFlags, res engine.Result,
	measured []perftest.Measurement) aftermath {
	before := aftermath{findings: p.findings}
	if len(p.findings) > 0 {
		before.notes = []string{"the checks are those made before the run"}
	}
	switch {
	case ctx.Err() != nil:
		return before
	case res.Status != engine.StatusDone && res.Status != engine.StatusUnchanged && res.Status != engine.StatusPartial:
		return before
	}
	ctx, over := s.Waiting(ctx, "check the fabric again", "vCenter", -1)
	defer over()
	inv := s.Last(p.inv) // a run ends with a survey, and a measurement begins with one
	if len(measured) == 0 && res.Status != engine.StatusUnchanged && !res.Reread {
		var err error
		if inv, err = s.Survey(ctx, a); err != nil {
			before.err = fmt.Errorf("it could not be checked again after the run: %w", err)
			return before
		}
	}
	few, seen := limited(a, inv, f.limit)
	awaitTools(ctx, s, p.inv, seen)
	facts := s.Facts(ctx, few, seen, true)
	for i := range seen.Hosts { // the report shows the current state of the hosts
		inv.Host(seen.Hosts[i].Name).System = seen.Hosts[i].System
	}
	facts.Pairs = append(facts.Pairs, pairFacts(measured)...)
	found := catalogue.Run(ctx, facts, checks.Selection{Uses: a.Uses(), Skip: f.skip})
	if ctx.Err() != nil {
		return before
	}
	if len(f.limit) == 0 {
		labelled(ctx, facts, f.options(), found)
	}
	return aftermath{findings: found}
}

// toolsStart is how long VMware Tools may take after a power-on until they report that they run.
const toolsStart = time.Minute

// awaitTools waits until VMware Tools run again in the VMs in which they ran before: right after a power-on they do not run yet.
func awaitTools(ctx context.Context, s *session.Session, before, now *backends.Inventory) {
	if before == nil {
		return
	}
	read := true
	wait := backends.Poll{What: "wait until VMware Tools run again", Target: "VMs", Limit: toolsStart, Every: time.Second}
	_ = wait.Until(s.Voiced(ctx), func(ctx context.Context) (bool, error) { // after an error, the state of Tools is what was read before
		if !read {
			inv, err := s.Inventory(ctx, backends.Scope{})
			if err != nil {
				return false, err
			}
			for i := range now.VMs {
				if v := inv.VM(now.VMs[i].Name); v != nil {
					now.VMs[i].Tools = v.Tools
				}
			}
		}
		read = false
		return !slices.ContainsFunc(now.VMs, func(v backends.VM) bool {
			was := before.VM(v.Name)
			return v.Power == "poweredOn" && v.Tools != toolsRun && was != nil && was.Tools == toolsRun
		}), nil
	})
}

// toolsRun is the state of running VMware Tools (vSphere Web Services API, GuestInfo.toolsRunningStatus).
const toolsRun = "guestToolsRunning"

// preflight runs the checks that must not fail before a run.
func preflight(ctx context.Context, s *session.Session, a *answers.Answers, inv *backends.Inventory, f planFlags) []checks.Finding {
	a, inv = limited(a, inv, f.limit)
	facts := s.Gather(ctx, a, inv, false, true)
	found := catalogue.Run(ctx, facts, checks.Selection{Uses: a.Uses(), Preflight: true, Skip: f.skip})
	for i := range found {
		// A pNIC named by --force-nic is in use: the operator has accepted that, and the plan says what stops.
		if c := &found[i]; c.ID == "HOST-PNIC-USED-012" && c.Status == checks.Fail && slices.ContainsFunc(f.forceNIC, func(spec string) bool {
			return strings.HasPrefix(spec, c.Target.Name+"/")
		}) {
			c.Status, c.Evidence = checks.Warn, c.Evidence+"; selected anyway by --force-nic"
		}
	}
	return found
}
