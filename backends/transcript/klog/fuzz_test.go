package klog_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/klog"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan/scantest"
)

func fuzz(f *testing.F, tool string) {
	scantest.Fuzz(f, "testdata", tool, klog.Tools()[tool])
}

func FuzzDmesg(f *testing.F)        { fuzz(f, "dmesg") }
func FuzzVSphereError(f *testing.F) { fuzz(f, "vsphere_error") }
