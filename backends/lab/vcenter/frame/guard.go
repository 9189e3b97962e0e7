package frame

import (
	"reflect"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
)

const guardType = "Guard"

// A guard calls the simulator's own methods. The simulator calls a method with the object's lock held and, if the method panics,
// neither answers nor releases the lock: the next call on the object would wait forever.
type guard struct{}

// guarded is one such call.
type guarded struct {
	obj    mo.Reference
	method string
	body   any
}

// Guard calls the method under the object's lock, and releases the lock.
func (*guard) Guard(ctx *simulator.Context, c *guarded) soap.HasFault {
	self := c.obj.Reference()
	ctx.Caller = &self
	defer ctx.Map.AcquireLock(ctx, c.obj)()
	return invoke(ctx, c.obj, c.method, c.body)
}

// borrowed reports whether the simulator's own method of an object may be called. Its task methods may not: they run in their own
// goroutine, in which a panic ends the process, and expect objects of the simulator's own types.
func borrowed(obj mo.Reference, method string) bool {
	if strings.HasSuffix(method, "_Task") {
		return false
	}
	return reflect.ValueOf(obj).MethodByName(methodName(method)).IsValid()
}
