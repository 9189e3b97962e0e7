package nic

import (
	"cmp"
	"fmt"
	"regexp"
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

// Needed returns the VIBs to install on a host with a version of ESXi from the files that the operator named: the firmware tools if
// firmware has to be set and one of them is missing (the other too if it is older, because they must be of one release), and the
// driver if it is older than the named one. lacking are missing tools that no file contains for this ESXi; faults are files that
// the host cannot read.
func Needed(f Family, sys *backends.HostSystem, esxi string, firmware bool) (install []backends.Component, lacking, faults []string) {
	image := sys.Image().Value
	for _, o := range sys.Offers {
		if o.Error != "" {
			faults = append(faults, o.Path+": "+o.Error)
		}
	}
	missing := func(name string) bool { return image[name].Version == "" }
	if firmware && slices.ContainsFunc(Tools(f), missing) {
		module := FirmwareOf(f).Module
		for _, name := range Tools(f) {
			o := best(sys.Offers, name, esxi)
			if m := best(sys.Offers, module, esxi); m != nil { // of one release with it, if there is one
				same := func(o backends.Component) bool { return short(o.Version) != short(m.Version) }
				o = cmp.Or(best(slices.DeleteFunc(slices.Clone(sys.Offers), same), name, esxi), o)
			}
			switch {
			case o == nil && missing(name):
				lacking = append(lacking, name+forLater(sys.Offers, name))
			case o != nil && (missing(name) || Older(image[name].Version, o.Version)):
				install = append(install, *o)
			}
		}
	}
	for _, name := range f.VIBs() {
		if o := best(sys.Offers, name, esxi); o != nil && Older(image[name].Version, o.Version) {
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

// best returns the component that suits a version of ESXi: of those made for its own generation or an earlier one, the one made for
// the closest release, then the newest. A package for a later generation is not installed there ("requires esx-version >= 7.0.0
// but the requirement cannot be satisfied within the ImageProfile": public logs of VxRail, ESXi 6.7 and a package for 7.0).
func best(offers []backends.Component, name, esxi string) (b *backends.Component) {
	for i, o := range offers {
		if o.Name != name || tooNew(o.Version, esxi) {
			continue
		}
		if b == nil || better(o.Version, b.Version, esxi) {
			b = &offers[i]
		}
	}
	return b
}

// madeFor returns the release of ESXi that a package was built for: 7.0.3 of 4.25.0.703-1OEM.703.0.0.18644231, as NVIDIA, HPE and
// VMware write it. It is nil if the version does not contain it.
func madeFor(component string) []int {
	m := buildTag.FindStringSubmatch(component)
	if m == nil {
		return nil
	}
	return numbers(strings.Join(m[1:], "."))
}

var buildTag = regexp.MustCompile(`-[0-9]*[A-Za-z]+\.([0-9])([0-9])([0-9])\.`)

// tooNew reports whether a package was built for a later generation of ESXi (8.0 is later than 7.0).
func tooNew(component, esxi string) bool {
	tag, host := madeFor(component), numbers(esxi)
	return tag != nil && len(host) > 1 && slices.Compare(tag[:2], host[:2]) > 0
}

// better reports whether version a of a package suits ESXi better than version b.
func better(a, b, esxi string) bool {
	x, y, host := madeFor(a), madeFor(b), numbers(esxi)
	if x != nil && y != nil && host != nil && !slices.Equal(x, y) {
		if fits := slices.Compare(x, host) <= 0; fits != (slices.Compare(y, host) <= 0) {
			return fits
		}
		if !slices.Equal(x[:2], y[:2]) || short(a) == short(b) {
			return slices.Compare(x, y) > 0
		}
	}
	return Older(b, a)
}

// forLater names the packages of a name that were built for other releases of ESXi, "" if there are none.
func forLater(offers []backends.Component, name string) string {
	var versions []string
	for _, o := range offers {
		if o.Name == name {
			versions = append(versions, o.Version)
		}
	}
	if len(versions) == 0 {
		return ""
	}
	return " (those named are for a later ESXi: " + strings.Join(versions, ", ") + ")"
}

// short is a version without the ESXi build that it was made for (4.21.71.101-1OEM.702.0.0...).
func short(version string) string {
	version, _, _ = strings.Cut(version, "-")
	return version
}

// Older compares versions without that build.
func Older(a, b string) bool {
	x, err := version.NewVersion(short(a))
	y, err2 := version.NewVersion(short(b))
	return err == nil && err2 == nil && x.LessThan(y)
}
