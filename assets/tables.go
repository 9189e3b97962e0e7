package assets

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/go-version"
	yaml "go.yaml.in/yaml/v4"
)

// A Distro is what a family of guests needs for RDMA.
type Distro struct {
	IDs      []string `yaml:"ids"`      // os-release ID
	From     string   `yaml:"from"`     // lowest VERSION_ID
	Manager  string   `yaml:"manager"`  // apt, dnf (yum if dnf is missing)
	Packages []string `yaml:"packages"` // in the order of installation
	// ARPing is the package with iputils' arping, which measure.cross_rail uses.
	ARPing string `yaml:"arping"`
	// Reload: vmw_pvrdma has to be loaded again after every boot. Otherwise its port stays down (PVRDMA and vSphere Bitfusion,
	// VMware, 2021, "known issue" of Ubuntu), or it has no device at all: if udev loads it before vmxnet3 it fails ("failed to
	// get vmxnet3 device", seen with the real driver on Debian 12).
	Reload bool `yaml:"reload"`
	// OFED are the packages that mlnxofedinstall --add-kernel-support requires; KERNEL is replaced by uname -r.
	OFED   []string `yaml:"ofed"`
	Source string   `yaml:"source"`
}

// distros parses the table once, because plans use it for each of thousands of guests.
var distros = sync.OnceValues(func() ([]Distro, error) { return table[Distro]("packages.yaml") })

// Distros returns the table of distributions.
func Distros() ([]Distro, error) {
	ds, err := distros()
	return slices.Clone(ds), err
}

// DistroFor returns the entry for a guest's ID, VERSION_ID and ID_LIKE; false if there is none.
func DistroFor(id, version string, like []string) (Distro, bool) {
	ds, err := Distros()
	if err != nil {
		return Distro{}, false
	}
	for _, name := range append([]string{id}, like...) {
		for _, d := range ds {
			// A derivative has version numbers of its own, so only the ID itself is compared with From.
			if slices.Contains(d.IDs, name) {
				return d, name != id || !older(version, d.From)
			}
		}
	}
	return Distro{}, false
}

// Managed returns the packages of every distribution, for one query of the installed packages; KERNEL in a name is replaced by
// uname -r.
func Managed() ([]string, error) {
	ds, err := Distros()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, d := range ds {
		all = append(append(append(all, d.Packages...), d.OFED...), d.ARPing)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// older compares dotted versions by their numbers; anything else counts as 0.
func older(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		if p, q := number(x, i), number(y, i); p != q {
			return p < q
		}
	}
	return false
}

func number(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, err := strconv.Atoi(parts[i])
	if err != nil {
		return 0
	}
	return n
}

func table[T any](name string) ([]T, error) {
	var rows []T
	b, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("built-in table %s: %w", name, err)
	}
	if err := yaml.Unmarshal(b, &rows); err != nil {
		return nil, fmt.Errorf("built-in table %s: %w", name, err)
	}
	return rows, nil
}

// A GPU is one model of the table: sizes in GB (GiB) as seen by one PCI function.
type GPU struct {
	Name        string   `yaml:"name" json:"name"` // as in the mmio command: a100-80g
	Model       string   `yaml:"model" json:"model"`
	IDs         []string `yaml:"ids" json:"ids"` // vendor:device of a function, lower case hexadecimal
	Framebuffer int      `yaml:"framebuffer" json:"framebuffer_gb"`
	BAR1        int      `yaml:"bar1" json:"bar1_gb"`                  // 0: 256 MiB, no entry in the MMIO sum
	Functions   int      `yaml:"functions" json:"functions,omitempty"` // GPUs on a board; 0: one
	Verified    bool     `yaml:"verified" json:"verified"`             // BAR1 is measured, not computed
	Source      string   `yaml:"source" json:"source"`
}

var gpus = sync.OnceValues(func() ([]GPU, error) { return table[GPU]("gpus.yaml") })

// GPUs returns the table of GPUs.
func GPUs() ([]GPU, error) {
	gs, err := gpus()
	return slices.Clone(gs), err
}

// GPUByID returns a model by the PCI ids of a function: "10de", "20b5".
func GPUByID(vendor, device string) (GPU, bool) {
	gs, err := GPUs()
	if err != nil {
		return GPU{}, false
	}
	i := slices.IndexFunc(gs, func(g GPU) bool { return slices.Contains(g.IDs, vendor+":"+device) })
	if i < 0 {
		return GPU{}, false
	}
	return gs[i], true
}

// A Release is one release of ESXi in the table of features by release.
type Release struct {
	Name     string        `yaml:"name"`     // 8.0 U3
	Version  string        `yaml:"version"`  // 8.0.3, as a host reports it
	Build    int           `yaml:"build"`    // first build, if releases share a version; 0: any
	Hardware int           `yaml:"hardware"` // newest version of virtual hardware
	Adapters int           `yaml:"adapters"` // PVRDMA adapters that a VM can have
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
