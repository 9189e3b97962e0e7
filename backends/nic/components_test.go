package nic_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// The versions are those of public installations: NVIDIA builds its tools for each generation of ESXi, some with the same version.
const (
	nmst65  = "4.14.0.105-1OEM.650.0.0.4598673"
	nmst703 = "4.25.0.703-1OEM.703.0.0.18644231"
	nmst802 = "4.25.0.802-1OEM.802.0.0.21974771"
)

func named(versions ...string) (out []backends.Component) {
	for _, v := range versions {
		name := "nmst"
		if strings.HasSuffix(v, "-0") { // the tools name no ESXi release
			name = "mft"
		}
		out = append(out, backends.Component{Name: name, Version: v, Path: "/vmfs/volumes/x/" + name + "-" + v + ".vib"})
	}
	return out
}

// The packages of both modules, and the component that contains them, have the names of NVIDIA's downloads for ESXi.
func TestNamesOfConnectXPackages(t *testing.T) {
	f := nic.Of("nmlx5_core")
	if got := f.VIBs(); !slices.Equal(got, []string{"nmlx5-core", "nmlx5-rdma"}) {
		t.Errorf("packages %q", got)
	}
	for _, vib := range f.VIBs() {
		if got := f.Firmware().Components[vib]; got != "Mellanox-nmlx5" {
			t.Errorf("%s is in component %q", vib, got)
		}
	}
}

// A site with several ESXi releases lists the packages of all of them; each host gets its own, both tools of one release.
func TestPackagesForTheRelease(t *testing.T) {
	all := named("4.14.0.105-0", nmst65, "4.25.0.802-0", nmst802, "4.25.0.703-0", nmst703)
	for _, c := range []struct {
		name, esxi string
		offers     []backends.Component
		install    string
		lacking    string
	}{
		{"6.7", "6.7.0", all, "4.14.0.105-0 " + nmst65, ""},
		{"7.0 U3", "7.0.3", all, "4.25.0.703-0 " + nmst703, ""},
		{"8.0 U3", "8.0.3", all, "4.25.0.802-0 " + nmst802, ""},
		{"9.0: the closest", "9.0.0", all, "4.25.0.802-0 " + nmst802, ""},
		{"8.0: an update is not another generation", "8.0.0", all[2:4], "4.25.0.802-0 " + nmst802, ""},
		{"8.0: before the update it was made for", "8.0.0", named("4.26.1.6-0", "4.26.1.6-1OEM.802.0.0.21974771", "4.24.0.72-0",
			"4.24.0.72-1OEM.800.1.0.20613240"),
			"4.24.0.72-0 4.24.0.72-1OEM.800.1.0.20613240", ""},
		{"one version for two releases", "8.0.3", named("4.34.1.10-0", "4.34.1.10-1OEM.703.0.0.18644231", "4.34.1.10-1OEM.800.1.0.20613240"),
			"4.34.1.10-0 4.34.1.10-1OEM.800.1.0.20613240", ""},
		{"only later ones", "6.7.0", all[4:], "4.25.0.703-0", "nmst (those named are for a later ESXi: " + nmst703 + ")"},
		{"unknown ESXi", "", all[:2], "4.14.0.105-0 " + nmst65, ""},
	} {
		sys := &backends.HostSystem{VIBs: backends.FactOf(map[string]backends.VIB{}), NextVIBs: backends.FactOf(map[string]backends.VIB{}),
			Offers: c.offers}
		install, lacking, _ := nic.Needed(nic.Of("nmlx5_core"), sys, c.esxi, true)
		var got []string
		for _, i := range install {
			got = append(got, i.Version)
		}
		if strings.Join(got, " ") != c.install || strings.Join(lacking, " ") != c.lacking {
			t.Errorf("%s: install %q, lacking %q", c.name, got, lacking)
		}
	}
}

// The same for bundles: the base image of the cluster determines the release.
func TestBundlesForTheRelease(t *testing.T) {
	var urls []string
	for _, v := range []string{nmst65, nmst703, nmst802} {
		urls = append(urls, "https://depot.example/Mellanox-MFT-Tools_"+v+"_1.zip", "https://depot.example/Mellanox-NATIVE-NMST_"+v+"_2.zip")
	}
	for base, want := range map[string]string{"7.0.3-0.105.20328353": nmst703, "8.0.3-0.35.24280767": nmst802, "9.0.0-0.24755229": nmst802} {
		sys := &backends.HostSystem{VIBs: backends.FactOf(map[string]backends.VIB{})}
		needs := nic.NeededInImage(nic.Of("nmlx5_core"), sys, &backends.ClusterImage{Base: base}, urls, true)
		if len(needs.Components) != 2 || needs.Components[0].Version != want || needs.Components[1].Version != want {
			t.Errorf("%s: %+v", base, needs)
		}
	}
}
