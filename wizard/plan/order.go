package plan

import (
	"fmt"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Node ids in the graph: a change's id; for a bracket its id is its closing, OpenID(bracket) its opening.

// OpenID returns the node that opens the bracket with the given id.
func OpenID(bracket string) string { return "open " + bracket }

// A Graph is a plan as nodes with their dependencies.
type Graph struct {
	Order []string            // every node, after its dependencies
	Waits map[string][]string // node -> nodes that must be done before
}

// Graph computes the order: brackets are opened before their body and closed after it, changes come after what they name. It
// fails on a cycle and on a duplicate id; a name in After that is not in the plan is already done.
func (p Plan) Graph() (Graph, error) {
	g := Graph{Waits: map[string][]string{}}
	var nodes []string
	add := func(id string) error {
		if _, twice := g.Waits[id]; twice {
			return fmt.Errorf("plan: %q is listed twice", id)
		}
		g.Waits[id] = nil
		nodes = append(nodes, id)
		return nil
	}
	for _, b := range p.Brackets {
		if err := add(OpenID(b.ID())); err != nil {
			return Graph{}, err
		}
		if err := add(b.ID()); err != nil {
			return Graph{}, err
		}
	}
	for _, c := range p.Changes {
		if err := add(c.ID()); err != nil {
			return Graph{}, err
		}
	}
	type edge struct{ id, before string }
	seen := map[edge]bool{}
	wait := func(id string, before ...string) {
		if _, there := g.Waits[id]; !there {
			return
		}
		for _, b := range before {
			if _, there := g.Waits[b]; there && b != id && !seen[edge{id, b}] {
				seen[edge{id, b}] = true
				g.Waits[id] = append(g.Waits[id], b)
			}
		}
	}
	for _, b := range p.Brackets {
		wait(b.ID(), OpenID(b.ID()))
		wait(OpenID(b.ID()), b.After...)
		wait(OpenID(b.ID()), b.AfterAny...)
		for _, inner := range b.Around {
			wait(OpenID(inner), OpenID(b.ID()))
			wait(b.ID(), inner)
		}
	}
	for _, c := range p.Changes {
		wait(c.ID(), c.After...)
		for _, b := range c.Within {
			wait(c.ID(), OpenID(b))
			wait(b, c.ID())
		}
	}
	return g, g.sort(nodes)
}

// sort fills Order, keeping the given order if possible.
func (g *Graph) sort(nodes []string) error {
	done := map[string]bool{}
	for len(g.Order) < len(nodes) {
		before := len(g.Order)
		for _, n := range nodes {
			if !done[n] && !slices.ContainsFunc(g.Waits[n], func(w string) bool { return !done[w] }) {
				done[n] = true
				g.Order = append(g.Order, n)
			}
		}
		if len(g.Order) == before {
			for _, n := range nodes {
				if !done[n] {
					return fmt.Errorf("plan: %q waits for itself through %q", n, g.Waits[n])
				}
			}
		}
	}
	return nil
}

// Narrow removes changes that are not named, like Options.Only.
func (p *Plan) Narrow(only []string) error {
	p.narrow(only)
	return p.Settle()
}

// narrow keeps the named changes and the brackets that they need: those they are made in, and those that start what a change
// waits for (a VM that is off). Notes that hold for all changes together are dropped with any of them.
func (p *Plan) narrow(only []string) {
	all := len(p.Changes) + len(p.Brackets)
	needed, body := map[string]bool{}, map[string]bool{}
	for _, c := range p.Changes {
		for _, id := range c.Within {
			body[id] = true
		}
	}
	p.Changes = slices.DeleteFunc(p.Changes, func(c Change) bool { return !slices.Contains(only, c.ID()) })
	for _, c := range p.Changes {
		for _, id := range c.Within {
			needed[id] = true
		}
		for _, id := range c.After {
			needed[id] = needed[id] || !body[id]
		}
	}
	p.Brackets = slices.DeleteFunc(p.Brackets, func(br Bracket) bool { return !needed[br.ID()] })
	if len(p.Changes)+len(p.Brackets) < all {
		p.Notes = slices.DeleteFunc(p.Notes, func(n string) bool { return slices.Contains(p.Whole, n) })
	}
}

// Settle drops names that are not in the plan from every After, sorts the changes so that they could be made one by one, and
// counts the stages.
func (p *Plan) Settle() error {
	known := map[string]bool{}
	for _, c := range p.Changes {
		known[c.ID()] = true
	}
	for _, br := range p.Brackets {
		known[br.ID()], known[OpenID(br.ID())] = true, true
	}
	keep := func(ids []string) []string {
		var out []string
		seen := make(map[string]bool, len(ids))
		for _, id := range ids {
			if known[id] && !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
		return out
	}
	for i := range p.Changes {
		p.Changes[i].After, p.Changes[i].Within = keep(p.Changes[i].After), keep(p.Changes[i].Within)
	}
	for i := range p.Brackets {
		br := &p.Brackets[i]
		br.After, br.AfterAny, br.Around = keep(br.After), keep(br.AfterAny), keep(br.Around)
	}
	g, err := p.Graph()
	if err != nil {
		return err
	}
	at := map[string]int{}
	for i, id := range g.Order {
		at[id] = i
	}
	slices.SortStableFunc(p.Changes, func(x, y Change) int { return at[x.ID()] - at[y.ID()] })
	p.Stages = 0
	for _, c := range p.Changes {
		if !c.From.Known() || !c.To.Known() {
			p.Stages = 1
		}
	}
	return nil
}

// Together groups the power cycles of VMs that are off at the same time in any order: those around one change (RDMA uplinks can
// be changed only with all PVRDMA VMs of the switch off, KB 328676) and those around the reboot of one host. Every power cycle is
// in exactly one group, by its id, in the order of the brackets.
func Together(brackets []Bracket, changes []Change) [][]string {
	parent := map[string]string{}
	var find func(id string) string
	find = func(id string) string {
		if up := parent[id]; up != id {
			parent[id] = find(up)
		}
		return parent[id]
	}
	join := func(ids []string) {
		for _, id := range ids[min(1, len(ids)):] {
			parent[find(id)] = find(ids[0])
		}
	}
	byHost := map[backends.Ref][]string{}
	hostOf := map[string]backends.Ref{}
	for _, b := range brackets {
		if b.Kind == backends.BracketVMPower {
			parent[b.ID()] = b.ID()
		} else if b.Target.Type == backends.TypeHost {
			hostOf[b.ID()] = b.Target
		}
	}
	for _, b := range brackets {
		if _, power := parent[b.ID()]; !power {
			continue
		}
		for _, id := range b.Around {
			if host, known := hostOf[id]; known {
				byHost[host] = append(byHost[host], b.ID())
			}
		}
	}
	for _, ids := range byHost {
		join(ids)
	}
	for _, c := range changes {
		var ids []string
		for _, id := range c.Within {
			if _, power := parent[id]; power {
				ids = append(ids, id)
			}
		}
		join(ids)
	}
	at := map[string]int{}
	var out [][]string
	for _, b := range brackets {
		if _, power := parent[b.ID()]; !power {
			continue
		}
		root := find(b.ID())
		i, known := at[root]
		if !known {
			i = len(out)
			at[root] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], b.ID())
	}
	return out
}

// OffTogether returns how many power cycles of VMs there are, and the most that are in one group of Together: a default limit of
// VMs that are off at the same time (answers.Power) gives way to it.
func OffTogether(brackets []Bracket, changes []Change) (cycles, most int) {
	off := map[string]bool{}
	for _, br := range brackets {
		off[br.ID()] = br.Kind == backends.BracketVMPower && br.Effect == VMPowerCycle
	}
	for _, ids := range Together(brackets, changes) {
		n := len(slices.DeleteFunc(ids, func(id string) bool { return !off[id] }))
		cycles, most = cycles+n, max(most, n)
	}
	return cycles, max(1, most)
}
