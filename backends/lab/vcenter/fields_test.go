package vcenter_test

import (
	"reflect"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// A custom attribute has a unique name and a key that is never reused, and removing it removes its values.
func TestCustomAttributes(t *testing.T) {
	c := start(t, scenario.Spec{})
	ctx := t.Context()
	m, err := object.GetCustomFieldsManager(c.Client.Client)
	if err != nil {
		t.Fatal(err)
	}
	host, err := find.NewFinder(c.Client.Client).HostSystem(ctx, "/DC/host/*/esx-01")
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error, want any) {
		t.Helper()
		if f, _ := fault(err); reflect.TypeOf(f) != reflect.TypeOf(want) && reflect.TypeOf(f) != reflect.PointerTo(reflect.TypeOf(want)) {
			t.Errorf("%s: %T, %v", what, f, err)
		}
	}
	first, err := m.Add(ctx, "lock", "HostSystem", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Add(ctx, "lock", "HostSystem", nil, nil)
	refused("a second of the name", err, types.DuplicateName{})
	if err := m.Set(ctx, host.Reference(), first.Key, "ada"); err != nil {
		t.Fatal(err)
	}
	values := func() int {
		var h mo.HostSystem
		if err := host.Properties(ctx, host.Reference(), []string{"customValue"}, &h); err != nil {
			t.Fatal(err)
		}
		return len(h.CustomValue)
	}
	if n := values(); n != 1 {
		t.Errorf("%d values", n)
	}
	if err := m.Remove(ctx, first.Key); err != nil {
		t.Fatal(err)
	}
	if n := values(); n != 0 {
		t.Errorf("%d values after the attribute was removed", n)
	}
	refused("removed twice", m.Remove(ctx, first.Key), types.InvalidArgument{}) // API reference of RemoveCustomFieldDef
	refused("set after it was removed", m.Set(ctx, host.Reference(), first.Key, "ada"), types.InvalidArgument{})
	if second, err := m.Add(ctx, "lock", "HostSystem", nil, nil); err != nil || second.Key == first.Key {
		t.Errorf("%+v, %v", second, err)
	}
}
