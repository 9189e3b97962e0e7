package cmd_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vim25/mo"

	"github.com/rdma-setup/rdma-setup/backends/lab"
)

// TestOtherTrafficOnTheRDMACard: vMotion of a host uses only the second port of the card whose firmware the plan sets, as another
// client of vCenter sees it. The plan is refused and names this; --skip accepts it.
func TestOtherTrafficOnTheRDMACard(t *testing.T) {
	t.Parallel()
	l := openLab(t, lab.Options{Scenario: "shared-card", Hosts: 1, VMs: 1, Dir: t.TempDir()})
	env := environment(l, t.TempDir())
	c := outsider(t.Context(), t, env)
	host, err := find.NewFinder(c.Client).DefaultHostSystem(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var seen mo.HostSystem
	if err := host.Properties(t.Context(), host.Reference(), []string{"config.network"}, &seen); err != nil {
		t.Fatal(err)
	}
	card := map[string]string{}
	for _, p := range seen.Config.Network.Pnic {
		card[p.Key] = strings.Split(p.Pci, ".")[0]
	}
	for _, s := range seen.Config.Network.Vswitch {
		if s.Name == "vSwitch1" && (len(s.Pnic) != 1 || card[s.Pnic[0]] != "0000:3b:00") {
			t.Errorf("vSwitch1 has the uplinks %v", s.Pnic)
		}
	}
	plan := []string{"plan", "-f", filepath.Join(l.Dir(), "answers-sriov.yaml")}
	_, errs, code := inProcess(env, plan...)
	if code != 3 || !strings.Contains(errs, "vmk1 (vmotion) leaves only through vmnic3") || !strings.Contains(errs, "vSwitch1") ||
		!strings.Contains(errs, "--skip host/esx-01/other-traffic") {
		t.Errorf("exit %d:\n%s", code, errs)
	}
	out, errs, code := inProcess(env, slices.Concat(plan, []string{"--skip", "host/esx-01/other-traffic"})...)
	if code != 0 || !strings.Contains(out, "vmk1 (vmotion) leaves only through vmnic3") {
		t.Errorf("skipped: exit %d:\n%s%s", code, out, errs)
	}
}
