package recipe_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// TestOtherTrafficOnTheCard: vmknics on the second port of the card whose firmware is set need an uplink on another card with link.
// A firmware setting applies to the complete card (NVIDIA, "mlxconfig").
func TestOtherTrafficOnTheCard(t *testing.T) {
	const id = "host/esx-01/other-traffic"
	for name, tt := range map[string]struct {
		pnics   []string
		roles   []string
		second  int // speed of the card's second port
		skip    []string
		refuses string
		note    string
	}{
		"alone on the card": {[]string{"vmnic3"}, []string{"vsan"}, 100000, nil, "vmk9 (vsan) leaves only through vmnic3", ""},
		"management counts too": {[]string{"vmnic3"}, []string{"management"}, 100000, nil, "vmk9 (management) leaves only through vmnic3",
			""},
		"without a service":          {[]string{"vmnic3"}, nil, 100000, nil, "vmk9 leaves only through vmnic3", ""},
		"both ports of the card":     {[]string{"vmnic2", "vmnic3"}, []string{"vsan"}, 100000, nil, "only through vmnic2 and vmnic3", ""},
		"the other card has no link": {[]string{"vmnic3", "vmnic1"}, []string{"vsan"}, 100000, nil, "no other card with link", ""},
		"standby on another card": {[]string{"vmnic3", "vmnic0"}, []string{"vmotion"}, 100000, nil, "",
			"vmnic0 on another card has link and takes over"},
		"it has no link today":          {[]string{"vmnic3"}, []string{"vmotion"}, 0, nil, "", "it has no link today"},
		"the operator accepts the risk": {[]string{"vmnic3"}, []string{"vsan"}, 100000, []string{id}, "", "(" + id + " skipped)"},
		"another port of the driver": {[]string{"vmnic0"}, []string{"vmotion"}, 0, nil, "",
			"apply to all its ports, also to vmnic0, which carries vmk9 (vmotion)"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newSRIOV(1)
			h := &inv.Hosts[0]
			n := h.NIC("vmnic3")
			n.SpeedMbps, n.MaxSpeedMbps, n.Switch, n.Roles = tt.second, 100000, "vSwitch1", []string{"vmotion"}
			h.VMKs = append(h.VMKs, backends.VMKernelNIC{Device: "vmk9", Switch: "vSwitch1", Roles: tt.roles, PNICs: tt.pnics})
			p, err := recipe.Build(sriovAnswers(inv), inv, plan.Options{Skip: tt.skip})
			if said := refusedText(err); tt.refuses != "" && (err == nil || !strings.Contains(said, tt.refuses)) || tt.refuses == "" && err != nil {
				t.Fatalf("want %q, got %v: %s", tt.refuses, err, said)
			}
			if err == nil && !strings.Contains(strings.Join(p.Notes, "\n"), tt.note) {
				t.Errorf("no note %q among\n%s", tt.note, strings.Join(p.Notes, "\n"))
			}
		})
	}
}
