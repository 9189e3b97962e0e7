package cmd

import (
	"context"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// preflight runs the checks that must not fail before a run.
func preflight(ctx context.Context, s *session.Session, a *answers.Answers, inv *backends.Inventory, f planFlags) []checks.Finding {
	a, inv = limited(a, inv, f.limit)
	facts := s.Gather(ctx, a, inv, false, true)
	found := catalogue.Run(ctx, facts, checks.Selection{Mode: a.Mode, Preflight: true, Skip: f.skip})
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
