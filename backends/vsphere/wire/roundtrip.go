package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"time"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Limits of one call. A server that accepts the call and never answers must not block the program for ever.
const (
	callLimit   = 2 * time.Minute
	esxcliLimit = 30 * time.Minute // installing a VIB is one call
	waitSeconds = 20               // how long vCenter holds a WaitForUpdatesEx: a connection that swallows everything is noticed then
	waitGrace   = 10 * time.Second
)

var errSilence = errors.New("no answer in time")

// errNoReply is the error for a reply that lacks the answer to the call. The library takes it for a success.
var errNoReply = errors.New("the reply holds no answer")

// RoundTrip implements soap.RoundTripper: each call is limited in time; an expired session is renewed and the call repeated,
// which is safe for any call because the server refused the first one; the same applies while vCenter restarts (503). A read-only
// call is repeated once if the connection is lost.
func (c *Conn) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	seen := c.session()
	err := retrier{c}.RoundTrip(ctx, req, res)
	if !unauthenticated(err, res) {
		return err
	}
	if err := c.login(ctx, seen); err != nil {
		return err
	}
	reset(res)
	return retrier{c}.RoundTrip(ctx, req, res)
}

// retrier is the round tripper below the session: it waits for a restart to end and repeats reads whose connection was lost.
type retrier struct{ c *Conn }

func (p retrier) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	method := methodOf(req)
	ctx, cancel := context.WithTimeoutCause(ctx, p.c.cfg.limitOf(method), errSilence)
	defer cancel()

	host, err := p.c.reach(ctx, thisOf(req))
	if err != nil {
		return err
	}
	if host.Value != "" {
		name := p.c.targetOf(ctx, host)
		told, over := (*backends.Voice)(nil).Waiting(ctx, "answer from "+name, name, p.c.cfg.limitOf(method))
		defer over()
		ctx = told
	}
	deadline := time.Now().Add(p.c.cfg.timeout())
	pause := p.c.cfg.pause()
	broken := 0
	for {
		try, sent := sending(ctx)
		err := traced(p).RoundTrip(try, req, res)
		if err == nil && !answered(res) {
			err = errNoReply
		}
		switch {
		case err == nil:
			p.c.found()
			return nil
		case ctx.Err() != nil:
			return p.c.late(ctx, host, err)
		case isRestarting(err) && method == "WaitForUpdatesEx":
			return err // the watcher checks whether other calls are answered
		case isRestarting(err) && time.Now().Add(pause).Before(deadline):
		case !sent.Load() && p.c.lost(err):
		case isBroken(err) && reads(method) && broken == 0:
			broken++
		default:
			return err
		}
		if !backends.Sleep(ctx, pause) {
			return err
		}
		pause = min(2*pause, 4*time.Second)
		reset(res)
	}
}

// noteTask records a task that this connection has started, with the call that has started it.
func (c *Conn) noteTask(call backends.Call, res soap.HasFault) {
	if !strings.HasSuffix(call.Method, "_Task") {
		return
	}
	if v := reflect.ValueOf(res).Elem().FieldByName("Res"); v.IsValid() && !v.IsNil() {
		if task, is := v.Elem().FieldByName("Returnval").Interface().(types.ManagedObjectReference); is {
			c.started.Store(task, call)
		}
	}
}

// traceTask reports the end of a task that the program has waited for: the call that starts a task succeeds whether or not the task
// does. A task that another connection has started is named by its reference, and its time begins with the wait.
func (c *Conn) traceTask(task types.ManagedObjectReference, waited time.Time, err error) {
	if c.cfg.Trace == nil {
		return
	}
	began := backends.Call{Target: task.Type + ":" + task.Value, Started: waited}
	if call, ok := c.started.Load(task); ok {
		began = call.(backends.Call)
	}
	c.cfg.Trace(backends.Call{ID: began.ID, Method: strings.TrimSpace("task " + began.Method), Target: began.Target, Started: began.Started,
		Took:    time.Since(began.Started),
		Outcome: outcome(context.Background(), err, nil), Payload: task.Value})
}

