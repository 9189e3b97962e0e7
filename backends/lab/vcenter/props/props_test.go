package props_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/props"
)

// stock returns a session on the simulator's own inventory.
func stock(t testing.TB) *simulator.Context {
	t.Helper()
	m := simulator.VPX()
	if err := m.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Remove)
	ctx := *m.Service.Context
	ctx.Session = &simulator.Session{UserSession: types.UserSession{Key: "one"}, Registry: simulator.NewRegistry(), Map: m.Map()}
	return &ctx
}

// written encodes an answer in the form that a client receives.
func written(t testing.TB, objects []types.ObjectContent) string {
	t.Helper()
	var b bytes.Buffer
	for _, o := range objects {
		set := o.PropSet[:0:0]
		for _, p := range o.PropSet {
			if p.Val != nil { // the simulator omits these when it writes the first page
				set = append(set, p)
			}
		}
		o.PropSet = set
		if err := xml.NewEncoder(&b).Encode(o); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func simulated(t testing.TB, ctx *simulator.Context, spec types.PropertyFilterSpec) string {
	t.Helper()
	res := (&simulator.PropertyCollector{}).RetrievePropertiesEx(ctx, &types.RetrievePropertiesEx{SpecSet: []types.PropertyFilterSpec{spec}})
	body, ok := res.(*methods.RetrievePropertiesExBody)
	if !ok || body.Fault() != nil {
		return fmt.Sprintf("%T", body.Fault().VimFault())
	}
	return written(t, body.Res.Returnval.Objects)
}

func ours(t testing.TB, r *props.Reader, ctx *simulator.Context, spec types.PropertyFilterSpec) string {
	t.Helper()
	objects, fault := r.Read(ctx, []types.PropertyFilterSpec{spec})
	if fault != nil {
		return fmt.Sprintf("%T", fault)
	}
	return written(t, objects)
}

// everything returns a filter that selects every object of a type.
func everything(ctx *simulator.Context, kind string, set types.PropertySpec) types.PropertyFilterSpec {
	set.Type = kind
	spec := types.PropertyFilterSpec{PropSet: []types.PropertySpec{set}}
	for _, e := range ctx.Map.All(kind) {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: e.Reference()})
	}
	return spec
}

