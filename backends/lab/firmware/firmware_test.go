package firmware_test

import (
	"errors"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
)

func TestParseAndText(t *testing.T) {
	cx5 := firmware.ConnectX5("0000:3b:00.0", "b8:59:9f:00:00:02")
	for _, row := range []struct{ name, given, want string }{
		{"SRIOV_EN", "1", "True(1)"},
		{"SRIOV_EN", "true", "True(1)"},
		{"SRIOV_EN", "2", ""},
		{"NUM_OF_VFS", "127", "127"},
		{"NUM_OF_VFS", "0x10", "16"},
		{"NUM_OF_VFS", "128", ""}, // MFT documentation: 127 is the upper bound
		{"NUM_OF_VFS", "-1", ""},
		{"NUM_OF_VFS", "many", ""},
		{"LINK_TYPE_P1", "eth", "ETH(2)"},
		{"LINK_TYPE_P1", "2", "ETH(2)"},
		{"LINK_TYPE_P2", "0", ""},
	} {
		s := cx5.Setting(row.name)
		v, err := s.Parse(row.given)
		switch {
		case row.want == "" && !errors.Is(err, firmware.ErrRange):
			t.Errorf("%s=%s gave %d, %v", row.name, row.given, v, err)
		case row.want != "" && (err != nil || s.Text(v) != row.want):
			t.Errorf("%s=%s gave %s, %v; want %s", row.name, row.given, s.Text(v), err, row.want)
		}
	}
}

func TestCard(t *testing.T) {
	c := firmware.ConnectX5("0000:3b:00.0", "b8:59:9f:00:00:02")
	if c.VFs() != 0 {
		t.Error("a card out of the factory has VFs: SRIOV_EN is off (MFT documentation)")
	}
	c.Setting("SRIOV_EN").Next, c.Setting("NUM_OF_VFS").Next = 1, 16
	if c.VFs() != 0 {
		t.Error("firmware settings act before the boot")
	}
	c.Boot(false)
	if c.VFs() != 16 || !c.Has("0000:3b:00.1") || c.Has("0000:3b:00.2") {
		t.Errorf("%d VFs, functions %s %s", c.VFs(), c.Function(0), c.Function(1))
	}
	if firmware.ConnectX4Lx("0000:1a:00.0", "").Setting("LINK_TYPE_P1") != nil {
		t.Error("an Ethernet-only card has LINK_TYPE")
	}
}
