package guest_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/guest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestTexts(t *testing.T) {
	for name, got := range map[string]string{
		guest.UnitName("vmw_pvrdma"): guest.UnitText("vmw_pvrdma"),
		"modules-load.conf":          guest.ModulesLoadText([]string{"ib_umad", "rdma_cm", "rdma_ucm"}),
		"modprobe.conf":              guest.OptionsText(map[string]string{"mlx5_core": "prof_sel=2", "ib_umad": "x=1"}),
		"limits.conf":                guest.LimitsText("unlimited"),
	} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
