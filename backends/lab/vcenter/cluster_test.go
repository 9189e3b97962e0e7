package vcenter_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// DRS in manual mode does not evacuate a host. A host is also not evacuated if that would violate HA's failover level.
func TestWhenDRSEvacuatesAHost(t *testing.T) {
	for name, empties := range map[string]bool{"sriov-half": true, "sriov-drs-manual": false, "sriov-ha": false} {
		t.Run(name, func(t *testing.T) {
			c := start(t, scenario.Spec{Hosts: 3, VMs: 3, Scenario: name})
			task, err := c.host("esx-01").EnterMaintenanceMode(c.ctx, 1, false, nil)
			err = c.done(task, err)
			if empties {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, err, "Timedout", "Operation timed out.")
		})
	}
}

func TestHAKeepsMemoryForLostHosts(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 3, VMs: 3, Scenario: "sriov-ha-full"})
	c.powerOff("vm-02")
	big := c.vmMO("memory-01", "config.hardware").Config.Hardware.MemoryMB
	if err := c.world.Update(func(s *world.State) ([]world.Event, error) {
		s.VM("vm-02").Reserved = 2*s.Hosts[0].MemoryMB - int64(big) + 1
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	task, err := c.vm("vm-02").PowerOn(c.ctx)
	refused(t, c.done(task, err), "InsufficientFailoverResourcesFault",
		"Insufficient resources to satisfy configured failover level for vSphere HA.")
}

// vSAN prevents maintenance mode while it resyncs data for another host.
func TestVSANCopiesAfterAReboot(t *testing.T) {
	c := start(t, scenario.Spec{Hosts: 2, VMs: 1, Scenario: "sriov-vsan"})
	c.powerOff("vm-01")
	c.reboot("esx-01")
	task, err := c.host("esx-02").EnterMaintenanceMode(c.ctx, 5, false, &types.HostMaintenanceSpec{VsanMode: &types.VsanHostDecommissionMode{
		ObjectAction: string(types.VsanHostDecommissionModeObjectActionEnsureObjectAccessibility)}})
	refused(t, c.done(task, err), "VsanFault",
		"Failed to enter maintenance mode in the current vSAN data migration mode due to insufficient nodes or disk "+
			"space in the cluster. Retry operation in another mode or after adding more resources to the cluster.")
	r, err := c.esxcli("esx-02", "vsan", "debug", "resync", "summary", "get")
	if err != nil || len(r.Values) != 1 || r.Values[0]["TotalBytesLeftToResync"][0] != "4294967296" {
		t.Errorf("%+v, %v", r, err)
	}
}

// No required property of a data object is empty. pyVmomi raises an exception for an enumeration without a value
// ("runtime.recordReplayState"), and govc fails with a nil pointer for an empty reference. govmomi's types, which are generated
// from VMware's own, define which fields are required: those that are not pointers and have no omitempty.
func TestRequiredPropertiesAreSet(t *testing.T) {
	for _, name := range []string{"done", "gpudirect-done"} {
		t.Run(name, func(t *testing.T) {
			c := start(t, scenario.Spec{Hosts: 2, VMs: 2, Scenario: name})
			empty := map[string]bool{}
			for _, ref := range c.everything() {
				pc := property.DefaultCollector(c.Client.Client)
				res, err := pc.RetrieveProperties(c.ctx, types.RetrieveProperties{SpecSet: []types.PropertyFilterSpec{{
					ObjectSet: []types.ObjectSpec{{Obj: ref}}, PropSet: []types.PropertySpec{{Type: ref.Type, All: types.NewBool(true)}}}}})
				if err != nil {
					t.Errorf("%v: %v", ref, err)
					continue
				}
				for _, content := range res.Returnval {
					for _, p := range content.PropSet {
						lacking(reflect.ValueOf(p.Val), ref.Type+"."+p.Name, empty)
					}
				}
			}
			for _, path := range slices.Sorted(maps.Keys(empty)) {
				t.Error("empty: " + path)
			}
		})
	}
}

// everything returns the entities, and the managers of vCenter and of its hosts.
func (c *client) everything() []types.ManagedObjectReference {
	c.t.Helper()
	v, err := view.NewManager(c.Client.Client).CreateContainerView(c.ctx, c.ServiceContent.RootFolder, []string{"ManagedEntity"}, true)
	if err != nil {
		c.t.Fatal(err)
	}
	refs, err := v.Find(c.ctx, []string{"ManagedEntity"}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	refs = append(refs, mo.References(c.ServiceContent)...)
	var hosts []mo.HostSystem
	if err := v.Retrieve(c.ctx, []string{"HostSystem"}, []string{"configManager"}, &hosts); err != nil {
		c.t.Fatal(err)
	}
	for _, h := range hosts {
		refs = append(refs, mo.References(h.ConfigManager)...)
	}
	return refs
}

// lacking collects the required fields below v that have no value.
func lacking(v reflect.Value, path string, empty map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			lacking(v.Elem(), path, empty)
		}
	case reflect.Slice:
		for i := range v.Len() {
			lacking(v.Index(i), path+"[]", empty)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			f, value := v.Type().Field(i), v.Field(i)
			if f.Anonymous {
				lacking(value, path, empty)
				continue
			}
			name, options, _ := strings.Cut(f.Tag.Get("xml"), ",")
			if strings.Contains(options, "omitempty") || name == "" || name == "-" {
				lacking(value, path+"."+f.Name, empty)
				continue
			}
			ref, isRef := value.Interface().(types.ManagedObjectReference)
			_, isTime := value.Interface().(time.Time)
			switch {
			case isRef && (ref.Type == "" || ref.Value == ""),
				isTime && value.IsZero(),
				value.Kind() == reflect.Interface && value.IsNil(),
				value.Kind() == reflect.String && value.Type().Name() != "string" && value.Len() == 0:
				empty[fmt.Sprintf("%s.%s", path, name)] = true
			default:
				lacking(value, path+"."+name, empty)
			}
		}
	}
}
