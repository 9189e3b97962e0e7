package wire

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// again is how long a host gets that did not answer a call in time, before it is called again. It doubles with each question that is
// not answered either, up to patience: a slow host is not lost for ever.
const (
	again    = time.Second
	patience = 10 * time.Second
)

var errHost = errors.New("the host did not answer in time")

// thisOf returns the object of a call.
func thisOf(body soap.HasFault) (this types.ManagedObjectReference) {
	if req := reflect.Indirect(reflect.ValueOf(body).Elem().FieldByName("Req")); req.Kind() == reflect.Struct {
		this, _ = req.FieldByName("This").Interface().(types.ManagedObjectReference)
	}
	return this
}

// hostOf returns the host that has to answer a call to an object: vCenter passes it on. It is empty if vCenter answers by itself.
func (c *Conn) hostOf(this types.ManagedObjectReference) types.ManagedObjectReference {
	if p, is := c.parts.Load(this); is {
		return p.(hostPart).owner
	}
	if host, is := c.runs.Load(this); is {
		return host.(types.ManagedObjectReference)
	}
	if this.Type != "HostSystem" {
		return types.ManagedObjectReference{}
	}
	return this
}

// late returns the error of a call that has not ended before its context, and remembers a host that has used up the limit of the call.
// A deadline of the caller may be short: it counts only if the host does not answer a small question either. If vCenter is silent, nobody
// knows about its hosts.
func (c *Conn) late(ctx context.Context, host types.ManagedObjectReference, err error) error {
	own, after := context.Cause(ctx) == errSilence, context.WithoutCancel(ctx)
	switch {
	case host.Value != "" && ctx.Err() == context.DeadlineExceeded && (own || !c.hostAnswers(after, host, again)) && c.vcenterAnswers(after):
		c.silent.LoadOrStore(host, again)
		return errors.Join(errHost, err)
	case own:
		return errors.Join(errSilence, err)
	}
	return err
}

// reach returns the host that has to answer a call to an object, and an error if it may not be called: a host that used up a limit costs
// no second one, whatever calls it, until it answers a question again. If vCenter is silent itself, the call is made, and waits for
// vCenter. A VM may have left the host meanwhile: HA and DRS move it.
func (c *Conn) reach(ctx context.Context, this types.ManagedObjectReference) (types.ManagedObjectReference, error) {
	for host, moved := c.hostOf(this), false; ; moved = true {
		limit, silent := c.silent.Load(host)
		if !silent {
			return host, nil
		}
		if c.hostAnswers(ctx, host, limit.(time.Duration)) {
			c.silent.Delete(host)
			return host, nil
		}
		if ctx.Err() == nil && !c.vcenterAnswers(ctx) {
			return host, nil
		}
		was := host
		if ctx.Err() == nil {
			c.silent.CompareAndSwap(host, limit, min(2*limit.(time.Duration), patience))
			if this.Type == "VirtualMachine" && !moved {
				_, _ = c.Retrieve(ctx, []types.PropertyFilterSpec{{ObjectSet: []types.ObjectSpec{{Obj: this}},
					PropSet: []types.PropertySpec{{Type: this.Type, PathSet: []string{"runtime.host"}}}}}, func(Object) {})
				host = c.hostOf(this)
			}
		}
		switch {
		case ctx.Err() != nil:
			return host, c.late(ctx, host, ctx.Err())
		case host == was:
			return host, errHost
		}
	}
}

// hostAnswers asks what only the host itself can answer (vSphere Web Services API, HostSystem, RetrieveHardwareUptime: System.Read).
func (c *Conn) hostAnswers(ctx context.Context, host types.ManagedObjectReference, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := methods.RetrieveHardwareUptime(ctx, traced{c}, &types.RetrieveHardwareUptime{This: host})
	return err == nil || FaultOf(err) != nil
}

func (c *Conn) vcenterAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, again)
	defer cancel()
	_, err := methods.GetCurrentTime(ctx, traced{c})
	return err == nil || FaultOf(err) != nil
}
