package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

const toolsRelease = "4.28.0.92-1OEM.801.0.0.21495797"

// imaged makes the cluster one that is managed with an image, with the tools in one of vCenter's depots.
func imaged(inv *backends.Inventory) *backends.ClusterImage {
	img := &backends.ClusterImage{Components: map[string]string{}, Power: "DO_NOT_CHANGE_VMS_POWER_STATE",
		Offered: map[string][]string{"Mellanox-MFT-Tools": {toolsRelease},
			"Mellanox-NATIVE-NMST": {toolsRelease, "4.20.0.1-1OEM.801.0.0.21495797"}}}
	inv.Clusters = []backends.Cluster{{Name: inv.Hosts[0].Cluster, DRS: true, DRSMode: "fullyAutomated", Image: img}}
	for i := range inv.Hosts {
		h := &inv.Hosts[i]
		h.ManagedBy, h.System.Offers, h.System.Components = []string{backends.ImageManaged}, nil,
			backends.FactOf(map[string]string{"ESXi": "8.0.3"})
	}
	return img
}

func find(p *plan.Plan, id string) *plan.Change {
	for i := range p.Changes {
		if p.Changes[i].ID() == id {
			return &p.Changes[i]
		}
	}
	return nil
}

// The image changes once for the cluster, before any host is remediated; each host is remediated within its own reboot.
func TestComponentsComeThroughTheImage(t *testing.T) {
	inv := newSRIOV(2)
	imaged(inv)
	p, err := recipe.Build(sriovAnswers(inv), inv, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cluster := inv.Hosts[0].Cluster
	for _, name := range []string{"Mellanox-MFT-Tools", "Mellanox-NATIVE-NMST"} {
		edit := find(p, "cluster/"+cluster+"/image-component/"+name)
		if edit == nil || edit.To != backends.ValueOf(toolsRelease) || edit.Irreversible != "" || len(edit.Disrupts) != 0 {
			t.Fatalf("%s: %+v", name, edit)
		}
		for _, host := range []string{"esx-01", "esx-02"} {
			c := find(p, "host/"+host+"/image-component/"+name)
			if c == nil || !slices.Contains(c.After, "cluster/"+cluster+"/image-component/Mellanox-MFT-Tools") ||
				!slices.Contains(c.After, "cluster/"+cluster+"/image-component/Mellanox-NATIVE-NMST") ||
				!slices.Equal(c.Within, []string{"host/" + host + "/host-reboot"}) {
				t.Errorf("%s on %s: %+v", name, host, c)
			}
		}
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool {
		return strings.Contains(n, "--limit") && strings.Contains(n, "cannot confine the image")
	}) {
		t.Errorf("it does not say that the image is the cluster's: %q", p.Notes)
	}
	if slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "they are reverted") }) {
		t.Errorf("an image reverts no settings: %q", p.Notes)
	}
}

// Hosts of the cluster that the answers do not list are named: the image applies to them too.
func TestImageOfHostsThatTakeNoPart(t *testing.T) {
	inv := newSRIOV(3)
	imaged(inv)
	a := sriovAnswers(inv)
	a.Hosts.Names, a.VMs = []string{"esx-01", "esx-02"}, a.VMs[:2]
	p, err := recipe.Build(a, inv, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "also for esx-03") }) {
		t.Errorf("%q", p.Notes)
	}
	if find(p, "host/esx-03/image-component/Mellanox-MFT-Tools") != nil {
		t.Error("a host that takes no part is remediated")
	}
}

