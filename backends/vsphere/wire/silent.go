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

// again is how long a host gets that did not answer a call in time, before it is called again.
const again = time.Second

var errHost = errors.New("the host did not answer in time")

// hostOf returns the host that has to answer a call: vCenter passes it on. It is empty if vCenter answers by itself.
func (c *Conn) hostOf(body soap.HasFault) types.ManagedObjectReference {
	req := reflect.Indirect(reflect.ValueOf(body).Elem().FieldByName("Req"))
	if req.Kind() != reflect.Struct {
		return types.ManagedObjectReference{}
	}
	this, _ := req.FieldByName("This").Interface().(types.ManagedObjectReference)
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

// late returns the error of a call that has not ended before its context, and remembers a host that has used up its limit.
func (c *Conn) late(ctx context.Context, host types.ManagedObjectReference, err error) error {
	switch {
	case host.Value != "" && ctx.Err() == context.DeadlineExceeded:
		c.silent.Store(host, true)
		return errors.Join(errHost, err)
	case context.Cause(ctx) == errSilence:
		return errors.Join(errSilence, err)
	}
	return err
}

// answers reports whether a host may be called: one that used up a limit costs no second one, whatever calls it, until it answers a
// question again that only the host itself can answer (vSphere Web Services API, HostSystem, RetrieveHardwareUptime: System.Read). If
// vCenter is silent itself, the call is made, and waits for vCenter.
func (c *Conn) answers(ctx context.Context, host types.ManagedObjectReference) bool {
	if _, silent := c.silent.Load(host); !silent {
		return true
	}
	ask := func(call func(context.Context) error) bool {
		limited, cancel := context.WithTimeout(ctx, again)
		defer cancel()
		return call(limited) == nil || limited.Err() != context.DeadlineExceeded
	}
	if ask(func(ctx context.Context) error {
		_, err := methods.RetrieveHardwareUptime(ctx, traced{c}, &types.RetrieveHardwareUptime{This: host})
		return err
	}) {
		c.silent.Delete(host)
		return true
	}
	return !ask(func(ctx context.Context) error {
		_, err := methods.GetCurrentTime(ctx, traced{c})
		return err
	})
}
