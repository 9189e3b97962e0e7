package recipe_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// The vGPU Manager is planned on hosts that lack it or have an older one, from a file that the host can read and that contains it;
// for a cluster that is managed with an image, from an offline bundle by the name of its component.
func TestVGPUManagerOfTheAnswers(t *testing.T) {
	const (
		vib    = "NVD-AIE_ESXi_8.0.0_Driver"
		file   = "/vmfs/volumes/ds/NVD-AIE-800_570.133.10-1OEM.800.1.0.20613240_24624534.zip"
		url    = "https://depot/NVD-AIE-800_570.133.10-1OEM.800.1.0.20613240_24624534.zip"
		newest = "570.133.10-1OEM.800.1.0.20613240"
	)
	for name, c := range map[string]struct {
		manager string
		has     string // version on the host
		offer   backends.Component
		level   string // acceptance level of the host
		image   *backends.ClusterImage
		refused string
		change  string // id of the installation, "" none
	}{
		"a host without it": {manager: file, offer: backends.Component{Name: vib, Version: newest}, change: "host/esx-01/component/" + vib},
		"a host with an older": {manager: file, has: "550.90.05-1OEM.800.1.0.20613240", offer: backends.Component{Name: vib, Version: newest},
			change: "host/esx-01/component/" + vib},
		"a host with the same": {manager: file, has: newest, offer: backends.Component{Name: vib, Version: newest}},
		"a host with a newer":  {manager: file, has: "580.65.05-1OEM.800.1.0.20613240", offer: backends.Component{Name: vib, Version: newest}},
		"another package": {manager: file, offer: backends.Component{Name: "mft", Version: "4.28"},
			refused: "holds no NVIDIA vGPU Manager (NVD-* or NVIDIA-*), but mft"},
		"a file that is missing": {manager: file, offer: backends.Component{Error: "No such file"}, refused: "No such file"},
		"a level below the host": {manager: file, offer: backends.Component{Name: vib, Version: newest, Acceptance: "PartnerSupported"},
			level: "VMwareAccepted", refused: "is PartnerSupported"},
		"a URL without an image": {manager: url, refused: "no image manages it"},
		"a path with an image": {manager: file, image: &backends.ClusterImage{},
			refused: "is not an offline bundle with the NVIDIA vGPU Manager"},
		"an image, to be fetched": {manager: url, image: &backends.ClusterImage{Power: "DO_NOT_CHANGE_VMS_POWER_STATE"},
			change: "host/esx-01/image-component/NVD-AIE-800"},
		"an image with an add-on": {manager: url, image: &backends.ClusterImage{AddOn: "DEL-ESXi", Power: "DO_NOT_CHANGE_VMS_POWER_STATE"},
			refused: "the vendor add-on DEL-ESXi"},
		"an image that is unread": {manager: url, image: &backends.ClusterImage{Error: "permission denied"},
			refused: "could not be read: permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newGPUs(1)
			h := &inv.Hosts[0]
			vibs := map[string]backends.VIB{}
			if c.has != "" {
				vibs[vib], h.Profiles, h.GraphicsType = backends.VIB{Version: c.has}, []string{"grid_a100d-80c"}, backends.SharedDirect
				for i := range h.GPUs {
					h.GPUs[i].Graphics = backends.SharedDirect
				}
			}
			c.offer.Path = file
			h.System = &backends.HostSystem{VIBs: backends.FactOf(vibs), Acceptance: backends.FactOf(c.level), Offers: []backends.Component{c.offer}}
			if c.image != nil {
				h.ManagedBy, h.System.Components = []string{backends.ImageManaged}, backends.FactOf(map[string]string{})
				inv.Clusters = []backends.Cluster{{Name: h.Cluster, Image: c.image}}
			}
			a := gpuAnswers(inv)
			a.GPUDirect.GPUs, a.GPUDirect.Manager = map[string]answers.VMGPUs{"vm-01": {Profile: "grid_a100d-80c"}}, c.manager
			p, err := recipe.Build(a, inv, plan.Options{})
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("%v does not say %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			graphics, reboots := p.Change("host/esx-01/graphics"), 0
			for _, b := range p.Brackets {
				if b.Kind == backends.BracketReboot {
					reboots++
				}
			}
			switch install := p.Change(c.change); {
			case c.change == "" && graphics != nil:
				t.Errorf("planned: %+v", graphics)
			case c.change == "":
			case install == nil || install.To != backends.ValueOf(newest) || graphics == nil || graphics.From != backends.Unknown(c.change) ||
				reboots != 2:
				t.Errorf("%+v\n%+v\n%d reboots", install, graphics, reboots)
			}
		})
	}
}
