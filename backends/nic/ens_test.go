package nic_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// Support for enhanced data path mode follows the documentation of the driver's vendor; the mode has vCenter's name.
func TestEnhancedDataPath(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name, driver string
		vfs          bool
		interrupt    *bool
		mode, says   string
		excluded     bool
	}{
		{"Intel, irdman 1.4.4.0 release notes", "icen", false, &no, "(ENS, poll mode)",
			"RDMA of icen is not available in it (Intel, irdman 1.4.4.0 release notes)", true},
		{"NVIDIA does not say", "nmlx5_core", false, &yes, "(ENS, interrupt mode)", "not documented (unverified)", false},
		{"NVIDIA, VFs with driver 4.17.15.16", "nmlx5_core", true, nil, "is not known)", "no VFs are created in it", false},
		{"Broadcom does not say", "bnxtnet", false, &yes, "(ENS, interrupt mode)",
			"whether RDMA of bnxtnet works in it is not documented (unverified)", false},
		{"Broadcom does not say, VFs", "bnxtnet", true, &yes, "(ENS, interrupt mode)", "not documented (unverified)", false},
	} {
		says, excluded := nic.ENS(c.driver, c.vfs)
		if mode := (backends.Member{ENS: true, Interrupt: c.interrupt}).DataPath(); !strings.Contains(says, c.says) || excluded != c.excluded ||
			!strings.Contains(mode, c.mode) {
			t.Errorf("%s: %s, excluded %t, in %s", c.name, says, excluded, mode)
		}
	}
}
