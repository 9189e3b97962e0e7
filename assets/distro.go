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
	Manager  string   `yaml:"manager"`  // apt, dnf (yum if dnf is missing)
	Packages []string `yaml:"packages"` // in the order of installation
	// ARPing is the package with iputils' arping, which measure.cross_rail uses.
	ARPing string `yaml:"arping"`
	// Reload: vmw_pvrdma has to be loaded again after every boot. Otherwise its port stays down (PVRDMA and vSphere Bitfusion,
	// VMware, 2021, "known issue" of Ubuntu), or it has no device at all: if udev loads it before vmxnet3 it fails ("failed to
	// get vmxnet3 device", seen with the real driver on Debian 12).
	Reload bool `yaml:"reload"`
	// ModulesPackage is the package with missing kernel modules; KERNEL is replaced by uname -r.
	ModulesPackage string `yaml:"modules_package"`
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
