// Package older sends each client answers in the API version that the client uses. The client sends its version with each call,
// in the SOAPAction header (urn:vim25/6.7.1), and a newer vCenter omits everything that was added later. Source: vSphere Web
// Services SDK Programming Guide, "Identifying the API Versions Supported by the Server" and "Multiple Versions of the vSphere
// API".
package older

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

// Handler trims the answers of next to the API version of the caller. newest is the version of the server.
func Handler(next http.Handler, newest string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, version, named := strings.Cut(strings.Trim(r.Header.Get("SOAPAction"), `"`), "urn:vim25/")
		if r.Method != http.MethodPost || !named || !less(version, newest) {
			next.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		for key, values := range answer.Header() {
			if key != "Content-Length" {
				w.Header()[key] = values
			}
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(Trim(answer.Body.Bytes(), version)) // the client may have disconnected and cannot be notified
	})
}

// Trim removes everything from an answer that was added after an API version. Data that is not XML is returned unchanged.
func Trim(answer []byte, version string) []byte {
	out, err := trim(answer, version)
	if err != nil {
		return answer
	}
	return out
}

// answers contains the result types of methods whose answers do not name their type. All other answers do (xsi:type).
var answers = map[string]reflect.Type{
	"RetrieveServiceContentResponse": reflect.TypeFor[types.ServiceContent](),
	"LoginResponse":                  reflect.TypeFor[types.UserSession](),
}

func trim(answer []byte, version string) ([]byte, error) {
	d := xml.NewDecoder(bytes.NewReader(answer))
	var out bytes.Buffer
	var open []reflect.Type // types of the enclosing elements; nil if unknown
	parent := ""
	for {
		from := d.InputOffset()
		token, err := d.RawToken()
		if err == io.EOF {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		text := answer[from:d.InputOffset()]
		switch t := token.(type) {
		case xml.EndElement:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case xml.StartElement:
			kind, known := answers[parent]
			if len(open) > 0 && open[len(open)-1] != nil {
				var later bool
				if kind, later = field(open[len(open)-1], t.Name.Local, version); later {
					if err := skip(d); err != nil {
						return nil, err
					}
					continue
				}
			} else if !known {
				kind = nil
			}
			for _, a := range t.Attr {
				if a.Name.Local == "type" && a.Name.Space != "" {
					if named, ok := types.TypeFunc()(a.Value); ok {
						kind = named
					}
				}
			}
			open, parent = append(open, kind), t.Name.Local
		}
		out.Write(text)
	}
}

// skip reads to the end of the current element.
func skip(d *xml.Decoder) error {
	for depth := 1; depth > 0; {
		token, err := d.RawToken()
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
	return nil
}

// field returns the declared type of a property and whether it was added after a version. The type is nil if only the element
// itself names it.
func field(t reflect.Type, name, version string) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	for f := range t.Fields() {
		if f.Anonymous {
			if f.Type.Kind() == reflect.Struct {
				if kind, later := field(f.Type, name, version); kind != nil || later {
					return kind, later
				}
			}
			continue
		}
		if own, _, _ := strings.Cut(f.Tag.Get("xml"), ","); own != name {
			continue
		}
		since := f.Tag.Get("vim")
		if since == "" {
			since = seven[t.Name()+"."+name]
		}
		kind := f.Type
		for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Struct {
			kind = nil
		}
		return kind, since != "" && less(version, since)
	}
	return nil, false
}

// less reports whether an API version is older than another.
func less(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		m, n := 0, 0
		if i < len(x) {
			m, _ = strconv.Atoi(x[i]) // invalid numbers count as 0
		}
		if i < len(y) {
			n, _ = strconv.Atoi(y[i])
		}
		if m != n {
			return m < n
		}
	}
	return false
}

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
