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
// neither answers nor releases the lock: the next call on the object would wait for ever.
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

// borrowed reports whether the simulator's own method of an object may be called. A task of the simulator's is none: it runs in a
// goroutine of its own, in which a panic ends the process, and expects objects of the simulator's own types.
func borrowed(obj mo.Reference, method string) bool {
	if strings.HasSuffix(method, "_Task") {
		return false
	}
	return reflect.ValueOf(obj).MethodByName(methodName(method)).IsValid()
}
