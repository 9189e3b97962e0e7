package plan

import "github.com/rdma-setup/rdma-setup/backends"

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
