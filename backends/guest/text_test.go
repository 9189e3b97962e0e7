package guest_test

import (
	"path/filepath"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

func TestTexts(t *testing.T) {
	for name, got := range map[string]string{
		guest.UnitName("vmw_pvrdma"): guest.UnitText("vmw_pvrdma"),
		"modules-load.conf":          guest.ModulesLoadText([]string{"ib_umad", "rdma_cm", "rdma_ucm"}),
		"modprobe.conf":              guest.OptionsText(map[string]string{"mlx5_core": "prof_sel=2", "ib_umad": "x=1"}),
		"limits.conf":                guest.LimitsText("unlimited"),
	} {
		testclass.Golden(t, filepath.Join("testdata", name), got)
	}
}
