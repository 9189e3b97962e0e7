package nic

import (
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

var bundleName = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9-]*)_([0-9][A-Za-z0-9.-]*)_([0-9][A-Za-z0-9.-]*)\.zip$`)

// IsURL tells locations from which vCenter fetches an offline bundle from paths on datastores.
func IsURL(location string) bool {
	return strings.HasPrefix(location, "https://") || strings.HasPrefix(location, "http://")
}

// Bundle reads the component that an offline bundle at a URL holds from its name, COMPONENT_VERSION_BUILD.zip, as
// the bundles of VMware's and NVIDIA's downloads are named (Mellanox-NATIVE-NMST_4.18.1.14-1OEM.700.1.0.15843807_19206114.zip). ok is
// false for other names.
func Bundle(location string) (c backends.Component, ok bool) {
	u, err := url.Parse(location)
	if !IsURL(location) || err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return c, false
	}
	m := bundleName.FindStringSubmatch(path.Base(u.Path))
	if m == nil {
		return c, false
	}
	return backends.Component{Path: location, Name: m[1], Version: m[2]}, true
}

// ImageNeeds are the components that the image of a cluster has to have for a host.
type ImageNeeds struct {
	Components []backends.Component // Name is the component's; Path "" where vCenter has it already
	Driver     []string             // names of those that replace a driver
	Lacking    []string             // components that are missing and that neither a depot nor an answer holds
}

// NeededInImage is Needed for a host whose cluster an image manages. A component that the image has is needed in that version: the
// host is to be remediated. Others come newest from the bundles that the operator named, else from vCenter's depots; drivers
// from the former alone.
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
	if firmware && !ToolsRun(f, sys) {
		for _, vib := range rules.Tools {
			name := rules.Components[vib]
			c := newest(append(slices.Clone(named), offered...), name)
			if v := img.Components[name]; v != "" {
				c = &backends.Component{Name: name, Version: v}
			}
			switch {
			case c == nil && sys.VIBs.Value[vib].Version == "":
				out.Lacking = append(out.Lacking, name)
			case c != nil:
				out.Components = append(out.Components, *c)
			}
		}
	}
	for _, vib := range f.VIBs() {
		name := rules.Components[vib]
		c := newest(named, name)
		if c != nil && older(sys.VIBs.Value[vib].Version, c.Version) && !slices.Contains(out.Driver, name) {
			out.Components, out.Driver = append(out.Components, *c), append(out.Driver, name)
		}
	}
	for i, c := range out.Components { // what a depot has already need not be fetched
		if slices.Contains(img.Offered[c.Name], c.Version) {
			out.Components[i].Path = ""
		}
	}
	return out
}
