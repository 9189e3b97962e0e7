package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// guestsRefused returns the guests in which login or sudo failed; nil if err has any other reason as well.
func guestsRefused(err error) []plan.Refusal {
	refused, ok := errors.AsType[*plan.Refused](err)
	if !ok || slices.ContainsFunc(refused.Refusals, func(r plan.Refusal) bool {
		return r.Target.Type != backends.TypeGuest || r.Kind == "" && r.Check != "GST-SUDO-002"
	}) {
		return nil
	}
	return refused.Refusals
}

// unasked returns the inventory as if these guests had not been read.
func unasked(inv *backends.Inventory, guests []plan.Refusal) *backends.Inventory {
	if len(guests) == 0 {
		return inv
	}
	out := *inv
	out.Guests = slices.DeleteFunc(slices.Clone(inv.Guests), func(g backends.Guest) bool {
		return slices.ContainsFunc(guests, func(r plan.Refusal) bool { return r.Target.Name == g.VM })
	})
	return &out
}

// hostsToo handles a plan that is refused only because of guest logins. If it would use shells of ESXi hosts, and the operator
// consents, it is built as if these guests had not been read: the engine then tests the logins to the hosts, lists all failures
// together and does nothing else. Otherwise the refusal stands.
func (r *runner) hostsToo(refused error, build func() (*plan.Plan, error)) (*plan.Plan, error) {
	guests := guestsRefused(refused)
	if guests == nil {
		return nil, refused
	}
	r.flags.barred = guests
	p, err := build()
	if err == nil && r.consentToProof(p) {
		return p, nil
	}
	r.flags.barred = nil
	return nil, refused
}

// consentToProof asks whether to test the logins to the plan's ESXi hosts, for which their SSH service is started temporarily.
func (r *runner) consentToProof(p *plan.Plan) bool {
	hosts := map[backends.Ref]bool{}
	for _, b := range p.Brackets {
		if b.Kind == backends.BracketSSH {
			hosts[b.Target] = true
		}
	}
	n := len(hosts)
	if n == 0 || r.yes || !r.env.Terminal() {
		return n > 0 && r.yes
	}
	fmt.Fprintf(r.env.Stderr, "The log-in to %s failed, so nothing will be changed.\n", plain.Counted(len(r.flags.barred), "guest"))
	ok, err := r.env.Confirm(fmt.Sprintf("Try the log-in to %s as well (starts the SSH service there and restores it)",
		plain.Counted(n, "ESXi host")))
	return ok && err == nil
}

// surveyAgain reads the inventory again, without repeating a refused login to a guest.
func (r *runner) surveyAgain(ctx context.Context, was *backends.Inventory) (*backends.Inventory, error) {
	if len(r.flags.barred) > 0 {
		return was, nil
	}
	return r.s.Survey(ctx, r.a)
}
