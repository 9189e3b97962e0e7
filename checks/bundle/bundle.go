// Package bundle stores the facts of a check in one file, so that they can be judged on another machine or later. A bundle is a
// gzipped tar of JSON and YAML that begins with a manifest. User names are removed from it, and its data never contains secrets.
package bundle

import (
	"time"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Schema is the format version that is written and read.
const Schema = 2

// A Bundle is the data collected at one time.
type Bundle struct {
	Tool    string           // version of rdma-setup that gathered it
	Made    time.Time        // when
	Quick   bool             // only facts from vCenter: rows that need more were not evaluated
	Answers *answers.Answers // the requested state; nil if there are no answers
	Facts   *checks.Facts    // the facts; Facts.Answers is not stored
	Kept    time.Time        // when the baseline in Facts was saved
	Masked  bool             // Write replaces names and addresses consistently
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

// Size limits in bytes: thousands of hosts need much less. The structure of the JSON texts is limited separately.
const (
	packedLimit = 32 << 20
	totalLimit  = 64 << 20

	manifestLimit = 1 << 20
)

// manifest is the first file: a description of the bundle, and the checksums of the other files.
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
