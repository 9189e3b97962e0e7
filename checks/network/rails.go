package network

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// railCheck compares the cables of the rails. A physical switch belongs to a rail if most of its hosts have that rail, and no
// other, there: ibdiagnet judges the servers of a top-of-rack switch in the same way.
func railCheck() checks.Check {
	return checks.Check{
		ID: "SW-RAIL-015", Scope: checks.Switch, Link: checks.InSwitch, Quick: true, HostCall: true, Fix: checks.Manual,
		Source: "NVIDIA, IBUtils2 Utility Documentation, Rail Optimized Topology Validation",
		Criteria: "each pNIC is on a physical switch of its own rail, on one that several rails share, or there is one rail / cables of two " +
			"rails are " +
			"swapped, or a cable is on a switch of another rail / -",
		Remedy: "Plug each cable into the switch of its rail, or correct the pNIC of the rail in the answers.",
		Run:    railCables,
	}
}

// A cable is the pNIC of a rail on a host, with the switch port that it receives over LLDP or CDP.
type cable struct {
	rail, device string
	at           backends.Neighbour
}

func (c cable) String() string {
	return fmt.Sprintf("%s (%s) is on %s port %s", c.device, c.rail, c.at.Switch, c.at.Port)
}

// railCables answers once for all rails, with one answer per host.
func railCables(f *checks.Facts) []checks.Answer {
	rails := f.Rails()
	if len(rails) < 2 {
		return []checks.Answer{row.Pass(backends.SwitchRef("physical"), "one rail: there are no cables to compare")}
	}
	if f != rails[0] {
		return nil // the first rail has answered
	}
	var hosts []string
	cables := map[string][]cable{} // by host
	silent := map[string][]string{}
	for _, view := range rails {
		for _, h := range view.Connected() {
			n := view.NIC(h)
			if n == nil || n.SpeedMbps == 0 {
				continue // HOST-PNIC-STATE-003 and the other rows of pNICs report it
			}
			if !slices.Contains(hosts, h.Name) {
				hosts = append(hosts, h.Name)
			}
			rail := view.Answers.Rails[0].Name
			if at, heard := neighbour(h, n.Device); heard {
				cables[h.Name] = append(cables[h.Name], cable{rail, n.Device, at})
			} else {
				silent[h.Name] = append(silent[h.Name], fmt.Sprintf("%s (%s)", n.Device, rail))
			}
		}
	}
	owner, shared := owners(cables)
	var out []checks.Answer
	for _, host := range hosts {
		t, own := backends.HostRef(host), cables[host]
		if wrong := misplaced(own, owner); len(wrong) > 0 {
			out = append(out, row.Warn(t, "%s", strings.Join(wrong, "; ")))
			continue
		}
		var seen, open []string
		for _, c := range own {
			seen = append(seen, c.String())
			if owner[c.at.Switch] == "" && !shared[c.at.Switch] {
				open = append(open, fmt.Sprintf("%s, where no rail has most of the hosts", c))
			}
		}
		switch {
		case len(silent[host]) > 0:
			out = append(out, row.Waiting(t, "the switch port of %s is not known", strings.Join(silent[host], ", ")))
		case len(open) > 0:
			out = append(out, row.Waiting(t, "%s", strings.Join(open, "; ")))
		default:
			out = append(out, row.Pass(t, "%s", strings.Join(seen, ", ")))
		}
	}
	return out
}

// neighbour returns the switch port that a pNIC receives; false if it receives none, or if the host was not read.
func neighbour(h *backends.Host, device string) (backends.Neighbour, bool) {
	if h.System == nil || !h.System.Neighbours.Known() {
		return backends.Neighbour{}, false
	}
	at, heard := h.System.Neighbours.Value[device]
	return at, heard && at.Switch != ""
}

// owners returns for each switch the rail that most of its hosts connect to it, counting only hosts that connect a single rail, and
// which of the others connect several rails of one host. A host with only one known cable does not count.
func owners(cables map[string][]cable) (owner map[string]string, shared map[string]bool) {
	votes, voters := map[string]map[string]int{}, map[string]int{}
	shared = map[string]bool{}
	for _, own := range cables {
		if len(own) < 2 {
			continue
		}
		rails := map[string][]string{} // by switch
		for _, c := range own {
			rails[c.at.Switch] = append(rails[c.at.Switch], c.rail)
		}
		for at, here := range rails {
			voters[at]++
			if len(here) > 1 {
				shared[at] = true
				continue
			}
			if votes[at] == nil {
				votes[at] = map[string]int{}
			}
			votes[at][here[0]]++
		}
	}
	owner = map[string]string{}
	for at, of := range votes {
		for rail, n := range of {
			if 2*n > voters[at] {
				owner[at] = rail
			}
		}
	}
	return owner, shared
}

// misplaced returns the cables of a host that are on the switch of another rail; two swapped cables are reported together.
func misplaced(own []cable, owner map[string]string) []string {
	var out []string
	told := map[string]bool{}
	for _, c := range own {
		of := owner[c.at.Switch]
		if of == "" || of == c.rail || told[c.rail] {
			continue
		}
		i := slices.IndexFunc(own, func(o cable) bool { return o.rail == of && owner[o.at.Switch] == c.rail })
		if i < 0 {
			out = append(out, fmt.Sprintf("%s, a switch of %s", c, of))
			continue
		}
		told[of] = true
		out = append(out, fmt.Sprintf("the cables of %s and %s are swapped: %s, a switch of %s; %s, a switch of %s", c.device, own[i].device, c,
			of, own[i], c.rail))
	}
	return out
}
