package nic

import (
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

var bundleName = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9-]*)_([0-9][A-Za-z0-9.-]*)_([0-9][A-Za-z0-9.-]*)\.zip$`)

// IsURL distinguishes URLs, from which vCenter fetches an offline bundle, from paths on datastores.
func IsURL(location string) bool {
	return strings.HasPrefix(location, "https://") || strings.HasPrefix(location, "http://")
}

// IsFile distinguishes offline bundles on this computer, which are served to vCenter while it imports them. The path is absolute, so
// that a run can be resumed from another directory.
func IsFile(location string) bool {
	return filepath.IsAbs(location) && !strings.HasPrefix(location, "/vmfs/volumes/")
}

// ForImage reports whether a location is of an offline bundle for an image, and not a path on a datastore.
func ForImage(location string) bool { return IsURL(location) || IsFile(location) }

// Bundle derives the component in an offline bundle from the bundle's file name, COMPONENT_VERSION_BUILD.zip, as VMware's and
// NVIDIA's downloads are named (Mellanox-NATIVE-NMST_4.18.1.14-1OEM.700.1.0.15843807_19206114.zip). ok is false for other names.
func Bundle(location string) (c backends.Component, ok bool) {
	name := filepath.Base(location)
	if !IsFile(location) {
		u, err := url.Parse(location)
		if !IsURL(location) || err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return c, false
		}
		name = path.Base(u.Path)
	}
	m := bundleName.FindStringSubmatch(name)
	if m == nil {
		return c, false
	}
	return backends.Component{Path: location, Name: m[1], Version: m[2]}, true
}

// ImageNeeds are the components that a host needs in the image of its cluster.
type ImageNeeds struct {
	Components []backends.Component // Name is the component's; Path is "" if vCenter already has it
	Driver     []string             // names of components that replace a driver
	Lacking    []string             // missing components that neither a depot nor the answers provide
}

// NeededInImage is Needed for a host whose cluster is managed by an image. A component that is already in the image is needed in
// that version, by remediating the host. Others are taken in the newest version from the bundles that the operator named, else
// from vCenter's depots; drivers only from the bundles.
func NeededInImage(f Family, sys *backends.HostSystem, img *backends.ClusterImage, locations []string, firmware bool) ImageNeeds {
	var out ImageNeeds
	rules := FirmwareOf(f)
	if rules == nil {
		return out
	}
	var named, offered []backends.Component
	for _, l := range locations {
		if c, ok := Bundle(l); ok {
			named = append(named, c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(img.Offered)) {
		for _, v := range img.Offered[name] {
			offered = append(offered, backends.Component{Name: name, Version: v})
		}
	}
	esxi := short(img.Base)
	if firmware && !ToolsRun(f, sys) {
		for _, vib := range rules.Tools {
			name := rules.Components[vib]
			all := append(slices.Clone(named), offered...)
			c := best(all, name, esxi)
			if v := img.Components[name]; v != "" {
				c = &backends.Component{Name: name, Version: v}
			}
			switch {
			case c == nil && sys.VIBs.Value[vib].Version == "":
				out.Lacking = append(out.Lacking, name+forLater(all, name))
			case c != nil:
				out.Components = append(out.Components, *c)
			}
		}
	}
	for _, vib := range f.VIBs() {
		name := rules.Components[vib]
		c := best(named, name, esxi)
		if c != nil && Older(sys.VIBs.Value[vib].Version, c.Version) && !slices.Contains(out.Driver, name) {
			out.Components, out.Driver = append(out.Components, *c), append(out.Driver, name)
		}
	}
	for i, c := range out.Components { // what a depot already has need not be fetched
		if slices.Contains(img.Offered[c.Name], c.Version) {
			out.Components[i].Path = ""
		}
	}
	return out
}
