package assets

import (
	"slices"
	"sync"

	"github.com/hashicorp/go-version"
)

// A Release is one release of ESXi in the table of features by release.
type Release struct {
	Name     string        `yaml:"name"`     // 8.0 U3
	Version  string        `yaml:"version"`  // 8.0.3, as a host reports it
	Build    int           `yaml:"build"`    // first build, if releases share a version; 0: any
	Hardware int           `yaml:"hardware"` // newest version of virtual hardware
	Adapters int           `yaml:"adapters"` // PVRDMA adapters that a VM can have
	Removed  []string      `yaml:"removed"`  // drivers that it dropped; unverified
	Facts    []ReleaseFact `yaml:"facts"`    // a topic without a row is the same as in the previous release
}

// A ReleaseFact is one cell of the table.
type ReleaseFact struct {
	Topic  string `yaml:"topic"`
	Is     string `yaml:"is"`
	Source string `yaml:"source"` // "": unverified, and nothing is refused for it
}

var releases = sync.OnceValues(func() ([]Release, error) { return table[Release]("releases.yaml") })

// Releases returns the table of releases, oldest first, each with the facts on every topic.
func Releases() ([]Release, error) {
	rows, err := releases()
	out := slices.Clone(rows)
	for i := range out {
		if i == 0 {
			continue
		}
		facts := slices.Clone(out[i-1].Facts)
		for j := range facts {
			if k := slices.IndexFunc(out[i].Facts, func(f ReleaseFact) bool { return f.Topic == facts[j].Topic }); k >= 0 {
				facts[j] = out[i].Facts[k]
			}
		}
		out[i].Facts = facts
	}
	return out, err
}

// Fact returns what is known about a topic in the release, with its source; the zero value for an unknown topic.
func (r Release) Fact(topic string) ReleaseFact {
	if i := slices.IndexFunc(r.Facts, func(f ReleaseFact) bool { return f.Topic == topic }); i >= 0 {
		return r.Facts[i]
	}
	return ReleaseFact{}
}

// ReleaseOf returns the release of a host by its version and build: the newest that is not newer. ok is false if the version is
// invalid or older than the table.
func ReleaseOf(esxi string, build int) (r Release, ok bool) {
	v, err := version.NewVersion(esxi)
	rows, bad := Releases()
	if err != nil || bad != nil {
		return r, false
	}
	for _, row := range rows {
		since, err := version.NewVersion(row.Version)
		if err != nil || v.Core().LessThan(since) || v.Core().Equal(since) && build < row.Build {
			continue
		}
		if row.Build == 0 || v.Core().Equal(since) {
			r, ok = row, true
		}
	}
	return r, ok
}
