package appliance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/ovf/importer"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A need is what an appliance requires of its host.
type need struct {
	groups    []string // port groups of its adapters, including added ones
	datastore string   // managed object id
	memory    int64    // bytes
}

// A candidate is a host as vCenter describes it.
type candidate struct {
	ref         types.ManagedObjectReference
	name        string
	connected   bool
	maintenance bool
	networks    []string
	datastores  []string
	memory      int64
	used        int64
}

// unfit returns why the host cannot run the VM; "" if it can. A host has access to a distributed port group only as a member of
// its switch, which also shows that its licence includes distributed switches.
func (c candidate) unfit(n need) string {
	for _, g := range n.groups {
		if !slices.Contains(c.networks, g) {
			return "it has no port group " + g
		}
	}
	switch {
	case !c.connected:
		return "it is not connected"
	case c.maintenance:
		return "it is in maintenance mode"
	case !slices.Contains(c.datastores, n.datastore):
		return "it has no access to the datastore"
	case c.memory < n.memory:
		return fmt.Sprintf("it has %s of memory, the VM needs %s", backends.SizeText(c.memory), backends.SizeText(n.memory))
	}
	return ""
}

// choose returns the suitable host with the most free memory.
func choose(all []candidate, n need) (candidate, error) {
	var best candidate
	var why []string
	found := false
	for _, c := range all {
		if reason := c.unfit(n); reason != "" {
			why = append(why, c.name+": "+reason)
			continue
		}
		if !found || c.memory-c.used > best.memory-best.used {
			best, found = c, true
		}
	}
	if found {
		return best, nil
	}
	slices.Sort(why)
	if len(why) > 5 {
		why = append(why[:5], fmt.Sprintf("and %d more", len(why)-5))
	}
	if len(why) == 0 {
		why = []string{"the cluster has no hosts"}
	}
	return best,
		backends.Refusedf("", "Name a host with --host that has these port groups, or add one to the distributed switch.",
			"no host can run the VM: %s", strings.Join(why, "; "))
}

// Target checks before the upload that the VM can be deployed as d requests, and returns the inventory path of its host.
func Target(ctx context.Context, conn *wire.Conn, f *File, d backends.Deployment, groups []string) (string, error) {
	imp, err := destination(ctx, conn, d)
	if err != nil {
		return "", wire.Explain(located(err), d.Name, "find the deployment target")
	}
	if err := space(ctx, conn, imp.Datastore, f, d); err != nil {
		return "", err
	}
	if err := allowed(ctx, conn, imp, len(groups) > 0); err != nil {
		return "", err
	}
	n := need{groups: slices.Clone(groups), datastore: imp.Datastore.Reference().Value, memory: f.MemoryMB << 20}
	for _, g := range d.Networks {
		n.groups = append(n.groups, g[strings.LastIndex(g, "/")+1:])
	}
	refs, err := hostsOf(ctx, conn, imp, d)
	if err != nil {
		return "", wire.Explain(located(err), d.Name, "find the deployment target")
	}
	all, err := candidates(ctx, conn, refs)
	if err != nil {
		return "", wire.Explain(err, d.Name, "read the hosts")
	}
	host, err := choose(all, n)
	if err != nil {
		return "", err
	}
	path, err := find.InventoryPath(ctx, conn.VIM(), host.ref)
	return path, wire.Explain(err, host.name, "read its inventory path")
}

func hostsOf(ctx context.Context, conn *wire.Conn, imp *importer.Importer, d backends.Deployment) ([]types.ManagedObjectReference, error) {
	if imp.Host != nil {
		return []types.ManagedObjectReference{imp.Host.Reference()}, nil
	}
	cluster, err := imp.Finder.ClusterComputeResourceOrDefault(ctx, d.Cluster)
	if err != nil {
		return nil, err
	}
	hosts, err := cluster.Hosts(ctx)
	var refs []types.ManagedObjectReference
	for _, h := range hosts {
		refs = append(refs, h.Reference())
	}
	return refs, err
}

func candidates(ctx context.Context, conn *wire.Conn, refs []types.ManagedObjectReference) ([]candidate, error) {
	var out []candidate
	networks := map[types.ManagedObjectReference]string{}
	if len(refs) == 0 {
		return nil, nil
	}
	spec := wire.Of("HostSystem", refs, "name", "runtime.connectionState", "runtime.inMaintenanceMode", "network", "datastore",
		"hardware.memorySize", "summary.quickStats.overallMemoryUsage")
	of := map[string][]types.ManagedObjectReference{} // networks by host
	_, err := conn.Retrieve(ctx, []types.PropertyFilterSpec{spec}, func(o wire.Object) {
		c := candidate{ref: o.Ref, name: wire.Value[string](o, "name"), maintenance: wire.Value[bool](o, "runtime.inMaintenanceMode"),
			connected: wire.Value[types.HostSystemConnectionState](o, "runtime.connectionState") == types.HostSystemConnectionStateConnected,
			memory:    wire.Value[int64](o, "hardware.memorySize"), used: int64(wire.Value[int32](o, "summary.quickStats.overallMemoryUsage")) << 20}
		for _, ref := range wire.Value[types.ArrayOfManagedObjectReference](o, "datastore").ManagedObjectReference {
			c.datastores = append(c.datastores, ref.Value)
		}
		of[o.Ref.Value] = wire.Value[types.ArrayOfManagedObjectReference](o, "network").ManagedObjectReference
		for _, ref := range of[o.Ref.Value] {
			networks[ref] = ""
		}
		out = append(out, c)
	})
	if err != nil {
		return nil, err
	}
	byType := map[string][]types.ManagedObjectReference{}
	for ref := range networks {
		byType[ref.Type] = append(byType[ref.Type], ref)
	}
	for kind, refs := range byType {
		if _, err := conn.Retrieve(ctx, []types.PropertyFilterSpec{wire.Of(kind, refs, "name")}, func(o wire.Object) {
			networks[o.Ref] = wire.Value[string](o, "name")
		}); err != nil {
			return nil, err
		}
	}
	for i := range out {
		for _, ref := range of[out[i].ref.Value] {
			out[i].networks = append(out[i].networks, networks[ref])
		}
	}
	return out, nil
}

