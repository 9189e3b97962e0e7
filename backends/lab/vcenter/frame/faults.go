package frame

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

// An Error is a refused request, with the fault and the message of vCenter.
type Error struct {
	Fault types.BaseMethodFault
	Text  string
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Refuse creates an error from a fault. Without a text, it uses vSphere's standard text for that type of fault.
func Refuse(fault types.BaseMethodFault, text ...string) *Error {
	e := &Error{Fault: fault, Text: strings.Join(text, " ")}
	if e.Text == "" {
		e.Text = words(fault)
	}
	return e
}

// BadArgument returns an InvalidArgument error for a parameter ("spec.name").
func BadArgument(name string) *Error {
	return Refuse(&types.InvalidArgument{InvalidProperty: name})
}

// Gone returns the error for a reference to an object that does not exist.
func Gone(ref types.ManagedObjectReference) *Error {
	return Refuse(&types.ManagedObjectNotFound{Obj: ref})
}

func faultOf(err error) (types.BaseMethodFault, string) {
	var e *Error
	if errors.As(err, &e) {
		return e.Fault, e.Text
	}
	return &types.SystemError{Reason: err.Error()}, "A general system error occurred: " + err.Error()
}

// Named creates a fault from the name of its type, for fault rules. It returns a SystemError if the type does not exist.
func Named(name, text string) *Error {
	if t, ok := types.TypeFunc()(name); ok {
		if fault, ok := reflect.New(t).Interface().(types.BaseMethodFault); ok {
			return Refuse(fault, text)
		}
	}
	return Refuse(&types.SystemError{Reason: name}, text)
}

var plain = map[string]string{
	"ConcurrentAccess":                 "Cannot complete operation due to concurrent modification by another operation.",
	"DvsOperationBulkFault":            "Cannot complete a vSphere Distributed Switch operation for one or more host members.",
	"GenericVmConfigFault":             "The virtual machine's configuration is invalid.",
	"HostNotConnected":                 "Unable to communicate with the remote host, since it is disconnected.",
	"HostNotReachable":                 "Unable to communicate with the remote host, since it is not responding.",
	"InvalidLogin":                     "Cannot complete login due to an incorrect user name or password.",
	"InvalidState":                     "The operation is not allowed in the current state.",
	"MethodNotFound":                   "The requested method does not exist.",
	"NoPermission":                     "Permission to perform this operation was denied.",
	"NotAuthenticated":                 "The session is not authenticated.",
	"NotFound":                         "The object or item referred to could not be found.",
	"NotSupported":                     "The operation is not supported on the object.",
	"RequestCanceled":                  "The task was canceled by a user.",
	"TaskInProgress":                   "The operation is not allowed: another task is already in progress.",
	"Timedout":                         "Operation timed out.",
	"ToolsUnavailable":                 "Cannot complete operation because VMware Tools is not running in this virtual machine.",
	"AlreadyUpgraded":                  "The virtual machine hardware is already at the requested version.",
	"InsufficientMemoryResourcesFault": "The available Memory resources in the parent resource pool are insufficient for the operation.",
	"InsufficientCpuResourcesFault":    "The available CPU resources in the parent resource pool are insufficient for the operation.",
	"HostConfigFault":                  "An error occurred during host configuration.",
	"UserNotFound":                     "The specified user or group could not be found.",
}

func words(fault types.BaseMethodFault) string {
	switch f := fault.(type) {
	case *types.InvalidArgument:
		if f.InvalidProperty == "" {
			return "A specified parameter was not correct."
		}
		return "A specified parameter was not correct: " + f.InvalidProperty
	case *types.InvalidName:
		return fmt.Sprintf("The name '%s' is invalid.", f.Name)
	case *types.DuplicateName:
		return fmt.Sprintf("The name '%s' already exists.", f.Name)
	case *types.AlreadyExists:
		return fmt.Sprintf("The specified key, name, or identifier '%s' already exists.", f.Name)
	case *types.ResourceInUse:
		return fmt.Sprintf("The resource '%s' is in use.", f.Name)
	case *types.ManagedObjectNotFound:
		return fmt.Sprintf("The object '%s' has already been deleted or has not been completely created", refText(f.Obj))
	case *types.InvalidPowerState:
		return fmt.Sprintf("The attempted operation cannot be performed in the current state (%s).", powerText(f.ExistingState))
	case *types.InvalidDeviceSpec:
		return fmt.Sprintf("Invalid configuration for device '%d'.", f.DeviceIndex)
	case *types.InvalidDeviceBacking:
		return fmt.Sprintf("Incompatible device backing specified for device '%d'.", f.DeviceIndex)
	case *types.SystemError:
		return "A general system error occurred: " + f.Reason
	case *types.MethodNotFound:
		return fmt.Sprintf("The method %s is not supported on %s.", f.Method, refText(f.Receiver))
	}
	name := reflect.TypeOf(fault).Elem().Name()
	if text, ok := plain[name]; ok {
		return text
	}
	return name
}

func powerText(p types.VirtualMachinePowerState) string {
	switch p {
	case types.VirtualMachinePowerStatePoweredOn:
		return "Powered on"
	case types.VirtualMachinePowerStateSuspended:
		return "Suspended"
	}
	return "Powered off"
}
