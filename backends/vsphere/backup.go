package vsphere

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// An Export is one switch or port group of an exported distributed switch, in the form that DVSManagerImportEntity_Task accepts.
type Export struct {
	EntityType    string `json:"entityType"`
	Key           string `json:"key"`
	Name          string `json:"name"`
	Container     string `json:"container,omitempty"` // group-n7
	ConfigVersion string `json:"configVersion"`
	ConfigBlob    []byte `json:"configBlob"` // base64
}

// ExportSwitch exports a distributed switch with all its port groups as JSON. Read privileges are sufficient.
func (c *Client) ExportSwitch(ctx context.Context, name string) ([]byte, error) {
	const what = "export the switch"
	ref, err := c.places.Find(ctx, backends.SwitchRef(name))
	if err != nil {
		return nil, err
	}
	manager := c.conn.VIM().ServiceContent.DvSwitchManager
	if manager == nil {
		return nil, backends.Refusedf(name, "", "%s: there is no vCenter", what)
	}
	o, err := c.conn.One(ctx, ref, "uuid", "portgroup")
	if err != nil {
		return nil, wire.Explain(err, name, what)
	}
	uuid := wire.Value[string](o, "uuid")
	sets := []types.BaseSelectionSet{&types.DVSSelection{DvsUuid: uuid}}
	var keys []string
	for _, g := range wire.Value[types.ArrayOfManagedObjectReference](o, "portgroup").ManagedObjectReference {
		keys = append(keys, g.Value) // the key of a port group is the value of its reference (DVPortgroupConfigInfo.key)
	}
	if len(keys) > 0 {
		sets = append(sets, &types.DVPortgroupSelection{DvsUuid: uuid, PortgroupKey: keys})
	}
	result, err := c.conn.Run(ctx, nil, wire.Starts(c.conn, methods.DVSManagerExportEntity_Task,
		&types.DVSManagerExportEntity_Task{This: *manager, SelectionSet: sets}))
	if err != nil {
		return nil, wire.Explain(err, name, what)
	}
	list, ok := result.(types.ArrayOfEntityBackupConfig)
	if !ok || len(list.EntityBackupConfig) == 0 {
		return nil, backends.Permanentf(name, "", "%s: vCenter returned no data", what)
	}
	var out []Export
	for _, e := range list.EntityBackupConfig {
		x := Export{EntityType: e.EntityType, Key: e.Key, Name: e.Name, ConfigVersion: e.ConfigVersion, ConfigBlob: e.ConfigBlob}
		if e.Container != nil {
			x.Container = e.Container.Value
		}
		out = append(out, x)
	}
	return json.MarshalIndent(out, "", "  ")
}

// deviceProperties are those parts of a VM's configuration that a change by this program may touch. Other parts may contain
// secrets.
var deviceProperties = []string{"name", "config.version", "config.hardware", "config.memoryAllocation",
	"config.memoryReservationLockedToMax",
	"config.cpuAllocation", "config.latencySensitivity", "config.nestedHVEnabled", "runtime.powerState", "runtime.host"}

// DeviceLists returns the virtual hardware of VMs as JSON, by name.
func (c *Client) DeviceLists(ctx context.Context, vms []string) ([]byte, error) {
	var refs []types.ManagedObjectReference
	names := map[types.ManagedObjectReference]string{}
	for _, vm := range vms {
		ref, err := c.places.Find(ctx, backends.VMRef(vm))
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
		names[ref] = vm
	}
	out := map[string]map[string]any{}
	_, err := c.conn.Retrieve(ctx, []types.PropertyFilterSpec{wire.Of("VirtualMachine", refs, deviceProperties...)}, func(o wire.Object) {
		out[names[o.Ref]] = o.Props
	})
	if err != nil {
		return nil, wire.Explain(err, "vCenter", "read the device lists of the VMs")
	}
	var b bytes.Buffer
	e := types.NewJSONEncoder(&b) // includes the type of each device
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