// A host that was not remediated since the image got the components is remediated; the image stays.
func TestImageHasTheComponentsAlready(t *testing.T) {
	inv := newSRIOV(1)
	img := imaged(inv)
	img.Drafts, img.AddOn, img.Hardware = []backends.ImageDraft{{Owner: `CORP\maria`}}, "DEL-ESXi", []string{"OEM HSM"} // nothing is edited
	img.Components = map[string]string{"Mellanox-MFT-Tools": toolsRelease, "Mellanox-NATIVE-NMST": toolsRelease}
	p, err := recipe.Build(sriovAnswers(inv), inv, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if find(p, "cluster/"+inv.Hosts[0].Cluster+"/image-component/Mellanox-MFT-Tools") != nil ||
		find(p, "host/esx-01/image-component/Mellanox-MFT-Tools") == nil {
		t.Errorf("%+v", p.Changes)
	}
}

// The driver's offline bundle and the component in it.
var (
	component = connectX.Firmware().Components[connectX.VIBs()[0]]
	bundle    = component + "_4.30.1.2-1OEM.803.0.0.24022510_24000000.zip"
)

// A newer driver is the last change before the reboot that it requires, and is not rolled back (KB 440252, KB 320562).
func TestDriverThroughTheImage(t *testing.T) {
	inv := withTools(newSRIOV(1))
	imaged(inv)
	a := sriovAnswers(inv)
	a.SRIOV.Components = []string{"https://depot.example/" + bundle}
	p, err := recipe.Build(a, inv, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := find(p, "host/esx-01/image-component/"+component)
	if c == nil || c.Irreversible == "" || !slices.Contains(c.After, "host/esx-01/module-params/"+connectX.Driver()) {
		t.Errorf("%+v", c)
	}
}

// A driver package that the cluster cannot use from the place in the answers is named, never left out silently.
func TestPackagesThatTheClusterCannotTake(t *testing.T) {
	for location, want := range map[string]string{
		"/vmfs/volumes/shared-01/" + bundle: "managed by an image, which takes nothing from datastores",
		"https://depot.example/" + bundle:   "not managed by an image",
	} {
		inv := withTools(newSRIOV(2))
		if !strings.HasPrefix(location, "https") {
			imaged(inv)
		}
		a := sriovAnswers(inv)
		a.SRIOV.Components = []string{location}
		p, err := recipe.Build(a, inv, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if note := "esx-01, esx-02: " + want; !slices.ContainsFunc(p.Notes,
			func(n string) bool { return strings.HasPrefix(n, note) && strings.Contains(n, location) }) {
			t.Errorf("want %q in %q", note, p.Notes)
		}
	}
}

func TestWhatForbidsTheImage(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*backends.ClusterImage, *answers.Answers)
		want string
	}{
		"not read": {func(i *backends.ClusterImage, _ *answers.Answers) { i.Error = "permission denied" },
			"could not be read: permission denied"},
		"nothing holds it": {func(i *backends.ClusterImage, _ *answers.Answers) { delete(i.Offered, "Mellanox-NATIVE-NMST") },
			"neither the image nor a depot of vCenter has Mellanox-NATIVE-NMST"},
		"another's draft": {func(i *backends.ClusterImage, _ *answers.Answers) {
			i.Drafts = []backends.ImageDraft{{Owner: `CORP\maria`}}
		}, `CORP\maria edits its image; that draft stays as it is`},
		"our own draft with more": {func(i *backends.ClusterImage, _ *answers.Answers) {
			i.Drafts = []backends.ImageDraft{{Owner: `CORP\admin`, Ours: true, Other: true}}
		}, `CORP\admin edits its image; that draft stays as it is`},
		"vendor add-on": {func(i *backends.ClusterImage, _ *answers.Answers) { i.AddOn = "DEL-ESXi" }, "vendor add-on DEL-ESXi"},
		"hardware support": {func(i *backends.ClusterImage, _ *answers.Answers) { i.Hardware = []string{"OEM HSM"} },
			"hardware support manager OEM HSM"},
		"VMs powered off": {func(i *backends.ClusterImage, _ *answers.Answers) { i.Power = "POWER_OFF_VMS" },
			"remediation would change the power state of VMs (POWER_OFF_VMS)"},
		"Quick Boot": {func(i *backends.ClusterImage, _ *answers.Answers) { i.QuickBoot = true }, "Quick Boot"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newSRIOV(2)
			a := sriovAnswers(inv)
			c.edit(imaged(inv), a)
			_, err := recipe.Build(a, inv, plan.Options{})
			if got := refusedText(err); strings.Count(got, c.want) != 1 { // once for the cluster, not for each host
				t.Errorf("want %q, got %s", c.want, got)
			}
		})
	}
}
