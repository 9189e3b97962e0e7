package klog_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/klog"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

func TestGolden(t *testing.T) { scantest.Golden(t, "testdata", klog.Tools()) }

func TestForeign(t *testing.T) { scantest.Score(t, klog.Tools()) }

func TestMutations(t *testing.T) {
	scantest.Hold(t, "testdata", klog.Tools(), map[string][]string{
		"blank lines between":    {"dmesg/mig-vf-unknown", "dmesg/wrapped"},
		"terminal of 72 columns": {"dmesg/kmsg", "dmesg/one-line"}, // three lines of one message
	})
}

func TestNoise(t *testing.T) { scantest.Noise(t, "testdata", klog.Tools()) }
