package lab

import (
	"reflect"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

// internalMethods are those of vCenter that esxcli uses. The public API does not contain them.
var internalMethods = []string{"ExecuteSoap", "RetrieveManagedMethodExecuter", "RetrieveDynamicTypeManager"}

// IsMethod reports whether the vSphere Web Services API has a method, with or without _Task.
func IsMethod(name string) bool {
	if slices.Contains(internalMethods, name) {
		return true
	}
	_, ok := types.TypeFunc()(strings.TrimSuffix(name, "_Task") + "RequestType")
	return ok
}

// IsFault reports whether the vSphere Web Services API has a fault.
func IsFault(name string) bool {
	t, ok := types.TypeFunc()(name)
	if !ok {
		return false
	}
	_, ok = reflect.New(t).Interface().(types.BaseMethodFault)
	return ok
}
