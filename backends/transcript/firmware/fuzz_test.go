package firmware_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/firmware"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

func fuzz(f *testing.F, tool string) {
	scantest.Fuzz(f, "testdata", tool, firmware.Tools()[tool])
}

func FuzzFlint(f *testing.F)        { fuzz(f, "flint") }
func FuzzMLXConfig(f *testing.F)    { fuzz(f, "mlxconfig") }
func FuzzMLXFWManager(f *testing.F) { fuzz(f, "mlxfwmanager") }
func FuzzMLXFWReset(f *testing.F)   { fuzz(f, "mlxfwreset") }
func FuzzMST(f *testing.F)          { fuzz(f, "mst") }
