package frame

import (
	"fmt"
	"reflect"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A dispatcher represents the methods of a kind in the registry. The router renames every call to Do, the only method that the
// simulator finds on a dispatcher. Do calls the real method, so that a panic in it becomes a fault.
type dispatcher struct {
	Self types.ManagedObjectReference
	kind *kind
}

// Reference implements mo.Reference.
func (d *dispatcher) Reference() types.ManagedObjectReference { return d.Self }

// Lock does nothing: calls to one kind run concurrently.
func (*dispatcher) Lock() {}

// Unlock does nothing. See Lock.
func (*dispatcher) Unlock() {}

// A gate is a dispatcher whose only method is called Login.
type gate struct{ dispatcher }

// Login handles calls without a session.
func (g *gate) Login(ctx *simulator.Context, c *call) soap.HasFault { return g.Do(ctx, c) }

// A call is the request body that the router substitutes for the original one.
type call struct {
	method string
	body   any
}

// Do calls the requested method.
func (d *dispatcher) Do(ctx *simulator.Context, c *call) soap.HasFault {
	return invoke(ctx, d.kind.find(c.method), c.method, c.body)
}

// invoke calls a method by its name in the API. If it panics, or returns an answer without a body, which could not be encoded,
// the result is a SystemError.
func invoke(ctx *simulator.Context, methods any, method string, body any) (answer soap.HasFault) {
	defer func() {
		if r := recover(); r != nil {
			answer = Answer(nil, Refuse(&types.SystemError{Reason: fmt.Sprint(r)}))
		}
	}()
	m := reflect.ValueOf(methods).MethodByName(methodName(method))
	in := []reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(body)}
	if m.Type().NumIn() == 1 {
		in = in[1:]
	}
	answer = m.Call(in)[0].Interface().(soap.HasFault)
	if answer.Fault() == nil && reflect.ValueOf(answer).Elem().FieldByName("Res").IsNil() {
		return Answer(nil, Refuse(&types.SystemError{Reason: method + " has no answer"}))
	}
	return answer
}

// remember records the user of a session at its first call and removes it at logout.
func (f *Frame) remember(ctx *simulator.Context, m *simulator.Method) {
	switch {
	case ctx.Session == nil:
	case m.Name == "Logout":
		if _, known := f.users.LoadAndDelete(ctx.Session.Key); known && f.Watch != nil {
			f.Watch.SessionEnded(ctx.Session.UserSession)
		}
	default:
		if _, known := f.users.LoadOrStore(ctx.Session.Key, ctx.Session.UserName); !known && f.Watch != nil {
			f.Watch.SessionBegan(ctx.Session.UserSession)
		}
	}
}

// SessionUser returns the user of a session by its cookie. It returns "" if the session has made no call or has ended.
func (f *Frame) SessionUser(cookie string) string {
	name, _ := f.users.Load(cookie)
	text, _ := name.(string)
	return text
}

// route is called for every SOAP call before the simulator searches for the method.
func (f *Frame) route(ctx *simulator.Context, m *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	f.World.Log.CountCall(m.Name)
	f.remember(ctx, m)
	if err := f.admit(ctx, m); err != nil {
		f.redirect(m, refuserType, "Refuse", &refusal{err: err})
		if ctx.Session == nil {
			// Without a session, the simulator accepts only a few method names; Login is one of them.
			m.Name = "Login"
			return f.gate, nil
		}
		return nil, nil
	}
	if ctx.Session == nil {
		return nil, nil
	}
	obj := ctx.Session.Get(m.This)
	if obj == nil {
		f.redirect(m, refuserType, "Refuse", &refusal{err: Gone(m.This)})
		return nil, nil
	}
	if k := f.kinds[m.This.Type]; k == nil || !k.has(m.Name) {
		if k != nil && k.whole || !borrowed(obj, m.Name) {
			f.redirect(m, refuserType, "Refuse", &refusal{err: Refuse(&types.NotSupported{})})
			return nil, nil
		}
		f.redirect(m, guardType, "Guard", &guarded{obj: obj, self: m.This, method: m.Name, body: m.Body})
		return nil, nil
	}
	if m.This.Type != "Task" && m.This.Type != "AuthorizationManager" {
		f.World.Log.Note(f.event(m))
	}
	f.redirect(m, m.This.Type, m.Name, m.Body)
	return nil, nil
}

func (f *Frame) event(m *simulator.Method) world.Event {
	t := f.Target(m.This)
	return world.Event{What: world.Call, Host: t.Host, VM: t.VM, Detail: m.Name}
}

func (f *Frame) redirect(m *simulator.Method, typeName, method string, body any) {
	m.This = f.kinds[typeName].Self
	m.Name = "Do"
	m.Body = &call{method: method, body: body}
}

const refuserType = "Refuser"

// A refuser answers calls that are refused.
type refuser struct{}

type refusal struct{ err error }

// Refuse answers with the fault of the refusal.
func (*refuser) Refuse(r *refusal) soap.HasFault { return Answer(nil, r.err) }

// reply is the body of every answer of the lab. The simulator derives the name of the XML element from the type in Res.
type reply struct {
	Res    any         `xml:"-"`
	Fault_ *soap.Fault `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault,omitempty"`
}

// Fault implements soap.HasFault.
func (r *reply) Fault() *soap.Fault { return r.Fault_ }

// Answer returns the result of a method: the response, a struct with the name that the API uses, or the fault of err.
func Answer(response any, err error) soap.HasFault {
	if err != nil {
		fault, text := faultOf(err)
		return &reply{Fault_: simulator.Fault(text, fault)}
	}
	return &reply{Res: response}
}

// Response returns the response inside an answer that Answer created.
func Response(answer soap.HasFault) any {
	if r, ok := answer.(*reply); ok {
		return r.Res
	}
	return nil
}
