package vms

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/ovf"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

type ovfManager struct{ base }

// CreateImportSpec converts an OVF descriptor to the input of ImportVApp. Errors in the descriptor or the parameters are
// returned in the result, not as faults.
func (m ovfManager) CreateImportSpec(_ *simulator.Context, req *types.CreateImportSpec) soap.HasFault {
	answer := func(res types.OvfCreateImportSpecResult) soap.HasFault {
		return frame.Answer(types.CreateImportSpecResponse{Returnval: res}, nil)
	}
	store := model.Datastore
	m.f.World.View(func(s *world.State) { store = model.DatastoreRef(datacenterOf(s, req.ResourcePool)) })
	if req.Datastore != store {
		return frame.Answer(nil, frame.Gone(req.Datastore))
	}
	if req.ResourcePool.Type != model.Pool.Type || m.f.Reg.Get(req.ResourcePool) == nil {
		return frame.Answer(nil, frame.Gone(req.ResourcePool))
	}
	env, err := ovf.Unmarshal(strings.NewReader(req.OvfDescriptor))
	if err != nil || env.VirtualSystem == nil || len(env.VirtualSystem.VirtualHardware) == 0 {
		return answer(wrong(&types.OvfInvalidPackage{}, "The OVF descriptor is not valid."))
	}
	cisp := req.Cisp.GetOvfCreateImportSpecParams()
	spec := &types.VirtualMachineImportSpec{ConfigSpec: types.VirtualMachineConfigSpec{Name: cisp.EntityName}}
	res := types.OvfCreateImportSpecResult{ImportSpec: spec}
	m.hardware(env, cisp, &spec.ConfigSpec, &res)
	if bad := properties(env, cisp, &spec.ConfigSpec); bad != nil {
		return answer(*bad)
	}
	for _, file := range env.References {
		for _, d := range disks(env) {
			if d.FileRef != nil && *d.FileRef == file.ID {
				disk := &types.VirtualDisk{}
				disk.Key = int32(-100 - len(res.FileItem))
				spec.ConfigSpec.DeviceChange = append(spec.ConfigSpec.DeviceChange, &types.VirtualDeviceConfigSpec{
					Operation: types.VirtualDeviceConfigSpecOperationAdd, FileOperation: types.VirtualDeviceConfigSpecFileOperationCreate, Device: disk})
				res.FileItem = append(res.FileItem, types.OvfFileItem{
					DeviceId: diskKey(cisp.EntityName, len(res.FileItem)), Path: file.Href, Size: int64(file.Size), CimType: 17,
				})
			}
		}
	}
	if len(res.Error) > 0 {
		res.ImportSpec = nil
	}
	return answer(res)
}

func wrong(fault types.BaseMethodFault, text string) types.OvfCreateImportSpecResult {
	return types.OvfCreateImportSpecResult{Error: []types.LocalizedMethodFault{{Fault: fault, LocalizedMessage: text}}}
}

func disks(env *ovf.Envelope) []ovf.VirtualDiskDesc {
	if env.Disk == nil {
		return nil
	}
	return env.Disk.Disks
}

// The CIM resource types that the lab supports.
const (
	cimCPU, cimMemory, cimEthernet = 3, 4, 10
)

func (m ovfManager) hardware(env *ovf.Envelope, cisp *types.OvfCreateImportSpecParams, spec *types.VirtualMachineConfigSpec,
	res *types.OvfCreateImportSpecResult) {
	hw := env.VirtualSystem.VirtualHardware[0]
	spec.Version, spec.NumCPUs, spec.MemoryMB = "vmx-13", 1, 1024
	if hw.System != nil && hw.System.VirtualSystemType != nil {
		spec.Version = *hw.System.VirtualSystemType
	}
	for _, item := range hw.Item {
		if item.ResourceType == nil || item.Configuration != nil && *item.Configuration != cisp.DeploymentOption {
			continue
		}
		switch int(*item.ResourceType) {
		case cimCPU:
			spec.NumCPUs = int32(quantity(item))
		case cimMemory:
			spec.MemoryMB = quantity(item) * units(item) / (1 << 20)
		case cimEthernet:
			backing, name := m.network(item, cisp)
			if backing == nil {
				res.Error = append(res.Error, wrong(&types.OvfNetworkMappingNotSupported{}, "No network is mapped to '"+name+"'.").Error...)
				continue
			}
			card := &types.VirtualVmxnet3{}
			card.Key, card.Backing = int32(-len(spec.DeviceChange)-1), backing
			spec.DeviceChange = append(spec.DeviceChange, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd,
				Device: card})
		}
	}
}