// Started reports whether a task was started by this connection.
func (c *Conn) Started(task types.ManagedObjectReference) bool {
	_, is := c.started.Load(task)
	return is
}

// methodOf returns the SOAP method of the library's body type: *methods.LoginBody -> Login.
func methodOf(req soap.HasFault) string {
	return strings.TrimSuffix(reflect.TypeOf(req).Elem().Name(), "Body")
}

func (c *Config) limitOf(method string) time.Duration {
	limit := callLimit
	switch method {
	case "WaitForUpdatesEx":
		limit = time.Duration(c.waitSeconds())*time.Second + waitGrace
	case "ExecuteSoap":
		limit = esxcliLimit
	}
	if c.CallLimit > 0 {
		return min(limit, c.CallLimit)
	}
	return limit
}

// waitSeconds is how long vCenter should hold a WaitForUpdatesEx: well below the limit of a call.
func (c *Config) waitSeconds() int32 {
	if c.CallLimit > 0 {
		return max(1, min(waitSeconds, int32(c.CallLimit/time.Second)/2))
	}
	return waitSeconds
}

// outage is how long waits continue while vCenter cannot be reached.
func (c *Config) outage() time.Duration {
	if c.CallLimit > 0 {
		return min(outage, 10*c.CallLimit)
	}
	return outage
}

// reads reports whether a method changes nothing except this session's views and, for a refresh, what vCenter knows of a host. A
// method that starts a task is not a read, whatever its name.
func reads(method string) bool {
	if strings.HasSuffix(method, "_Task") {
		return false
	}
	for _, prefix := range []string{"Retrieve", "Refresh", "ContinueRetrieve", "Query", "Fetch", "CurrentTime", "HasPrivilege",
		"CreateContainerView", "DestroyView"} {
		if strings.HasPrefix(method, prefix) {
			return true
		}
	}
	return false
}

// answered reports whether the body of a reply contains the answer: every method has one, even if it is an empty element.
func answered(res soap.HasFault) bool {
	f := reflect.ValueOf(res).Elem().FieldByName("Res")
	return !f.IsValid() || f.Kind() != reflect.Pointer || !f.IsNil()
}

// reset empties a reply so that a second answer is not merged with the first.
func reset(res soap.HasFault) { reflect.ValueOf(res).Elem().SetZero() }

func unauthenticated(err error, res soap.HasFault) bool {
	if err != nil {
		return fault.Is(err, &types.NotAuthenticated{})
	}
	// Without a session some servers return no fault here, but report it for each property.
	switch body := res.(type) {
	case *methods.RetrievePropertiesExBody:
		return body.Res != nil && body.Res.Returnval != nil && missingAuth(body.Res.Returnval.Objects)
	case *methods.ContinueRetrievePropertiesExBody:
		return body.Res != nil && missingAuth(body.Res.Returnval.Objects)
	}
	return false
}

func missingAuth(objects []types.ObjectContent) bool {
	for _, o := range objects {
		for _, m := range o.MissingSet {
			if _, ok := m.Fault.Fault.(*types.NotAuthenticated); ok {
				return true
			}
		}
	}
	return false
}

func isRestarting(err error) bool {
	var s *StatusError
	return errors.As(err, &s) &&
		(s.Code == http.StatusServiceUnavailable || s.Code == http.StatusBadGateway || s.Code == http.StatusGatewayTimeout)
}

// isBroken reports whether an error leaves it unknown whether the server has acted. net.ErrClosed means that the transport has
// closed the connection, as the server did, while a request was being written (crypto/tls, Conn.Write).
func isBroken(err error) bool {
	return isUnreadable(err) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || strings.Contains(err.Error(), "server closed idle connection")
}

// isUnreadable reports whether a reply arrived that does not contain an answer.
func isUnreadable(err error) bool {
	var syntax *xml.SyntaxError
	var mismatch xml.UnmarshalError
	return errors.Is(err, errNoReply) || errors.As(err, &syntax) || errors.As(err, &mismatch)
}

// isLong reports whether a reply exceeded its limits. A repeated call would get the same answer.
func isLong(err error) bool {
	var long *LongReplyError
	return errors.As(err, &long)
}
