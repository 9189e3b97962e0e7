package props

import (
	"reflect"
	"strings"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Undeclared returns the first property path in the property sets of a filter that vCenter refuses. The property collector
// resolves a path by the declared type of each property, never by the type of the actual object. Therefore
// summary.currentEVCModeKey is refused for a cluster, whose property summary is declared as ComputeResourceSummary. The complete
// call fails with InvalidProperty, which names the path.
//
// Sources: vSphere Web Services API, Fault - InvalidProperty ("thrown when an invalid property path has been referenced", by
// CreateFilter and RetrievePropertiesEx); vmware/pyvmomi issue 681 (summary.vAppState, "it can not filter on properties that are
// not present in the base class"); dnaeon/py-vpoller issue 206 (the properties of ClusterComputeResourceSummary); vmware/pyvmomi
// issue 423 (config.lacpGroupConfig of a DVS); vmware/pyvmomi-community-samples issue 418 (parent.name). A vCenter that is older
// than a property does not declare it.
func Undeclared(sets []types.PropertySpec, vcenter string) (path string, found bool) {
	for _, set := range sets {
		if !mo.IsManagedObjectType(set.Type) || yes(set.All) {
			continue
		}
		obj, err := mo.ObjectContentToType(types.ObjectContent{Obj: types.ManagedObjectReference{Type: set.Type}})
		for _, path := range set.PathSet {
			if err != nil || !declares(reflect.TypeOf(obj), path) || younger(path, vcenter) {
				return path, true
			}
		}
	}
	return "", false
}

// declares reports whether the type of a managed object has a property path. A list element is selected by the value of its
// property key, as in config.option["Net.PVRDMAVmknic"] (vSphere Web Services SDK Programming Guide, "Indexed Array and
// Key-Based Array Properties").
func declares(t reflect.Type, path string) bool {
	var f mo.Field
	if !f.FromString(path) {
		return false
	}
	at, ok := follow(t, f.Path)
	if !ok || f.Key == nil {
		return ok
	}
	if at.Kind() != reflect.Slice {
		return false
	}
	element := dataType(at.Elem())
	key, keyed := follow(element, "key")
	if !keyed || key != reflect.TypeOf(f.Key) {
		return false
	}
	if f.Item == "" {
		return true
	}
	_, ok = follow(element, f.Item)
	return ok
}

// follow returns the declared type at the end of a path of property names.
func follow(t reflect.Type, path string) (reflect.Type, bool) {
	for name := range strings.SplitSeq(path, ".") {
		if t = dataType(t); t.Kind() != reflect.Struct || t == reflect.TypeFor[types.ManagedObjectReference]() {
			return nil, false
		}
		var ok bool
		if t, ok = member(t, name); !ok {
			return nil, false
		}
	}
	return dataType(t), true
}

// dataType dereferences pointers, and converts an interface of govmomi to the data type that it represents: a property of type
// BaseComputeResourceSummary is declared as ComputeResourceSummary.
func dataType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Interface {
		if base, ok := types.TypeFunc()(strings.TrimPrefix(t.Name(), "Base")); ok {
			return base
		}
	}
	return t
}

// member finds a property of a type by its API name. Inherited properties are included.
func member(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			if found, ok := member(dataType(f.Type), name); ok {
				return found, true
			}
			continue
		}
		tag := f.Tag.Get("xml")
		if tag == "" {
			tag = f.Tag.Get("json") // govmomi's managed objects have no other tag
		}
		if own, _, _ := strings.Cut(tag, ","); own == name && f.Name != "Self" {
			return f.Type, true
		}
	}
	return nil, false
}

// since contains the vSphere API release that added a property (vSphere Web Services API reference 7.0, "Since vSphere API 7.0"
// at HostNetworkInfo, HostCapability and ComputeResource). Properties that are not listed exist in 6.7.
var since = map[string]string{
	"config.network.rdmaDevice":                     "7.0.0",
	"capability.deviceRebindWithoutRebootSupported": "7.0.0",
	"lifecycleManaged":                              "7.0.0",
}

// younger reports whether a property was added after a version of vCenter.
func younger(path, vcenter string) bool {
	for known, version := range since {
		if (path == known || strings.HasPrefix(path, known+"[") || strings.HasPrefix(path, known+".")) && world.VersionLess(vcenter, version) {
			return true
		}
	}
	return false
}
