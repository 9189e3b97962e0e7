package plan

import (
	"fmt"
	"slices"
)

// Node ids in the graph: a change's id; a bracket's id stands for its close, OpenID(bracket) for its open.

// OpenID is the node that opens the bracket of the given id.
func OpenID(bracket string) string { return "open " + bracket }

// A Graph is a plan as nodes and what each waits for.
type Graph struct {
	Order []string            // every node, each after those that it waits for
	Waits map[string][]string // node -> nodes that must be done before
}

// Graph works out the order: open brackets before their body, close after it, changes after what they name. It fails
// on a cycle and on an id that stands twice; a name in After that is not in the plan is something already done.
func (p Plan) Graph() (Graph, error) {
	g := Graph{Waits: map[string][]string{}}
	var nodes []string
	add := func(id string) error {
		if _, twice := g.Waits[id]; twice {
			return fmt.Errorf("plan: %q stands twice", id)
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

// sort fills Order, keeping the given order where nothing speaks against it.
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
