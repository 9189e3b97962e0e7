package older

import "strings"

// from67 lists, by type, the properties that were added between API 6.7.1 and 7.0. govmomi records only for later properties
// when they were added (the struct tag vim). The list contains the properties that exist in govmomi but not in pyVmomi 6.7.1,
// whose types were generated from that API version. The exact release in which each was added is not recorded.
const from67 = `
AlarmState: disabled
BaseConfigInfoFileBackingInfo: keyId
Capability: computePolicyVersion clusterPlacementSupported lifecycleManagementSupported scalableSharesSupported
ClusterComputeResourceSummary: drsScore numVmsPerDrsScoreBucket
ClusterConfigInfoEx: cryptoConfig
ClusterConfigSpecEx: cryptoConfig
ClusterDrsConfigInfo: scaleDescendantsShares
ConfigTarget: maxCpusPerHost supportedMaxMemMB dynamicPassthrough sgxTargetInfo precisionClockInfo
CryptoManagerKmipClusterStatus: overallStatus managementType
CustomizationFailed: reason
CustomizationLinuxPrep: scriptText
DVPortgroupConfigInfo: backingType transportZoneUuid transportZoneName logicalSwitchUuid segmentId
DatastoreCapability: clusteredVmdkSupported
DistributedVirtualPort: externalId segmentPortId
DistributedVirtualPortgroupInfo: backingType logicalSwitchUuid segmentId
DistributedVirtualSwitchHostMemberConfigInfo: nsxSwitch ensEnabled ensInterruptEnabled transportZones nsxtUsedUplinkNames
DistributedVirtualSwitchPortCriteria: nsxPort
GuestDiskInfo: filesystemType mappings
GuestInfo: hwVersion
GuestOsDescriptor: vsgxSupported vwdtSupported
HostCapability: assignableHardwareSupported useFeatureReqsForOldHWv markPerenniallyReservedSupported hppPspSupported
HostCapability: deviceRebindWithoutRebootSupported storagePolicyChangeSupported precisionTimeProtocolSupported remoteDeviceVMotionSupported
HostCapability: maxSupportedVmMemory
HostConfigInfo: descriptionTreeCheckSum assignableHardwareBinding assignableHardwareConfig
HostConfigManager: assignableHardwareManager
HostDateTimeInfo: systemClockProtocol
HostHardwareInfo: sgxInfo
HostHostBusAdapter: storageProtocol
HostMemberRuntimeInfo: nsxtStatus nsxtStatusDetail
HostNetworkInfo: rdmaDevice nsxTransportNodeId
HostPciPassthruConfig: applyNow
HostProxySwitch: nsxtEnabled ensEnabled ensInterruptEnabled transportZones nsxUsedUplinkPort nsxtStatus nsxtStatusDetail
HostStorageDeviceInfo: nvmeTopology
KmipClusterInfo: managementType useAsEntityDefault
NetworkProfile: opaqueSwitch
PhysicalNic: ensInterruptSupported rdmaDevice
ResourceConfigSpec: scaleDescendantsShares
ResourcePoolRuntimeInfo: sharesScalable
ScsiLun: perenniallyReserved clusteredVmdkSupported
ServiceContent: guestCustomizationManager tenantManager siteInfoManager storageQueryManager
VMwareDVSFeatureCapability: nsxSupported
VMwareDVSPortSetting: VNI
VVolVmConfigFileUpdateResultFailedVmConfigFileInfo: dsPath
VirtualHardwareOption: numWDTDevices numPrecisionClockDevices epcMemoryMB
VirtualMachineConfigInfo: vcpuConfig sgxInfo contentLibItemInfo guestMonitoringModeInfo
VirtualMachineConfigSummary: hwVersion
VirtualMachineGuestSummary: hwVersion
VirtualMachineQuickStats: overallCpuReadiness grantedMemory
VirtualMachineRelocateSpecDiskLocator: backing
VirtualMachineTicket: url
`

// seven contains from67 by TYPE.PROPERTY.
var seven = func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(from67) {
		kind, names, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for name := range strings.FieldsSeq(names) {
			out[kind+"."+name] = "7.0"
		}
	}
	return out
}()
