package recipe_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

func TestChooseOnHostsThatOfferNoVFsYet(t *testing.T) {
	inv := newInventory(2)
	a := newAnswers(inv)
	a.Mode = answers.SRIOV
	for i := range inv.Hosts {
		a.Hosts.Names = append(a.Hosts.Names, inv.Hosts[i].Name)
		for j := range inv.Hosts[i].NICs {
			inv.Hosts[i].NICs[j].SRIOV = nil
		}
	}
	if picks := recipe.Choose(a, inv); len(picks) != 2 {
		t.Errorf("chose %v on two hosts whose firmware gives no VFs yet", picks)
	}
}