// The answers are byte for byte those of the simulator's own collector.
func TestReadsAsTheSimulatorDoes(t *testing.T) {
	ctx, r := stock(t), props.NewReader("8.0.3")
	all := types.PropertySpec{All: types.NewBool(true)}
	paths := func(list ...string) types.PropertySpec { return types.PropertySpec{PathSet: list} }
	root := ctx.Map.Any("Folder").Reference()
	traversal := types.PropertyFilterSpec{
		PropSet: []types.PropertySpec{{Type: "ManagedEntity", PathSet: []string{"name", "parent"}},
			{Type: "HostSystem", PathSet: []string{"config.network.pnic"}}},
		ObjectSet: []types.ObjectSpec{{Obj: ctx.Map.Any("Datacenter").Reference(), SelectSet: []types.BaseSelectionSpec{
			&types.TraversalSpec{Type: "Datacenter", Path: "hostFolder", Skip: types.NewBool(true), SelectSet: []types.BaseSelectionSpec{
				&types.TraversalSpec{SelectionSpec: types.SelectionSpec{Name: "down"}, Type: "Folder", Path: "childEntity",
					SelectSet: []types.BaseSelectionSpec{
						&types.SelectionSpec{Name: "down"}, &types.TraversalSpec{Type: "ComputeResource", Path: "host"},
					}},
			}},
		}}},
	}
	for name, spec := range map[string]types.PropertyFilterSpec{
		"hosts, all":    everything(ctx, "HostSystem", all),
		"VMs, all":      everything(ctx, "VirtualMachine", all),
		"clusters, all": everything(ctx, "ClusterComputeResource", all),
		"switches, all": everything(ctx, "DistributedVirtualSwitch", all),
		"folders, all":  everything(ctx, "Folder", all),
		"deep paths": everything(ctx, "HostSystem", paths("name", "config.network.pnic", "config.option",
			"summary.hardware.numCpuPkgs", "parent", "runtime.bootTime", "vm", "config.lockdownMode")),
		"elements by key": everything(ctx, "VirtualMachine", paths("config.hardware.device[4000]", "config.hardware.device[4000].key",
			"config.hardware.device[1]")),
		"elements by name": everything(ctx, "HostSystem", paths(`config.firewall.ruleset["sshServer"]`, `config.firewall.ruleset["none"]`,
			`config.firewall.ruleset["sshServer"].enabled`)),
		"what is not there": everything(ctx, "HostSystem", paths("config.assignableHardwareConfig", "name", "name")),
		"nothing of this type": {PropSet: []types.PropertySpec{{Type: "Task", PathSet: []string{"info"}}},
			ObjectSet: []types.ObjectSpec{{Obj: root}}},
		"through the tree": traversal,
		"an object that is gone": {PropSet: []types.PropertySpec{{Type: "HostSystem", PathSet: []string{"name"}}},
			ObjectSet: []types.ObjectSpec{{Obj: types.ManagedObjectReference{Type: "HostSystem", Value: "host-0"}}}},
		"a traversal without name": {PropSet: traversal.PropSet,
			ObjectSet: []types.ObjectSpec{{Obj: root, SelectSet: []types.BaseSelectionSpec{&types.SelectionSpec{Name: "x"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			want := simulated(t, ctx, spec)
			if diff := cmp.Diff(want, ours(t, r, ctx, spec)); diff != "" {
				t.Errorf("-simulator +ours\n%s", diff)
			}
		})
	}
}

// A result does not change when the object changes later.
func TestReadsAreCopies(t *testing.T) {
	ctx, r := stock(t), props.NewReader("8.0.3")
	host := ctx.Map.Any("HostSystem").(*simulator.HostSystem)
	spec := types.PropertyFilterSpec{
		PropSet:   []types.PropertySpec{{Type: "HostSystem", PathSet: []string{"config", "config.network.pnic", "summary"}}},
		ObjectSet: []types.ObjectSpec{{Obj: host.Self}},
	}
	objects, fault := r.Read(ctx, []types.PropertyFilterSpec{spec})
	if fault != nil {
		t.Fatal(fault)
	}
	before := written(t, objects)
	host.Config.Network.Pnic[0].Device = "changed"
	host.Config.Network.Pnic = host.Config.Network.Pnic[:1]
	host.Summary.Hardware.Vendor = "changed"
	host.Config.Product = types.AboutInfo{}
	if diff := cmp.Diff(before, written(t, objects)); diff != "" {
		t.Errorf("it changed with the host:\n%s", diff)
	}
}

func TestPages(t *testing.T) {
	ctx, r := stock(t), props.NewReader("8.0.3")
	spec := everything(ctx, "VirtualMachine", types.PropertySpec{PathSet: []string{"name"}})
	total := len(spec.ObjectSet)
	first := r.RetrievePropertiesEx(ctx, &types.RetrievePropertiesEx{SpecSet: []types.PropertyFilterSpec{spec},
		Options: types.RetrieveOptions{MaxObjects: int32(total - 1)}})
	res := response[types.RetrievePropertiesExResponse](t, first).Returnval
	if len(res.Objects) != total-1 || res.Token == "" {
		t.Fatalf("%d objects of %d, token %q", len(res.Objects), total, res.Token)
	}
	stranger := *ctx
	stranger.Session = &simulator.Session{UserSession: types.UserSession{Key: "two"}, Registry: simulator.NewRegistry(), Map: ctx.Map}
	if r.ContinueRetrievePropertiesEx(&stranger, &types.ContinueRetrievePropertiesEx{Token: res.Token}).Fault() == nil {
		t.Error("another session got the page")
	}
	last := response[types.ContinueRetrievePropertiesExResponse](t,
		r.ContinueRetrievePropertiesEx(ctx, &types.ContinueRetrievePropertiesEx{Token: res.Token})).Returnval
	if len(last.Objects) != 1 || last.Token != "" {
		t.Errorf("the last page: %+v", last)
	}
	if r.ContinueRetrievePropertiesEx(ctx, &types.ContinueRetrievePropertiesEx{Token: res.Token}).Fault() == nil {
		t.Error("a token was good twice")
	}
}

func response[T any](t *testing.T, answer soap.HasFault) T {
	t.Helper()
	r, ok := frame.Response(answer).(T)
	if !ok {
		t.Fatalf("answer %T", answer)
	}
	return r
}

func BenchmarkRead(b *testing.B) {
	ctx, r := stock(b), props.NewReader("8.0.3")
	spec := everything(ctx, "HostSystem",
		types.PropertySpec{PathSet: []string{"name", "config.network.pnic", "hardware.pciDevice", "config.pciPassthruInfo"}})
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			if _, fault := r.Read(ctx, []types.PropertyFilterSpec{spec}); fault != nil {
				b.Fatal(fault)
			}
		}
	})
	b.Run("simulator", func(b *testing.B) {
		for b.Loop() {
			(&simulator.PropertyCollector{}).RetrievePropertiesEx(ctx, &types.RetrievePropertiesEx{SpecSet: []types.PropertyFilterSpec{spec}})
		}
	})
}
