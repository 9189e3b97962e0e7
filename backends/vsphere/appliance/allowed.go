package appliance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/ovf/importer"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

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
	return backends.Errorf(backends.KindRefused, "", "Add them to the account's role; rdma-setup generate role prints the commands.",
		"the account lacks privileges: %s", strings.Join(lacks, ", "))
}
