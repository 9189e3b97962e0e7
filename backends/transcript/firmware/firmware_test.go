package firmware_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/firmware"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

func TestGolden(t *testing.T) { scantest.Golden(t, "testdata", firmware.Tools()) }

func TestForeign(t *testing.T) { scantest.Score(t, firmware.Tools()) }

func TestMutations(t *testing.T) { scantest.Hold(t, "testdata", firmware.Tools(), nil) }

func TestNoise(t *testing.T) { scantest.Noise(t, "testdata", firmware.Tools()) }
