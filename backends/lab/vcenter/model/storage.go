package model

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Storage adapters of a host: one for its local disk, and one that reaches the array through two ports.
const (
	localHBA = "vmhba0"
	arrayHBA = "vmhba64"
)

// A lun is a disk that a host accesses through one adapter.
type lun struct {
	naa, vendor, model string
	id                 string // instead of one made of the other fields
	number             int
	bytes              int64
	hba                string
	targets            int // number of paths
}

// uuid returns the identifier of a LUN: type of identifier, type of device, LUN number (low byte first), a reserved byte, the NAA
// identifier and six characters of the model. After "vml." it is a name of the device. Source: Broadcom KB 379673, "Correlating
// VML ID with naa ID in ESXi 7.x or later"; VMware KB 2078730 has the older form for LUNs up to 255, which is the same for these.
func (l lun) uuid() string {
	if l.id != "" {
		return l.id
	}
	return fmt.Sprintf("0200%02x%02x00%s%s", l.number&0xff, l.number>>8, l.naa, hex.EncodeToString([]byte(l.model)[:6]))
}

func (l lun) key() string { return "key-vim.host.ScsiDisk-" + l.uuid() }

// luns returns the disks of a host: the one it boots from, the LUN of the datastore that all hosts share, and those that VMs map.
func luns(s *world.State, h *world.Host) []lun {
	list := []lun{
		{naa: fmt.Sprintf("61866da0%024x", 0x1f00+h.Index), vendor: "DELL", model: "PERC H740P Mini", bytes: 480 << 30, hba: localHBA, targets: 1},
		{naa: "60002ac0000000000000000100023d7a", vendor: "3PARdata", model: "VV              ", number: 1, bytes: storeCapacity, hba: arrayHBA, targets: 2},
	}
	for _, v := range s.VMs {
		for _, raw := range v.RawDisks {
			if l := mapped(raw); !slices.ContainsFunc(list, func(o lun) bool { return o.uuid() == l.uuid() }) {
				list = append(list, l)
			}
		}
	}
	return list
}

// mapped returns the LUN of a raw device mapping. What its identifier does not tell is that of the other LUNs of the array.
func mapped(raw world.RawDisk) lun {
	l := lun{id: raw.LUN, naa: strings.TrimPrefix(raw.LUN, "0200"), vendor: "3PARdata", model: "VV", bytes: raw.KB << 10, hba: arrayHBA, targets: 2}
	if parts, err := hex.DecodeString(raw.LUN); err == nil && len(parts) == 27 {
		l.naa, l.number = raw.LUN[10:42], int(parts[2])|int(parts[3])<<8
	}
	return l
}

// storage returns the adapters, disks and paths of a host. The device of a path is "ADAPTER:C0:TARGET:LUN" (vSphere Storage,
// "Storage Device Names and Identifiers").
func storage(s *world.State, h *world.Host) *types.HostStorageDeviceInfo {
	local := types.HostHostBusAdapter{Key: "key-vim.host.BlockHba-" + localHBA, Device: localHBA, Bus: 24, Status: "unknown",
		Model: "PERC H740P Mini", Driver: "lsi_mr3", StorageProtocol: "scsi"}
	array := types.HostHostBusAdapter{Key: "key-vim.host.FibreChannelHba-" + arrayHBA, Device: arrayHBA, Bus: 175, Status: "online",
		Model: "Emulex LightPulse LPe32002-M2 2-Port 32Gb Fibre Channel Adapter", Driver: "lpfc", StorageProtocol: "scsi"}
	info := &types.HostStorageDeviceInfo{
		HostBusAdapter: []types.BaseHostHostBusAdapter{
			&types.HostBlockHba{HostHostBusAdapter: local},
			&types.HostFibreChannelHba{HostHostBusAdapter: array, PortWorldWideName: worldWide(0x10000090fa000000, h),
				NodeWorldWideName: worldWide(0x20000090fa000000, h), PortType: types.FibreChannelPortTypeFabric, Speed: 32},
		},
		ScsiTopology: &types.HostScsiTopology{}, MultipathInfo: &types.HostMultipathInfo{},
	}
	for _, a := range []types.HostHostBusAdapter{local, array} {
		iface := types.HostScsiTopologyInterface{Key: "key-vim.host.ScsiTopology.Interface-" + a.Device, Adapter: a.Key}
		for _, l := range luns(s, h) {
			if l.hba != a.Device {
				continue
			}
			info.ScsiLun = append(info.ScsiLun, l.disk())
			info.MultipathInfo.Lun = append(info.MultipathInfo.Lun, l.paths(h, a.Key))
			for n := range l.targets {
				if n == len(iface.Target) {
					iface.Target = append(iface.Target, types.HostScsiTopologyTarget{
						Key: fmt.Sprintf("key-vim.host.ScsiTopology.Target-%s:%d:%d", a.Device, 0, n), Target: int32(n), Transport: transport(a.Device, n)})
				}
				t := &iface.Target[n]
				t.Lun = append(t.Lun, types.HostScsiTopologyLun{Key: "key-vim.host.ScsiTopology.Lun-" + l.uuid(), Lun: int32(l.number), ScsiLun: l.key()})
			}
		}
		info.ScsiTopology.Adapter = append(info.ScsiTopology.Adapter, iface)
	}
	return info
}

