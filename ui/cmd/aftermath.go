package cmd

import (
	"context"
	"slices"
	"strings"

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
}

// lookAgain makes the full check after a run, including its measurements. An interrupted or broken run keeps the results of the
// preflight, and a note says so: the report must not look newer than it is.
func lookAgain(ctx context.Context, s *session.Session, a *answers.Answers, p *planned, f planFlags, res engine.Result, measured []perftest.Measurement) aftermath {
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
	inv := s.Last(p.inv) // a run ends with a survey, and a measurement begins with one
	if len(measured) == 0 && res.Status != engine.StatusUnchanged && !res.Reread {
		var err error
		if inv, err = s.Survey(ctx, a); err != nil {
			before.notes = append(before.notes, "it could not be checked again after the run: "+err.Error())
			return before
		}
	}
	few, seen := limited(a, inv, f.limit)
	facts := s.Facts(ctx, few, seen, true)
	for i := range seen.Hosts { // the report shows the current state of the hosts
		inv.Host(seen.Hosts[i].Name).System = seen.Hosts[i].System
	}
	facts.Pairs = append(facts.Pairs, pairFacts(measured)...)
	found := catalogue.Run(ctx, facts, checks.Selection{Uses: a.Uses(), Skip: f.skip})
	if ctx.Err() != nil {
		return before
	}
	return aftermath{findings: found}
}

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
