package plan_test

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

func TestLast(t *testing.T) {
	file := backends.Item{Kind: backends.ItemFile, Name: "/etc/a"}
	written := backends.Item{Kind: backends.ItemFile, Name: "/etc/a", State: backends.ValueOf("text")}
	address := backends.Item{Kind: backends.ItemInterface, Name: "00:50:56:00:00:01", Runtime: true}
	image := backends.Item{Kind: backends.ItemInitramfs, Name: "/boot"}
	kept := func(items ...backends.Item) *backends.Kept { return &backends.Kept{Items: items} }
	for name, test := range map[string]struct {
		prior plan.Prior
		want  bool
	}{
		"observed after the change": {plan.Prior{Kept: kept(file), Left: *kept(written)}, true},
		"nothing recorded":          {plan.Prior{Left: *kept(written)}, false},
		"an empty record":           {plan.Prior{Kept: kept()}, false},
		"not observed since":        {plan.Prior{Kept: kept(file)}, false},
		"one of two observed": {plan.Prior{Kept: kept(file, backends.Item{Kind: backends.ItemFile, Name: "/etc/b"}),
			Left: *kept(written)}, false},
		"its result was never read":         {plan.Prior{Kept: kept(file), Left: *kept(written), Uncertain: true}, false},
		"a state that a reboot changes":     {plan.Prior{Kept: kept(address), Left: *kept(address)}, false},
		"images, beside which there may be": {plan.Prior{Kept: kept(file, image), Left: *kept(written, image)}, false},
	} {
		now, got := test.prior.Last()
		if got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		if got && len(backends.Differences(*test.prior.Kept, now)) != 1 {
			t.Errorf("%s: %v", name, now)
		}
	}
}
