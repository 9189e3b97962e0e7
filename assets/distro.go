package assets

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	yaml "go.yaml.in/yaml/v4"
)

// A Distro is what a family of guests needs for RDMA.
type Distro struct {
	IDs      []string `yaml:"ids"`      // os-release ID
	From     string   `yaml:"from"`     // lowest VERSION_ID
	Manager  string   `yaml:"manager"`  // apt, dnf (yum where there is no dnf)
	Packages []string `yaml:"packages"` // in the order of installation
	// ARPing is the package with arping of iputils, by which measure.cross_rail asks.
	ARPing string `yaml:"arping"`
	// Reload: vmw_pvrdma has to be loaded again after every boot. Its port stays down (PVRDMA and vSphere Bitfusion,
	// VMware, 2021, "known issue" of Ubuntu), or it has no device at all: where udev loads it before vmxnet3 it gives
	// up ("failed to get vmxnet3 device", seen with the real driver on Debian 12).
	Reload bool `yaml:"reload"`
	// ModulesPackage is where a missing kernel module is found; KERNEL stands for uname -r.
	ModulesPackage string `yaml:"modules_package"`
	// OFED are the packages that mlnxofedinstall --add-kernel-support builds with or asks for; KERNEL stands for uname -r.
	OFED   []string `yaml:"ofed"`
	Source string   `yaml:"source"`
}

// distros reads the table once: plans for thousands of guests ask for it by each.
var distros = sync.OnceValues(func() ([]Distro, error) { return table[Distro]("packages.yaml") })

// Distros returns the table of distributions.
func Distros() ([]Distro, error) {
	ds, err := distros()
	return slices.Clone(ds), err
}

// DistroFor finds what fits a guest's ID, VERSION_ID and ID_LIKE; false when nothing does.
func DistroFor(id, version string, like []string) (Distro, bool) {
	ds, err := Distros()
	if err != nil {
		return Distro{}, false
	}
	for _, name := range append([]string{id}, like...) {
		for _, d := range ds {
			// A derivative counts its versions in its own way, so only the ID itself is held against From.
			if slices.Contains(d.IDs, name) {
				return d, name != id || !older(version, d.From)
			}
		}
	}
	return Distro{}, false
}

// Managed returns the packages of every distribution, for one query of what is installed; KERNEL in a name stands for uname -r.
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

// older compares dotted versions by their numbers; what is no number counts as 0.
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
