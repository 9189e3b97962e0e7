package plain_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A runbook says for each setting of a host what one would type.
func TestMarkdownByHandOnHosts(t *testing.T) {
	h := backends.HostRef("esx-01")
	set := func(kind backends.Kind, name string, to any) plan.Change {
		return plan.Change{Setting: backends.Setting{Target: h, Kind: kind, Name: name}, To: backends.ValueOf(to), Why: "from /vmfs/volumes/ds/mft 1.vib, as named"}
	}
	late := set(backends.KindFirmware, "0000:3b:00.0", nil)
	late.To, late.Late = backends.Unknown("it is read"), backends.ValueOf(map[string]string{"SRIOV_EN": "1", "NUM_OF_VFS": "9"})
	for want, c := range map[string]plan.Change{
		"Edit Power Policy: High Performance":                                                 set(backends.KindPower, "", "static"),
		"`esxcli software vib install -v '/vmfs/volumes/ds/mft 1.vib'`":                       set(backends.KindComponent, "mft", "4.28"),
		"`esxcli system module parameters set -m nmlx5_core -p 'max_vfs=0,0,8,0 pfctx=0x08'`": set(backends.KindModuleParams, "nmlx5_core", map[string]string{"pfctx": "0x08", "max_vfs": "0,0,8,0"}),
		"`/opt/mellanox/bin/mlxconfig -d 3b:00.0 -y set NUM_OF_VFS=9 SRIOV_EN=1`":             late,
		"SR-IOV: Enabled, 8 VFs":                                  set(backends.KindVFs, "0000:3b:00.0", backends.VFSpec{Enabled: true, VFs: 8}),
		"`esxcli network sriovnic vf list -n vmnicN` lists 8 VFs": set(backends.KindActiveVFs, "0000:3b:00.0", 8),
	} {
		var b strings.Builder
		if err := plain.Markdown(&b, &plan.Plan{Changes: []plan.Change{c}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %q is not in\n%s", c.ID(), want, b.String())
		}
	}
}
