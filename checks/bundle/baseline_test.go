package bundle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

var savedAt = time.Date(2026, 4, 5, 6, 7, 8, 0, time.FixedZone("CEST", 7200))

func params(pfctx string) map[string]backends.Fact[backends.Module] {
	return map[string]backends.Fact[backends.Module]{"nic_driver": backends.FactOf(backends.Module{Known: []string{"pfctx"},
		Params: map[string]string{"pfctx": pfctx}})}
}

func baselineFacts() *checks.Facts {
	return &checks.Facts{
		Answers: answers.Default(answers.PVRDMA),
		Inventory: &backends.Inventory{
			VCenter: backends.VCenter{URL: "https://vc.lyon.example/sdk", InstanceUUID: "4711-a", Clock: savedAt},
			Hosts: []backends.Host{
				{Name: "lyon-1", MemoryUsedMB: 4096, RecentTasks: []string{"a task"}, PCI: []backends.PCIDevice{{Address: "0000:3b:00.0"}},
					System: &backends.HostSystem{Acceptance: backends.FactOf("PartnerSupported"), Modules: params("0x08"),
						Pause: backends.FactOf(map[string]backends.PauseSpec{"vmnic2": {}})}},
				{Name: "lyon-2"}, {Name: "lyon-3"},
			},
			Guests: []backends.Guest{{VM: "node-1", Kernel: "5.15.0", KernelLog: []string{"mlx5_core: something"}}},
			Gaps:   []backends.Gap{{What: "clock"}}, APICalls: 9,
		},
	}
}

func TestBaselineIsKept(t *testing.T) {
	f := baselineFacts()
	before := baselineFacts()
	path := bundle.BaselinePath(filepath.Join(t.TempDir(), "state"), f.Inventory.VCenter.InstanceUUID)
	testclass.OK(t, bundle.SaveBaseline(path, bundle.BaselineOf(f, savedAt, "1.2")))
	got, err := bundle.LoadBaseline(path, "4711-a")
	testclass.OK(t, err)
	want := &bundle.Baseline{Format: 1, Made: savedAt.UTC(), Tool: "1.2", Mode: "pvrdma", Inventory: &backends.Inventory{
		VCenter: backends.VCenter{URL: "https://vc.lyon.example/sdk", InstanceUUID: "4711-a"},
		Hosts: []backends.Host{
			{Name: "lyon-1", System: &backends.HostSystem{Acceptance: backends.FactOf("PartnerSupported"), Modules: params("0x08")}},
			{Name: "lyon-2"}, {Name: "lyon-3"},
		},
		Guests: []backends.Guest{{VM: "node-1", Kernel: "5.15.0"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before.Inventory, f.Inventory); diff != "" {
		t.Errorf("keeping changed what was checked: %s", diff)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

func TestServerTextIsNeverUsedAsAPath(t *testing.T) {
	for _, id := range []string{"../../etc/passwd", "a/b", "", "a\x00b", strings.Repeat("a", 200), ".."} {
		if got := bundle.BaselinePath("/state", id); got != "/state/baselines/vcenter.json" {
			t.Errorf("%q gives %s", id, got)
		}
	}
}

func TestAnOldFileIsReplacedCompletelyOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.json")
	if b, err := bundle.LoadBaseline(path, "4711-a"); b != nil || err != nil {
		t.Errorf("no file: %v %v", b, err)
	}
	for range 2 {
		testclass.OK(t, bundle.SaveBaseline(path, bundle.BaselineOf(baselineFacts(), savedAt, "")))
	}
	if err := bundle.SaveBaseline(filepath.Join(path, "below", "a", "file.json"),
		bundle.BaselineOf(baselineFacts(), savedAt, "")); err == nil {
		t.Error("a file served as a directory")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
}

func FuzzLoadBaseline(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", `{"format":1,"inventory":{}}`,
		`{"format":1,"inventory":{"vcenter":{"instance_uuid":"4711-a"},"hosts":[{"name":"a","system":{"modules":{"m":{}}}}]}}`,
		`{"format":2,"inventory":null}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "b.json")
		testclass.Write(t, path, text)
		b, err := bundle.LoadBaseline(path, "4711-a")
		if err != nil {
			return
		}
		if b == nil || b.Inventory == nil || b.Inventory.VCenter.InstanceUUID != "4711-a" {
			t.Fatalf("%+v", b)
		}
		now := baselineFacts()
		now.Baseline = b.Inventory // no content of a file breaks a check
		for _, r := range catalogue.Run(t.Context(), now, checks.Selection{}) {
			if strings.Contains(r.Evidence, "the check itself failed") {
				t.Fatalf("%s: %s", r.ID, r.Evidence)
			}
		}
	})
}
