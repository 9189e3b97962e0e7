package frame

import (
	"reflect"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

const guardType = "Guard"

// A guard calls the simulator's own methods. The simulator holds the object's lock during a call. If the method panics, it sends
// no answer and does not release the lock, and the next call on the object would wait forever.
type guard struct{}

// A guarded is a call of one such method. self is the reference in the call: obj.Reference copies the object, which is not locked yet.
type guarded struct {
	obj    mo.Reference
	self   types.ManagedObjectReference
	method string
	body   any
}

// Guard calls the method while holding the object's lock, and always releases the lock.
func (*guard) Guard(ctx *simulator.Context, c *guarded) soap.HasFault {
	ctx.Caller = &c.self
	defer ctx.Map.AcquireLock(ctx, c.obj)()
	return invoke(ctx, c.obj, c.method, c.body)
}

// borrowed reports whether the simulator's own method of an object may be called. Task methods may not: they run in their own
// goroutine, where a panic ends the process, and they expect objects of the simulator's own types.
func borrowed(obj mo.Reference, method string) bool {
	if strings.HasSuffix(method, "_Task") {
		return false
	}
	return reflect.ValueOf(obj).MethodByName(methodName(method)).IsValid()
}
