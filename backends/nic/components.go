package nic

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Tools returns the VIBs of a family's firmware tools, nil if it has none.
func Tools(f Family) []string {
	if r := FirmwareOf(f); r != nil {
		return r.Tools
	}
	return nil
}

// Needed returns the VIBs to install from the files that the operator named: the firmware tools if firmware has to be set and one
// of them is missing (the other too if it is older, because they must be of one release), and the driver if it is older than the
// named one. lacking are missing tools that no file contains; faults are files that the host cannot read.
func Needed(f Family, sys *backends.HostSystem, firmware bool) (install []backends.Component, lacking, faults []string) {
	image := sys.Image().Value
	for _, o := range sys.Offers {
		if o.Error != "" {
			faults = append(faults, o.Path+": "+o.Error)
		}
	}
	missing := func(name string) bool { return image[name].Version == "" }
	if firmware && slices.ContainsFunc(Tools(f), missing) {
		for _, name := range Tools(f) {
			switch o := newest(sys.Offers, name); {
			case o == nil && missing(name):
				lacking = append(lacking, name)
			case o != nil && (missing(name) || older(image[name].Version, o.Version)):
				install = append(install, *o)
			}
		}
	}
	for _, name := range f.VIBs() {
		if o := newest(sys.Offers, name); o != nil && older(image[name].Version, o.Version) {
			install = append(install, *o)
		}
	}
	return install, lacking, faults
}

// ToolsRun reports whether the running image contains the firmware tools; staged ones become active at the next boot.
func ToolsRun(f Family, sys *backends.HostSystem) bool {
	return !slices.ContainsFunc(Tools(f), func(name string) bool { return sys.VIBs.Value[name].Version == "" })
}

// Accepts refuses a component with an acceptance level below that of the host's image.
func Accepts(sys *backends.HostSystem, c backends.Component) error {
	levels := []string{"CommunitySupported", "PartnerSupported", "VMwareAccepted", "VMwareCertified"}
	host, has := slices.Index(levels, sys.Acceptance.Value), slices.Index(levels, c.Acceptance)
	if host >= 0 && has >= 0 && has < host {
		return fmt.Errorf("%s %s is %s, but the host's image accepts only %s and above", c.Name, c.Version, c.Acceptance, sys.Acceptance.Value)
	}
	return nil
}

func newest(offers []backends.Component, name string) *backends.Component {
	var best *backends.Component
	for i, o := range offers {
		if o.Name == name && (best == nil || older(best.Version, o.Version)) {
			best = &offers[i]
		}
	}
	return best
}

// older compares versions up to the ESXi build they were made for (4.21.71.101-1OEM.702.0.0...).
func older(a, b string) bool {
	short := func(v string) string { v, _, _ = strings.Cut(v, "-"); return v }
	x, err := version.NewVersion(short(a))
	y, err2 := version.NewVersion(short(b))
	return err == nil && err2 == nil && x.LessThan(y)
}
