package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// grounds reads the facts that caused a lasting refusal; "" for other failures, and if they cannot be read.
func (d *operation) grounds(ctx context.Context, n *node, failure error) string {
	if d.job.Grounds == nil || !backends.IsLasting(failure) || ctx.Err() != nil {
		return ""
	}
	text, err := d.groundsOf(ctx, n.target)
	if err != nil {
		return ""
	}
	return text
}

func (r *runner) groundsOf(ctx context.Context, t backends.Ref) (string, error) {
	return guard(ctx, r.limits.Operation, r.limits.Grace, t.Name, "read what the refusal depends on", func(ctx context.Context) (string, error) {
		return r.job.Grounds(ctx, t)
	})
}

// spare fails, before anything is powered off, the changes of running VMs that an earlier attempt has powered off without success:
// the change was refused because of the configuration of the VM or its host, the same value is requested, and none of the facts
// that caused the refusal has changed. Another attempt would only repeat the outage.
func (s *stage) spare(ctx context.Context) {
	if !s.again || s.number > 1 || s.job.Grounds == nil || s.job.Insist {
		return
	}
	last := s.refusals()
	now := map[backends.Ref]string{}
	for _, n := range s.nodes {
		rec, refused := last[n.id]
		if !refused || n.state != "" || n.change == nil || rec.To != n.change.To || !slices.ContainsFunc(n.within, func(b *bracket) bool { return b.outage() && !b.inherited }) {
			continue
		}
		is, read := now[n.target]
		if !read {
			var err error
			if is, err = s.groundsOf(ctx, n.target); err != nil {
				s.note("%s: whether the cause of the failure is gone could not be read: %v", n.target.Name, err)
			}
			now[n.target] = is
		}
		if is != rec.Grounds {
			continue
		}
		hint := "Remove the cause, then run it again, or add --insist to try anyway."
		if rec.Hint != "" {
			hint = strings.TrimSuffix(rec.Hint, ".") + ". Add --insist to try anyway."
		}
		s.settle(n, outcome{state: NodeFailed, err: backends.Errorf(backends.KindRefused, n.target.Name, hint,
			"not powered off again: %s failed in the attempt before, and nothing that it depends on has changed since (%s): %s", n.title, is, strings.TrimPrefix(rec.Err, n.target.Name+": "))})
	}
}

// refusals returns the last outcomes of changes in this phase that are lasting refusals.
func (r *runner) refusals() map[string]journal.Record {
	out := map[string]journal.Record{}
	for _, rec := range r.job.Journal.State().Records {
		switch {
		case rec.Phase != r.phase:
		case rec.Type == journal.TypeIntent:
			out[rec.Node] = journal.Record{To: rec.To}
		case rec.Type == journal.TypeOutcome && rec.Grounds != "":
			rec.To = out[rec.Node].To
			out[rec.Node] = rec
		case rec.Type == journal.TypeOutcome:
			delete(out, rec.Node)
		}
	}
	for node, rec := range out {
		if rec.Grounds == "" {
			delete(out, node)
		}
	}
	return out
}
