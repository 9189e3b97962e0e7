package assets_test

import (
	"io/fs"
	"math/bits"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/assets"
)

func TestEveryAssetIsThere(t *testing.T) {
	for _, name := range []string{"packages.yaml", "gpus.yaml", "examples/answers-pvrdma.yaml"} {
		if b, err := fs.ReadFile(assets.FS(), name); err != nil || len(b) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	if _, err := assets.Example("no-such-mode"); err == nil {
		t.Error("an example for a mode that does not exist")
	}
}

// The pictures are for the README: nobody downloads them with the program.
func TestPicturesAreNotBuiltIn(t *testing.T) {
	err := fs.WalkDir(assets.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "pictures" {
			t.Errorf("%s is built in", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pictures/plan.png", "pictures/report.png", "pictures/wizard.svg"} {
		st, err := os.Stat(name)
		if err != nil || st.Size() > 300<<10 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every release knows every topic, and topics are spelled as in the first row.
func TestReleaseTableIsSound(t *testing.T) {
	rows, err := assets.Releases()
	if err != nil || len(rows) < 8 {
		t.Fatalf("%d releases, %v", len(rows), err)
	}
	for i, r := range rows {
		if r.Name == "" || r.Hardware < 13 || r.Adapters < 1 || len(r.Facts) != len(rows[0].Facts) {
			t.Errorf("%s: %+v", r.Name, r)
		}
		if i > 0 && (r.Hardware < rows[i-1].Hardware || r.Adapters < rows[i-1].Adapters) {
			t.Errorf("%s has less than %s", r.Name, rows[i-1].Name)
		}
		for _, f := range r.Facts {
			if f.Topic == "" || f.Is == "" {
				t.Errorf("%s: %+v", r.Name, f)
			}
		}
	}
	var raw []assets.Release
	b, err := fs.ReadFile(assets.FS(), "releases.yaml")
	if err != nil || yaml.Unmarshal(b, &raw) != nil {
		t.Fatal(err)
	}
	for _, r := range raw {
		for _, f := range r.Facts {
			if !slices.ContainsFunc(rows[0].Facts, func(g assets.ReleaseFact) bool { return g.Topic == f.Topic }) {
				t.Errorf("%s: no topic %q in the first row", r.Name, f.Topic)
			}
		}
	}
	for _, tt := range []struct {
		version string
		build   int
		want    string
	}{{"6.7.0", 8169922, "6.7"}, {"6.7.0", 14320388, "6.7 U2"}, {"7.0.3", 0, "7.0 U3"}, {"8.0.1", 22088125, "8.0"}, {"9.0.0.0", 0, "9.0"},
		{"9.0.1", 0, "9.0"}, {"9.1.0", 0, "9.1"}, {"10.0.0", 0, "9.1"}, {"5.5.0", 0, ""}, {"?", 0, ""}} {
		if r, _ := assets.ReleaseOf(tt.version, tt.build); r.Name != tt.want {
			t.Errorf("%s build %d is %q, want %q", tt.version, tt.build, r.Name, tt.want)
		}
	}
}

func TestGPUTableIsSound(t *testing.T) {
	gs, err := assets.GPUs()
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{4}$`)
	names, ids := map[string]bool{}, map[string]bool{}
	for _, g := range gs {
		// its GPUs have the id of the A2
		if names[g.Name] || g.Name == "" || g.Model == "" || g.Source == "" || len(g.IDs) == 0 && g.Name != "a16" {
			t.Errorf("%s: twice, or with empty fields", g.Name)
		}
		names[g.Name] = true
		for _, i := range g.IDs {
			if !id.MatchString(i) || ids[i] {
				t.Errorf("%s: id %q", g.Name, i)
			}
			ids[i] = true
		}
		if g.BAR1 != 0 && (bits.OnesCount(uint(g.BAR1)) != 1 || g.BAR1 < g.Framebuffer || g.BAR1 >= 2*g.Framebuffer) {
			t.Errorf("%s: BAR1 %d is not the smallest power of two that holds %d", g.Name, g.BAR1, g.Framebuffer)
		}
	}
	for _, must := range []string{"k80", "p40", "p100-16g", "v100-16g", "v100-32g", "t4", "a10", "a30", "a40", "l4", "l40s", "a100-40g",
		"a100-80g", "h100-80g", "h100-94g", "h200", "b200",
		"v100s-32g", "a2", "a16", "a800-40g", "a800-80g", "h800-80g", "h20", "rtx-6000-ada", "rtx-pro-6000", "b300"} {
		if !names[must] {
			t.Errorf("the command line promises %s", must)
		}
	}
	if g, ok := assets.GPUByID("10de", "20b5"); !ok || g.Name != "a100-80g" {
		t.Errorf("10de:20b5 is %+v", g)
	}
	if _, ok := assets.GPUByID("10de", "ffff"); ok {
		t.Error("an unknown id is found")
	}
}

func TestDistroFor(t *testing.T) {
	for name, c := range map[string]struct {
		id, version string
		like        []string
		ok          bool
		first       string
		reload      bool
	}{
		"PVRDMA and vSphere Bitfusion: Ubuntu 20.04": {"ubuntu", "20.04", []string{"debian"}, true, "rdma-core", true},
		"PVRDMA and vSphere Bitfusion: CentOS 8":     {"centos", "8", []string{"rhel", "fedora"}, true, "rdma-core", false},
		"RHEL 9":                                     {"rhel", "9.4", []string{"fedora"}, true, "rdma-core", false},
		"Debian 12":                                  {"debian", "12", nil, true, "rdma-core", true},
		"Linux Mint is like Ubuntu":                  {"linuxmint", "21", []string{"ubuntu", "debian"}, true, "rdma-core", true},
		"EuroLinux is like RHEL":                     {"eurolinux", "9.2", []string{"rhel"}, true, "rdma-core", false},
		"Ubuntu 16.04 is older than rdma-core":       {"ubuntu", "16.04", nil, false, "", true},
		"Alpine":                                     {"alpine", "3.19", nil, false, "", false},
		"nothing known":                              {"", "", nil, false, "", false},
	} {
		d, ok := assets.DistroFor(c.id, c.version, c.like)
		if ok != c.ok || ok && (d.Packages[0] != c.first || d.Reload != c.reload || !slices.Contains(d.Packages, "perftest")) {
			t.Errorf("%s: %v %+v", name, ok, d)
		}
	}
	all, err := assets.Managed()
	if err != nil || slices.Contains(all, "libmlx4-1") || slices.Contains(all, "ibutils") || !slices.Contains(all, "libibverbs-utils") {
		t.Errorf("virtual or removed packages are asked for, or EL's are not: %v %v", all, err)
	}
}

func TestDriverRemedy(t *testing.T) {
	const another = "(Ubuntu 20.04 or later, RHEL 8 or 9 and rebuilds), or mode sriov"
	for name, c := range map[string]struct {
		driver, kernel, id, version string
		like                        []string
		want                        string
	}{
		"Ubuntu 24.04": {"vmw_pvrdma", "6.8.0-31-generic", "ubuntu", "24.04", []string{"debian"},
			"install linux-modules-extra-6.8.0-31-generic, or"},
		"Linux Mint": {"vmw_pvrdma", "5.15.0-25-generic", "linuxmint", "21", []string{"ubuntu", "debian"},
			"install linux-modules-extra-5.15.0-25-generic"},
		"Debian 12": {"vmw_pvrdma", "6.1.0-26-amd64", "debian", "12", nil,
			"no kernel package of Debian 11 to 13 has it: use a guest whose kernel has it " + another},
		"Debian 12, sriov": {"mlx5_ib", "6.1.0-26-amd64", "debian", "12", nil, "install linux-image-amd64"},
		"Rocky 9.2":        {"vmw_pvrdma", "5.14.0-284.el9", "rocky", "9.2", []string{"rhel"}, "install kernel-modules-5.14.0-284.el9"},
		"RHEL 10.0": {"vmw_pvrdma", "6.12.0-55.el10", "rhel", "10.0", []string{"fedora"},
			"no kernel package of RHEL 10 and rebuilds has it"},
		"RHEL 10.0, sriov":  {"mlx5_ib", "6.12.0-55.el10", "rhel", "10.0", nil, "install kernel-modules-6.12.0-55.el10"},
		"a rebuild like 10": {"vmw_pvrdma", "6.12.0", "eurolinux", "10.1", []string{"rhel"}, "no kernel package of RHEL 10"},
		"older than known": {"vmw_pvrdma", "3.10.0", "centos", "7", []string{"rhel", "fedora"},
			"use a kernel for which modinfo finds vmw_pvrdma, or a guest"},
		"Alpine": {"mlx5_ib", "6.6", "alpine", "3.19", nil, "use a kernel for which modinfo finds mlx5_ib, or a guest"},
	} {
		got := assets.DriverRemedy(c.driver, c.kernel, c.id, c.version, c.like)
		if !strings.HasPrefix(got, c.want) || strings.Contains(got, "sriov") && c.driver != "vmw_pvrdma" {
			t.Errorf("%s: %s", name, got)
		}
	}
	rows, err := assets.Kernels()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range rows {
		for _, driver := range []string{"vmw_pvrdma", "mlx5_ib"} {
			if _, known := k.Packages[driver]; !known || k.Name == "" || k.From == "" || k.Source == "" {
				t.Errorf("%+v", k)
			}
		}
	}
}