// allocates reports whether a thick disk occupies its whole size when it is created. On VMFS it does. On vSAN and vVols the
// storage policy decides, by default thin (vSphere documentation, "vSAN policies": object space reservation); on NFS the server
// decides, unless it has a VAAI plug-in ("Storage Hardware Acceleration on NAS Devices").
func allocates(datastore string) bool {
	return !slices.Contains([]string{"vsan", "vvol", "nfs", "nfs41"}, strings.ToLower(datastore))
}

// space fails if a datastore has too little space for the disks.
func space(ctx context.Context, conn *wire.Conn, store *object.Datastore, f *File, d backends.Deployment) error {
	var summary types.DatastoreSummary
	_, err := conn.Retrieve(ctx,
		[]types.PropertyFilterSpec{wire.Of("Datastore", []types.ManagedObjectReference{store.Reference()}, "summary")}, func(o wire.Object) {
			summary = wire.Value[types.DatastoreSummary](o, "summary")
		})
	wanted := f.Bytes
	if d.Disk != "thin" && allocates(summary.Type) {
		wanted = max(wanted, f.DiskBytes)
	}
	switch {
	case err != nil:
		return wire.Explain(err, d.Name, "read the datastore")
	case !summary.Accessible:
		return backends.Refusedf(summary.Name, "Name another one with --datastore.", "the datastore is not accessible")
	case summary.FreeSpace < wanted:
		return backends.Refusedf(summary.Name, "Name another one with --datastore.",
			"the datastore has %s free, the disks need %s", backends.SizeText(summary.FreeSpace), backends.SizeText(wanted))
	}
	return nil
}

// Remove destroys a VM that Deploy created; it succeeds if vCenter has already done so.
func Remove(ctx context.Context, conn *wire.Conn, id string) error {
	vm := object.NewVirtualMachine(conn.VIM(), types.ManagedObjectReference{Type: "VirtualMachine", Value: id})
	task, err := vm.Destroy(ctx)
	if err == nil {
		err = task.Wait(ctx)
	}
	if _, gone := wire.FaultOf(err).(*types.ManagedObjectNotFound); gone {
		return nil
	}
	return wire.Explain(err, "", "remove the VM")
}

// Privileges for deploying an appliance, and for removing the VM after a failure: vSphere Security, "Required vCenter Server
// Privileges for Common Tasks" (deploy an OVF template); vSphere Automation API, "Delete Vm".
var (
	onPool      = []string{"VApp.Import", "Resource.AssignVMToPool"}
	onDatastore = []string{"Datastore.AllocateSpace"}
	onFolder    = []string{"VirtualMachine.Inventory.Create", "VirtualMachine.Inventory.Delete", "VirtualMachine.Config.AddNewDisk"}
	forAdapters = []string{"VirtualMachine.Config.AddRemoveDevice", "VirtualMachine.Config.Resource"} // also on the folder
)

// Privileges lists what deploy needs in addition to the privileges of apply.
func Privileges() []string { return slices.Concat(onPool, onDatastore, onFolder) }

// allowed fails if the account lacks a privilege; otherwise that would show only after the disks were uploaded.
func allowed(ctx context.Context, conn *wire.Conn, imp *importer.Importer, adapters bool) error {
	manager := conn.VIM().ServiceContent.AuthorizationManager
	if manager == nil {
		return nil // a host without vCenter: it checks privileges itself
	}
	inFolder := onFolder
	if adapters {
		inFolder = slices.Concat(onFolder, forAdapters)
	}
	var lacks []string
	for _, need := range []struct {
		what       string
		on         types.ManagedObjectReference
		privileges []string
	}{
		{"resource pool", imp.ResourcePool.Reference(), onPool},
		{"datastore", imp.Datastore.Reference(), onDatastore},
		{"VM folder", imp.Folder.Reference(), inFolder},
	} {
		res, err := methods.HasPrivilegeOnEntity(ctx, conn.VIM(), &types.HasPrivilegeOnEntity{
			This: *manager, Entity: need.on, SessionId: conn.Session(), PrivId: need.privileges,
		})
		if err != nil {
			return wire.Explain(err, "vCenter", "ask for the account's privileges")
		}
		for i, granted := range res.Returnval {
			if !granted && i < len(need.privileges) {
				lacks = append(lacks, fmt.Sprintf("%s on the %s", need.privileges[i], need.what))
			}
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return backends.Refusedf("", "Add them to the account's role; rdma-setup generate role prints the commands.",
		"the account lacks privileges: %s", strings.Join(lacks, ", "))
}