func quantity(item ovf.ResourceAllocationSettingData) int64 {
	if item.VirtualQuantity == nil {
		return 0
	}
	return int64(*item.VirtualQuantity)
}

// units returns the unit of a quantity in bytes, such as 1 MB for "byte * 2^20". Without a unit it returns 1 MB.
func units(item ovf.ResourceAllocationSettingData) int64 {
	if item.AllocationUnits != nil {
		if _, power, ok := strings.Cut(strings.ReplaceAll(*item.AllocationUnits, " ", ""), "2^"); ok {
			if n, err := strconv.Atoi(power); err == nil && n < 50 {
				return int64(math.Exp2(float64(n)))
			}
		}
	}
	return 1 << 20
}

// network returns the backing of an adapter: the network that the client mapped to the adapter's network name.
func (m ovfManager) network(item ovf.ResourceAllocationSettingData,
	cisp *types.OvfCreateImportSpecParams) (types.BaseVirtualDeviceBackingInfo, string) {
	if len(item.Connection) == 0 {
		return nil, ""
	}
	name := item.Connection[0]
	i := slices.IndexFunc(cisp.NetworkMapping, func(n types.OvfNetworkMapping) bool { return n.Name == name })
	if i < 0 {
		return nil, name
	}
	switch ref := cisp.NetworkMapping[i].Network; ref.Type {
	case "Network":
		return &types.VirtualEthernetCardNetworkBackingInfo{VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{
			DeviceName: m.f.Name(ref)}}, name
	case "DistributedVirtualPortgroup":
		var group *mo.DistributedVirtualPortgroup
		m.f.Read(ref, func(obj mo.Reference) { group, _ = obj.(*mo.DistributedVirtualPortgroup) })
		var uuid string
		if group != nil && group.Config.DistributedVirtualSwitch != nil {
			m.f.Read(*group.Config.DistributedVirtualSwitch, func(obj mo.Reference) {
				if sw, ok := obj.(*mo.VmwareDistributedVirtualSwitch); ok {
					uuid = sw.Uuid
				}
			})
		}
		return &types.VirtualEthernetCardDistributedVirtualPortBackingInfo{
			Port: types.DistributedVirtualSwitchPortConnection{PortgroupKey: ref.Value, SwitchUuid: uuid}}, name
	}
	return nil, name
}

// properties stores the client's values by the keys in the descriptor. A value of the wrong type is refused.
func properties(env *ovf.Envelope, cisp *types.OvfCreateImportSpecParams,
	spec *types.VirtualMachineConfigSpec) *types.OvfCreateImportSpecResult {
	vapp := &types.VAppConfigSpec{}
	for _, product := range env.VirtualSystem.Product {
		for _, p := range product.Property {
			key := product.Key(p)
			info := types.VAppPropertyInfo{Key: int32(len(vapp.Property)), Id: key, Type: p.Type, UserConfigurable: p.UserConfigurable}
			if p.Default != nil {
				info.DefaultValue = *p.Default
			}
			for _, given := range cisp.PropertyMapping {
				if given.Key == key {
					info.Value = given.Value
				}
			}
			if !fits(p.Type, info.Value) {
				bad := wrong(&types.OvfInvalidValue{}, fmt.Sprintf("Value '%s' of Property '%s' is not a valid %s.", info.Value, key, p.Type))
				return &bad
			}
			vapp.Property = append(vapp.Property, types.VAppPropertySpec{
				ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd}, Info: &info,
			})
		}
	}
	spec.VAppConfig = vapp
	return nil
}

func fits(kind, value string) bool {
	switch {
	case value == "":
		return true
	case kind == "boolean":
		return strings.EqualFold(value, "true") || strings.EqualFold(value, "false")
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"), strings.HasPrefix(kind, "sint"):
		_, err := strconv.ParseInt(value, 10, 64)
		return err == nil
	}
	return true
}
