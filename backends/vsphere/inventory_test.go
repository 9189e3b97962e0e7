package vsphere_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

func TestInventoryOfStock(t *testing.T) {
	w := start(t, nil, nil)
	c := w.dial(t)
	inv, err := c.Inventory(t.Context(), backends.Scope{Details: true})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.MarshalIndent(inv, "", " ")
	os.WriteFile("/tmp/vsx/inv.json", b, 0o644)
	t.Log(c.Calls(), c.Cost())
}
