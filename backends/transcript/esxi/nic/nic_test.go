package nic_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/esxi/nic"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

func TestGolden(t *testing.T) { scantest.Golden(t, "testdata", nic.Tools()) }

func TestForeign(t *testing.T) { scantest.Score(t, nic.Tools()) }

func TestMutations(t *testing.T) { scantest.Hold(t, "testdata", nic.Tools(), nil) }

func TestNoise(t *testing.T) { scantest.Noise(t, "testdata", nic.Tools()) }
