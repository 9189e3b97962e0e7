package wire

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// traced is the round tripper for every SOAP call, including each repetition. It reports calls to the trace. The id of a request
// is sent in the header field operationID, which vCenter and ESXi log (govmomi, vim25/soap, Header.ID: "used by ESX/vCenter
// logging for correlation").
type traced struct{ c *Conn }

func (t traced) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	if t.c.cfg.Trace == nil {
		err := t.c.soap.RoundTrip(ctx, req, res)
		if err == nil {
			t.c.noteTask(backends.Call{Method: methodOf(req)}, res)
		}
		return err
	}
	call := backends.Call{ID: fmt.Sprintf("%s-%d", t.c.traceID, t.c.requests.Add(1)), Started: time.Now()}
	size := &bodySize{}
	err := t.c.soap.RoundTrip(context.WithValue(context.WithValue(ctx, bodySize{}, size), types.ID{}, call.ID), req, res)
	call.Took, call.Sent, call.Received = time.Since(call.Started), size.sent.Load(), size.received.Load()
	call.Method, call.Target, call.Payload = t.c.describe(ctx, req)
	call.Outcome = outcome(ctx, err, res)
	if err == nil {
		t.c.noteTask(call, res)
	}
	t.c.cfg.Trace(call)
	return err
}

// bodySize counts the bytes of one call's bodies; the meter finds it in the context.
type bodySize struct{ sent, received atomic.Int64 }

// Names sets the function that names managed objects in traces; it returns "" for unknown ones.
func (c *Conn) Names(name func(types.ManagedObjectReference) string) { c.named = name }

type targetKey struct{}

// On sets the target name of the calls made with the context, for calls whose managed object does not show it.
func On(ctx context.Context, target string) context.Context {
	return context.WithValue(ctx, targetKey{}, target)
}

// describe extracts method, target and a summary of the arguments from the library's body type.
func (c *Conn) describe(ctx context.Context, body soap.HasFault) (method, target, payload string) {
	method = methodOf(body)
	req := reflect.ValueOf(body).Elem().FieldByName("Req")
	if !req.IsValid() || req.Kind() != reflect.Pointer || req.IsNil() {
		return method, c.host, ""
	}
	req = req.Elem()
	if this, ok := req.FieldByName("This").Interface().(types.ManagedObjectReference); ok {
		target = c.targetOf(ctx, this)
	} else {
		target, _ = ctx.Value(targetKey{}).(string)
	}
	if method == "ExecuteSoap" {
		executed := req.FieldByName("Method").String()
		if command, ok := strings.CutPrefix(executed, "vim.EsxCLI."); ok {
			method = "esxcli " + strings.ReplaceAll(command, ".", " ")
		} else {
			method += " " + executed
		}
	}
	return method, target, summary(req)
}

// summary formats the plain arguments of a call, and only the types of the others. Arguments whose name suggests a secret are
// left out.
func summary(req reflect.Value) string {
	var parts []string
	for i := range req.NumField() {
		f, v := req.Type().Field(i), req.Field(i)
		if f.Name == "This" || v.IsZero() || !f.IsExported() {
			continue
		}
		name := strings.ToLower(f.Name[:1]) + f.Name[1:]
		switch v = reflect.Indirect(v); {
		case secret(name):
			parts = append(parts, name+"=(left out)")
		case v.Kind() == reflect.String:
			parts = append(parts, name+"="+short(v.String()))
		case v.CanInt(), v.CanUint(), v.Kind() == reflect.Bool:
			parts = append(parts, fmt.Sprintf("%s=%v", name, v.Interface()))
		case v.Type() == reflect.TypeFor[[]types.PropertyFilterSpec]():
			parts = append(parts, asked(v.Interface().([]types.PropertyFilterSpec)))
		case v.Kind() == reflect.Slice:
			parts = append(parts, fmt.Sprintf("%s=[%d]", name, v.Len()))
		case v.Type() == reflect.TypeFor[types.ManagedObjectReference]():
			ref, _ := v.Interface().(types.ManagedObjectReference)
			parts = append(parts, name+"="+ref.Type+":"+ref.Value)
		case v.Kind() == reflect.Interface:
			parts = append(parts, name+"="+strings.TrimPrefix(fmt.Sprintf("%T", v.Interface()), "*types."))
		default:
			parts = append(parts, name+"="+v.Type().Name())
		}
	}
	return strings.Join(parts, " ")
}

// secret reports whether an argument's value may be a secret, such as password, cloneTicket or base64Token, or may identify a
// login, such as sessionId.
func secret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"password", "secret", "token", "ticket", "credential", "privatekey", "passphrase", "session"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// asked returns how many properties are requested, by type.
func asked(specs []types.PropertyFilterSpec) string {
	var parts []string
	for _, spec := range specs {
		for _, set := range spec.PropSet {
			parts = append(parts, fmt.Sprintf("%s(%d)", set.Type, len(set.PathSet)))
		}
		parts = append(parts, fmt.Sprintf("from %d objects", len(spec.ObjectSet)))
	}
	return strings.Join(parts, " ")
}

func short(s string) string { return backends.Clean(backends.Shorten(s, 80)) }

// outcome describes the result in a few words: a fault by its name in the API.
func outcome(ctx context.Context, err error, res soap.HasFault) string {
	var status *StatusError
	switch {
	case err == nil && res == nil:
		return "ok"
	case err == nil && !answered(res):
		return errNoReply.Error()
	case err == nil && esxcliFault(res):
		return "fault"
	case err == nil:
		return "ok"
	case FaultOf(err) != nil:
		return reflect.TypeOf(FaultOf(err)).Elem().Name()
	case errors.As(err, &status):
		return fmt.Sprintf("HTTP %d", status.Code)
	case errors.Is(context.Cause(ctx), errSilence):
		return "no answer in time"
	case ctx.Err() != nil:
		return "canceled"
	}
	return short(plain(err))
}

// esxcliFault reports whether a reply to ExecuteSoap contains a fault of esxcli.
func esxcliFault(res soap.HasFault) bool {
	v := reflect.ValueOf(res).Elem().FieldByName("Res")
	for _, name := range []string{"Returnval", "Fault"} {
		if v = reflect.Indirect(v); v.Kind() != reflect.Struct {
			return false
		}
		v = v.FieldByName(name)
	}
	return v.IsValid() && v.Kind() == reflect.Pointer && !v.IsNil() && strings.HasSuffix(v.Type().Elem().Name(), "SoapFault")
}
