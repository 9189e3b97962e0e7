package assets

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Kernel says which package of a distribution's kernels has a driver.
type Kernel struct {
	Name     string            `yaml:"name"`
	IDs      []string          `yaml:"ids"`      // os-release ID
	From     string            `yaml:"from"`     // lowest VERSION_ID
	Packages map[string]string `yaml:"packages"` // by driver; "": no kernel of the release has it
	Source   string            `yaml:"source"`
}

// Kernels returns the table of kernels.
var Kernels = sync.OnceValues(func() ([]Kernel, error) { return table[Kernel]("kernels.yaml") })

// DriverRemedy says how a guest with an ID, VERSION_ID and ID_LIKE gets a driver that its kernel (uname -r) does not have.
func DriverRemedy(driver, kernel, id, version string, like []string) string {
	rows, err := Kernels()
	if err != nil {
		return err.Error()
	}
	var have []string
	for _, k := range rows {
		if _, known := DistroFor(k.IDs[0], k.From, nil); known && k.Packages[driver] != "" {
			have = append(have, k.Name)
		}
	}
	another := "a guest whose kernel has it (" + strings.Join(have, ", ") + ")"
	if driver == "vmw_pvrdma" {
		another += ", or mode sriov"
	}
	for _, name := range append([]string{id}, like...) {
		for _, k := range slices.Backward(rows) {
			if !slices.Contains(k.IDs, name) || older(version, k.From) {
				continue
			} else if p := k.Packages[driver]; p != "" {
				return "install " + strings.ReplaceAll(p, "KERNEL", kernel) + ", or use a kernel for which modinfo finds " + driver
			}
			return fmt.Sprintf("no kernel package of %s has it: use %s", k.Name, another)
		}
	}
	return fmt.Sprintf("use a kernel for which modinfo finds %s, or %s", driver, another)
}
