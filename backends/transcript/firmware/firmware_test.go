package firmware_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/firmware"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

func TestGolden(t *testing.T) { scantest.Golden(t, "testdata", firmware.Tools()) }

func TestForeign(t *testing.T) { scantest.Score(t, firmware.Tools()) }

func TestMutations(t *testing.T) {
	oneLine := []string{"mlxconfig/set-glued", "mlxfwmanager/one-line", "mlxfwreset/one-line", "mlxfwreset/query", "mst/status-one-line"}
	scantest.Hold(t, "testdata", firmware.Tools(), map[string][]string{
		"terminal of 72 columns": oneLine, "terminal of 80 columns": oneLine, "terminal of 100 columns": oneLine,
		"one long line": {"mlxconfig/grep", "mlxconfig/query-e", "mlxfwreset/failed", "mlxfwreset/query", "mst/status-v",
			"mst/status-vmklinux"},
		"blank lines between": {"mlxconfig/query-e", "mlxconfig/set-wrapped", "mlxfwmanager/two"},
	})
}

func TestNoise(t *testing.T) { scantest.Noise(t, "testdata", firmware.Tools()) }
