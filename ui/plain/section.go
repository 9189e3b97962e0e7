package plain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A section holds all changes to the targets of one type.
type section struct {
	kind    backends.TargetType
	targets []string
	entries []*entry
}

// An entry is one change of one or many targets: the same setting for the same reason.
type entry struct{ changes []plan.Change }

// A move is the old and the new value of some targets of an entry.
type move struct {
	names    []string
	from, to string
}

// sections groups a plan by type of target and then by change, both in the order in which they first appear.
func sections(p *plan.Plan) []*section {
	var all []*section
	at := map[backends.TargetType]*section{}
	known := map[backends.Ref]bool{}
	type key struct {
		of                            backends.TargetType
		kind                          backends.Kind
		name, why, sign, irreversible string
		disrupts                      string
	}
	entries := map[key]*entry{}
	for _, c := range p.Changes {
		s := at[c.Target.Type]
		if s == nil {
			s = &section{kind: c.Target.Type}
			at[c.Target.Type] = s
			all = append(all, s)
		}
		if !known[c.Target] {
			known[c.Target] = true
			s.targets = append(s.targets, c.Target.Name)
		}
		k := key{c.Target.Type, c.Kind, c.Name, c.Why, sign(c), c.Irreversible, disruptions(c)}
		e := entries[k]
		if e == nil {
			e = &entry{}
			entries[k] = e
			s.entries = append(s.entries, e)
		}
		e.changes = append(e.changes, c)
	}
	return all
}

var targetWords = map[backends.TargetType]string{
	backends.TypeVCenter: "vCenter", backends.TypeCluster: "cluster", backends.TypeSwitch: "distributed switch",
	backends.TypePortGroup: "port group",
	backends.TypeHost:      "host", backends.TypeVM: "VM", backends.TypeGuest: "guest", backends.TypePair: "pair",
}

// heading is "host esx-01" or "4 hosts: esx-01 to esx-04".
func (s *section) heading() string {
	word := cmp.Or(targetWords[s.kind], string(s.kind))
	if len(s.targets) == 1 {
		return word + " " + Names(s.targets)
	}
	return Counted(len(s.targets), word) + ": " + Names(slices.SortedFunc(slices.Values(s.targets), Natural))
}

// Targets lists targets by their type: "VM vm-02; 6 hosts: esx-03 to esx-08".
func Targets(refs []backends.Ref) string {
	var by Gathered[backends.TargetType, string]
	for _, r := range refs {
		by.Add(r.Type, r.Name)
	}
	var words []string
	for kind, names := range by.All() {
		words = append(words, (&section{kind: kind, targets: names}).heading())
	}
	return strings.Join(words, "; ")
}

func (e *entry) names() []string {
	names := Mapped(e.changes, func(c plan.Change) string { return c.Target.Name })
	slices.SortFunc(names, Natural)
	return names
}

// title is the title of the change; if it differs between targets, the part that all have in common.
func (e *entry) title() string {
	words := strings.Fields(plan.Title(e.changes[0]))
	head, tail := len(words), len(words)
	for _, c := range e.changes[1:] {
		other := strings.Fields(plan.Title(c))
		if slices.Equal(other, words) {
			continue
		}
		h := 0
		for h < min(head, len(other)) && other[h] == words[h] {
			h++
		}
		t := 0
		for t < min(tail, len(other)-h, len(words)-h) && other[len(other)-1-t] == words[len(words)-1-t] {
			t++
		}
		head, tail = h, t
	}
	if head == len(words) {
		return strings.Join(words, " ")
	}
	return strings.Join(slices.Concat(words[:head], []string{"..."}, words[len(words)-tail:]), " ")
}

func (e *entry) moves() []move {
	var by Gathered[[2]string, string]
	for _, c := range e.changes {
		by.Add([2]string{told(c.From), told(c.To)}, c.Target.Name)
	}
	var all []move
	for values, names := range by.All() {
		slices.SortFunc(names, Natural)
		all = append(all, move{names, values[0], values[1]})
	}
	return all
}

// told formats a value. The reason why a value is unknown is in the JSON only.
func told(v backends.Value) string {
	if !v.Known() {
		return "not known yet"
	}
	return Value(v)
}

// Value formats a known value: an empty text and an empty list of parameters are "not set".
func Value(v backends.Value) string {
	s := v.String()
	if n := strings.Count(s, "\n"); n > 1 {
		return fmt.Sprintf("%d lines of text (-o json has them)", n)
	}
	if s != "" && s != `""` {
		return s
	}
	return "not set"
}