func worldWide(base int64, h *world.Host) int64 { return base + int64(h.Index) }

func transport(hba string, target int) types.BaseHostTargetTransport {
	if hba == localHBA {
		return &types.HostBlockAdapterTargetTransport{}
	}
	return &types.HostFibreChannelTargetTransport{PortWorldWideName: 0x20110002ac023d7a + int64(target)<<48, NodeWorldWideName: 0x2ff70002ac023d7a}
}

func (l lun) disk() *types.HostScsiDisk {
	name, where := "naa."+l.naa, "Fibre Channel"
	if l.hba == localHBA {
		where = "Local"
	}
	return &types.HostScsiDisk{
		ScsiLun: types.ScsiLun{
			HostDevice: types.HostDevice{DeviceName: "/vmfs/devices/disks/" + name, DeviceType: "disk"}, Key: l.key(), Uuid: l.uuid(),
			Descriptor:    []types.ScsiLunDescriptor{{Quality: "highQuality", Id: name}, {Quality: "highQuality", Id: "vml." + l.uuid()}},
			CanonicalName: name, DisplayName: fmt.Sprintf("%s %s Disk (%s)", where, l.vendor, name), LunType: "disk", Vendor: l.vendor, Model: l.model,
			ScsiLevel: 6, SerialNumber: "unavailable", OperationalState: []string{"ok"}, ProtocolEndpoint: types.NewBool(false),
		},
		Capacity: types.HostDiskDimensionsLba{BlockSize: 512, Block: l.bytes / 512}, DevicePath: "/vmfs/devices/disks/" + name,
		Ssd: types.NewBool(false), LocalDisk: types.NewBool(l.hba == localHBA), ScsiDiskType: "native512",
	}
}

func (l lun) paths(h *world.Host, adapter string) types.HostMultipathInfoLogicalUnit {
	unit := types.HostMultipathInfoLogicalUnit{Key: "key-vim.host.MultipathInfo.LogicalUnit-" + l.uuid(), Id: l.uuid(), Lun: l.key(),
		Policy: &types.HostMultipathInfoLogicalUnitPolicy{Policy: "VMW_PSP_RR"}}
	for n := range l.targets {
		name, state := fmt.Sprintf("%s:C0:T%d:L%d", l.hba, n, l.number), types.MultipathStateActive
		if n == 1 && h.HasProblem(world.DeadPath) {
			state = types.MultipathStateDead
		}
		unit.Path = append(unit.Path, types.HostMultipathInfoPath{Key: "key-vim.host.MultipathInfo.Path-" + name, Name: name, PathState: string(state),
			State: string(state), IsWorkingPath: types.NewBool(state == types.MultipathStateActive), Adapter: adapter, Lun: unit.Key, Transport: transport(l.hba, n)})
	}
	return unit
}
