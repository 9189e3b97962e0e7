// Package bundle keeps what the checks look at in one file, so that it can be judged elsewhere: by whom the vCenter does
// not let in, or later. A bundle is a gzipped tar of JSON and YAML with a manifest in front; user names are left out of
// it, and secrets were never in what it is made of.
package bundle

import (
	"time"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Schema is the version of the format that is written and read.
const Schema = 2

// A Bundle is what was gathered at one time.
type Bundle struct {
	Tool    string           // version of rdma-setup that gathered it
	Made    time.Time        // when
	Quick   bool             // only what vCenter tells: the rows that need more were not asked
	Answers *answers.Answers // what should be; nil if nobody gave any
	Facts   *checks.Facts    // what is there; its Answers are not kept
	Kept    time.Time        // when the baseline among the facts was kept
	Masked  bool             // Write replaces names and addresses, the same by the same
}

// Measured returns the measurements that were made for the bundle.
func (b *Bundle) Measured() []perftest.Measurement {
	var all []perftest.Measurement
	for _, p := range b.Facts.Pairs {
		all = append(all, p.Measured...)
	}
	return all
}

// The files of a bundle, in their order.
const (
	manifestFile  = "bundle.json"
	answersFile   = "answers.yaml"
	inventoryFile = "inventory.json"
	guestsFile    = "guests.json"
	pairsFile     = "pairs.json"
	factsFile     = "facts.json"
)

// Limits on what is read, in bytes: thousands of hosts stay far below. What the JSON texts may hold is bounded beside.
const (
	packedLimit = 32 << 20
	totalLimit  = 64 << 20

	manifestLimit = 1 << 20
)

// manifest is the first file: what the bundle is, and the sums of the others.
type manifest struct {
	Schema    int               `json:"schema"`
	Kind      string            `json:"kind"`
	Tool      string            `json:"tool"`
	Made      time.Time         `json:"made"`
	VCenter   string            `json:"vcenter"`
	Mode      string            `json:"mode"`
	Simulated bool              `json:"simulated"`
	Quick     bool              `json:"quick"`
	Kept      time.Time         `json:"baseline_kept,omitzero"`
	Hosts     int               `json:"hosts"`
	VMs       int               `json:"vms"`
	Guests    int               `json:"guests"`
	LeftOut   string            `json:"left_out"`
	Files     map[string]string `json:"files"` // SHA-256 by name, hexadecimal
}

const (
	kind    = "rdma-setup bundle"
	leftOut = "user names; secrets are never gathered"
	replace = "; names and addresses are replaced"
)
