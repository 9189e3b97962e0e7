package vsphere

import (
	"context"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A Health shows whether a host or VM works again after it was out of service. What vCenter does not report is empty.
type Health struct {
	Connected, Maintenance bool
	HA                     bool     // HA is on in the host's cluster
	Agent                  string   // state of the host's HA agent
	DeadPaths              []string // failed storage paths
	Switches               []string // opaque switches (NSX) that are not up
	Alarms                 []string // red alarms of the host and its cluster
	On                     bool     // a VM is powered on
	Backup                 string   // of a VM: the snapshot of a running backup
}

// backupMarks occur in the names of snapshots that backup products create through the vSphere APIs for data protection and remove
// after reading the disks: Veeam KB 1790; vCheck-vSphere, plug-in "Backup Garbage".
var backupMarks = []string{"veeam backup temporary snapshot", "nbu_snapshot", "gx_backup", "consolidate helper", "vadp"}

// Health reads the health of hosts and VMs (HostRuntimeInfo.dasHostState, HostMultipathStateInfo, HostOpaqueSwitch.status,
// ManagedEntity.triggeredAlarmState and VirtualMachineSnapshotInfo in the vSphere Web Services API).
func (c *Client) Health(ctx context.Context, targets []backends.Ref) (map[backends.Ref]Health, error) {
	const what = "read the health of hosts and VMs"
	at, specs, err := c.specs(ctx, targets, what, func(kind string) []string {
		if kind == "HostSystem" {
			return []string{"parent", "runtime.connectionState", "runtime.inMaintenanceMode", "runtime.dasHostState", "config.multipathState",
				"config.network.opaqueSwitch", "triggeredAlarmState"}
		}
		return []string{"runtime.powerState", "snapshot"}
	})
	if err != nil {
		return nil, err
	}
	out := map[backends.Ref]Health{}
	alarms := map[place.Ref][]types.ManagedObjectReference{} // by host
	clusters := map[place.Ref][]place.Ref{}                  // hosts by cluster
	if len(specs) == 0 {
		return out, nil
	}
	if _, err := c.conn.Retrieve(ctx, specs, func(o wire.Object) {
		if o.Ref.Type != "HostSystem" {
			out[at[o.Ref]] = Health{
				On:     wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState") == types.VirtualMachinePowerStatePoweredOn,
				Backup: backup(wire.Value[types.VirtualMachineSnapshotInfo](o, "snapshot").RootSnapshotList)}
			return
		}
		out[at[o.Ref]] = hostHealth(o)
		alarms[o.Ref] = red(o)
		parent := wire.Value[place.Ref](o, "parent")
		clusters[parent] = append(clusters[parent], o.Ref)
	}); err != nil {
		return nil, wire.Explain(err, "vCenter", what)
	}
	for cluster, hosts := range clusters {
		if cluster.Type != "ClusterComputeResource" {
			continue
		}
		o, err := c.conn.One(ctx, cluster, "configurationEx", "triggeredAlarmState")
		if err != nil {
			return nil, wire.Explain(err, "vCenter", what)
		}
		info, _ := o.Props["configurationEx"].(types.ClusterConfigInfoEx)
		for _, h := range hosts {
			x := out[at[h]]
			x.HA = info.DasConfig.Enabled != nil && *info.DasConfig.Enabled
			out[at[h]] = x
			alarms[h] = append(alarms[h], red(o)...)
		}
	}
	for h, list := range alarms {
		x := out[at[h]]
		for _, a := range list {
			o, err := c.conn.One(ctx, a, "info.name")
			name := wire.Value[string](o, "info.name")
			if err != nil || name == "" {
				name = a.Value
			}
			if !slices.Contains(x.Alarms, name) {
				x.Alarms = append(x.Alarms, name)
			}
		}
		out[at[h]] = x
	}
	return out, nil
}

// Unplugged returns, by label, the PVRDMA adapters of running VMs that should have connected at power-on but are not connected
// (VirtualDeviceConnectInfo.connected and startConnected in the vSphere Web Services API). That happens with ephemeral port
// groups: Broadcom KB 368679. No public source says whether vCenter reports it for SR-IOV adapters too: they are not checked. VMs
// that are off or that vCenter does not show are left out.
func (c *Client) Unplugged(ctx context.Context, vms []backends.Ref) (map[backends.Ref][]string, error) {
	const what = "read the adapters of VMs"
	at, specs, err := c.specs(ctx, vms, what, func(string) []string { return []string{"runtime.powerState", "config.hardware.device"} })
	out := map[backends.Ref][]string{}
	if err != nil || len(specs) == 0 {
		return out, err
	}
	_, err = c.conn.Retrieve(ctx, specs, func(o wire.Object) {
		if wire.Value[types.VirtualMachinePowerState](o, "runtime.powerState") != types.VirtualMachinePowerStatePoweredOn {
			return
		}
		lost := []string{}
		for _, d := range wire.Value[types.ArrayOfVirtualDevice](o, "config.hardware.device").VirtualDevice {
			if a, _, ok := survey.AdapterOf(d); ok && a.Type == "pvrdma" && a.Start && !a.Connected {
				lost = append(lost, a.Label)
			}
		}
		out[at[o.Ref]] = lost
	})
	if err != nil {
		return nil, wire.Explain(err, "vCenter", what)
	}
	return out, nil
}

// specs returns what reads the paths of those targets that vCenter shows, and the targets by reference.
func (c *Client) specs(ctx context.Context, targets []backends.Ref, what string, paths func(kind string) []string) (
	at map[place.Ref]backends.Ref, specs []types.PropertyFilterSpec, err error) {
	at = map[place.Ref]backends.Ref{}
	byType := map[string][]place.Ref{}
	for _, t := range targets {
		ref, there, err := c.places.Look(ctx, t)
		if err != nil {
			return nil, nil, wire.Explain(err, t.Name, what)
		}
		if _, known := at[ref]; there && !known {
			at[ref] = t
			byType[ref.Type] = append(byType[ref.Type], ref)
		}
	}
	for kind, refs := range byType {
		specs = append(specs, wire.Of(kind, refs, paths(kind)...))
	}
	return at, specs, nil
}

func hostHealth(o wire.Object) Health {
	x := Health{
		Connected:   wire.Value[types.HostSystemConnectionState](o, "runtime.connectionState") == types.HostSystemConnectionStateConnected,
		Maintenance: wire.Value[bool](o, "runtime.inMaintenanceMode"), Agent: wire.Value[types.ClusterDasFdmHostState](o, "runtime.dasHostState").
				State,
	}
	for _, p := range wire.Value[types.HostMultipathStateInfo](o, "config.multipathState").Path {
		if p.PathState == string(types.MultipathStateDead) {
			x.DeadPaths = append(x.DeadPaths, p.Name)
		}
	}
	for _, s := range wire.Value[types.ArrayOfHostOpaqueSwitch](o, "config.network.opaqueSwitch").HostOpaqueSwitch {
		if s.Status != "" && !strings.EqualFold(s.Status, "up") {
			x.Switches = append(x.Switches, s.Name)
		}
	}
	return x
}

func red(o wire.Object) []types.ManagedObjectReference {
	var out []types.ManagedObjectReference
	for _, a := range wire.Value[types.ArrayOfAlarmState](o, "triggeredAlarmState").AlarmState {
		if a.OverallStatus == types.ManagedEntityStatusRed {
			out = append(out, a.Alarm)
		}
	}
	return out
}

// backup returns a snapshot of a backup; "" if there is none.
func backup(list []types.VirtualMachineSnapshotTree) string {
	for _, s := range list {
		name := strings.ToLower(s.Name)
		if slices.ContainsFunc(backupMarks, func(mark string) bool { return strings.Contains(name, mark) }) {
			return s.Name
		}
		if below := backup(s.ChildSnapshotList); below != "" {
			return below
		}
	}
	return ""
}
