// Package checks holds the words of read-only tests: a check is a row that asks facts, never a connection, and gives an
// answer for each target; a fact that could not be read gives unknown, never pass. What the answers pick among the facts is
// worked out here once, so that all rows speak of the same hosts, pNICs, VMs and guests. The rows themselves lie below, a
// package for each scope, and catalogue gathers them.
package checks

import (
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// Status is what a check can say; unknown is never pass.
type Status string

// The four answers.
const (
	Pass    Status = "pass"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Unknown Status = "unknown"
)

// StatusOf returns the status of a verdict, "" for pairs that never meet the fabric.
func StatusOf(v perftest.Verdict) Status {
	switch v {
	case perftest.VerdictPass, perftest.VerdictWarn, perftest.VerdictFail:
		return Status(v)
	case perftest.VerdictNotApplicable:
		return ""
	}
	return Unknown
}

// A Finding is what one check says of one target.
type Finding struct {
	ID       string       `json:"id"`
	Scope    string       `json:"scope"`
	Target   backends.Ref `json:"target"`
	Host     string       `json:"host,omitempty"` // of a VM or its guest; of a pair both, with Between
	Status   Status       `json:"status"`
	Evidence string       `json:"evidence"` // the value seen and where
	Remedy   string       `json:"remedy"`
	Source   string       `json:"source"`
	Fix      string       `json:"fix"` // automatic, reboot, manual, none
	// Quiet unknowns wait for the operator's word or come from unverified rows: counted, but no reason to worry.
	Quiet bool `json:"quiet,omitempty"`
}

// Between stands between the two ends of a pair.
const Between = " -> "

// noTarget is the evidence of a row that found nothing to look at.
const noTarget = "the check does not apply to anything that was found"

// NotAsked reports whether the row found nothing to look at: it says nothing about any fact.
func (f Finding) NotAsked() bool { return f.Evidence == noTarget }

// Weight says how bad a status is: nothing for a pass.
func (s Status) Weight() int { return map[Status]int{Fail: 3, Warn: 2, Unknown: 1}[s] }
