// Package checks defines read-only tests: a check is a row that evaluates facts, never a connection, and returns an answer for
// each target; a fact that could not be read is unknown, never a pass. The selection that the answers make is computed here once,
// so that all rows examine the same hosts, pNICs, VMs and guests. The rows are in the packages below, one for each scope, and
// package catalogue combines them.
package checks

import (
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// Status is the result of a check; unknown is never a pass.
type Status string

// The four statuses.
const (
	Pass    Status = "pass"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Unknown Status = "unknown"
)

// NotApplicable is the status of a row that applies to nothing at a site: reports count such rows and do not list them.
const NotApplicable Status = "not_applicable"

// The other states of a link and of its rows. A row is not read if this command may not read it, if it has no public source, or if
// it waits for the operator's word; a link is read in part if some of its rows were not read.
const (
	NotRead    Status = "not_read"
	PartlyRead Status = "partly_read"
)

// StatusOf returns the status of a verdict, "" for pairs whose traffic does not use the fabric.
func StatusOf(v perftest.Verdict) Status {
	switch v {
	case perftest.VerdictPass, perftest.VerdictWarn, perftest.VerdictFail:
		return Status(v)
	case perftest.VerdictNotApplicable:
		return ""
	}
	return Unknown
}

// A Finding is the result of one check for one target.
type Finding struct {
	ID       string       `json:"id"`
	Scope    string       `json:"scope"`
	Target   backends.Ref `json:"target"`
	Host     string       `json:"host,omitempty"` // host of a VM or its guest; both hosts of a pair, with Between
	Status   Status       `json:"status"`
	Evidence string       `json:"evidence"` // the value and where it was found
	Remedy   string       `json:"remedy"`
	Source   string       `json:"source"`
	Fix      string       `json:"fix"` // automatic, reboot, manual, none
	// Quiet unknowns need the operator's confirmation or come from unverified rows: they are counted but are not a problem.
	Quiet bool `json:"quiet,omitempty"`
}

// Between separates the two ends of a pair.
const Between = " -> "

// State is the status that counts: NotRead for what was not read or does not decide.
func (f Finding) State() Status {
	if f.Quiet && f.Status != Pass {
		return NotRead
	}
	return f.Status
}

// Count counts findings by State, and the rows that apply to nothing; all documents and texts show these numbers.
func Count(all []Finding, nothing ...string) map[Status]int {
	n := map[Status]int{Pass: 0, Warn: 0, Fail: 0, Unknown: 0, NotRead: 0, NotApplicable: len(nothing)}
	for _, f := range all {
		n[f.State()]++
	}
	return n
}

// Applied returns the findings about targets, and the ids of the rows that apply to nothing.
func Applied(all []Finding) (found []Finding, nothing []string) {
	found = []Finding{}
	for _, f := range all {
		if f.Status == NotApplicable {
			nothing = append(nothing, f.ID)
			continue
		}
		found = append(found, f)
	}
	return found, nothing
}

// Weight returns the severity of a status: 0 for a pass. What could not be read may be a failure, so it outweighs a warning.
func (s Status) Weight() int { return map[Status]int{Fail: 3, Unknown: 2, Warn: 1}[s] }

// A Link is one link of the chain of RDMA's prerequisites, as the findings show it.
type Link struct {
	Name  LinkName       `json:"name"`
	Worst Status         `json:"status"`          // pass: every row was read and passed
	First *Finding       `json:"first,omitempty"` // the first of the worst findings, nil if all passed
	Count map[Status]int `json:"count"`           // findings
}

// A LinkName is the place of a row in the chain.
type LinkName string

// The links, first to last.
const (
	InBIOS     LinkName = "BIOS" // the machine: BIOS, slots, cards
	InFirmware LinkName = "firmware"
	InDriver   LinkName = "driver"
	InHost     LinkName = "host" // ESXi, and the host's state in vCenter and the cluster
	InSwitch   LinkName = "switch"
	InVM       LinkName = "VM"
	InGuest    LinkName = "guest"
	InPair     LinkName = "pair"
)

// Links returns the chain in order.
func Links() []LinkName {
	return []LinkName{InBIOS, InFirmware, InDriver, InHost, InSwitch, InVM, InGuest, InPair}
}
