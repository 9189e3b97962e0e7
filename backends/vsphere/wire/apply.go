package wire

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Tries bounds how often a change is repeated after a conflict or a lost connection.
const Tries = 5

// Apply makes a change and repeats it until it is read back. After a conflict or a lost connection it reads first, because the
// change may have been made. What is the clause for errors ("set option Net.PVRDMAVmknic").
func Apply(ctx context.Context, target, what string, to backends.Value, read func() (backends.Value, bool, error), act func() error) error {
	if err := Attempt(ctx, target, what, read, act); err != nil {
		return err
	}
	return Confirm(ctx, target, what, to, read)
}

// Set is Apply that reports the end.
func Set(ctx context.Context, target, what string, to backends.Value, progress backends.Progress, read func() (backends.Value, bool, error),
	act func() error) error {
	err := Apply(ctx, target, what, to, read, act)
	if err == nil {
		progress.Report(100)
	}
	return err
}

// Reading returns the read of Apply for a setting that reads back as it was set.
func Reading(ctx context.Context, read func(context.Context, backends.Setting) (backends.Value, error), t backends.Setting,
	to backends.Value) func() (backends.Value, bool, error) {
	return func() (backends.Value, bool, error) {
		got, err := read(ctx, t)
		return got, got == to, err
	}
}

// Attempt is Apply without the final read.
func Attempt(ctx context.Context, target, what string, read func() (backends.Value, bool, error), act func() error) error {
	for try := 1; ; try++ {
		err := act()
		if err == nil {
			return nil
		}
		err = Explain(err, target, what)
		if !Retriable(err) || try == Tries || !Pause(ctx, try) {
			return err
		}
		if _, same, rerr := read(); rerr == nil && same {
			return nil
		}
	}
}

// Confirm reads a value back. vCenter may return the old one until the host has reported the change, so Confirm retries for three
// seconds.
func Confirm(ctx context.Context, target, what string, to backends.Value, read func() (backends.Value, bool, error)) error {
	for try := 1; ; try++ {
		got, same, err := read()
		if err != nil {
			if err = Explain(err, target, what+": read it back"); backends.KindOf(err) == backends.KindTransient && try < Tries && Pause(ctx, try) {
				continue
			}
			return err
		}
		if same {
			return nil
		}
		if try == Tries || !Pause(ctx, try) {
			return backends.Conflictf(target, "another user or program sets it back; check the object's events in vCenter",
				"%s: it was accepted, but reads back as %s, not %s", what, got, to)
		}
	}
}

// Retriable reports whether the same change may succeed after an error.
func Retriable(err error) bool {
	switch backends.KindOf(err) {
	case backends.KindConflict, backends.KindTransient:
		return true
	}
	return false
}

// Pause waits, longer with each try; it returns false if ctx ends first.
func Pause(ctx context.Context, try int) bool {
	return backends.Sleep(ctx, time.Duration(try*try)*100*time.Millisecond)
}

// A TaskError is the error of a task that failed in vCenter.
type TaskError struct {
	Task    types.ManagedObjectReference
	Message string
	Cause   types.BaseMethodFault
}

func (e *TaskError) Error() string { return e.Message }

// Fault returns the fault itself, so that callers can inspect its type.
func (e *TaskError) Fault() types.BaseMethodFault { return e.Cause }

// Task waits for a task to end and reports its progress in percent. It returns the task's result. If ctx ends first the task
// continues in vCenter; the next read shows what it did.
func (c *Conn) Task(ctx context.Context, ref types.ManagedObjectReference, progress backends.Progress) (types.AnyType, error) {
	var end Object
	last, waited := int32(-1), time.Now()
	err := c.Watch(ctx, ref, func(o Object) bool {
		state := Value[types.TaskInfoState](o, "info.state")
		if now, ok := Prop[int32](o, "info.progress"); ok && now > last && state == types.TaskInfoStateRunning {
			last = now
			progress.Report(int(last))
		}
		end = o
		return state == types.TaskInfoStateSuccess || state == types.TaskInfoStateError
	})
	if err != nil {
		return nil, err
	}
	if Value[types.TaskInfoState](end, "info.state") == types.TaskInfoStateError {
		err := errors.New("the task failed without a reason")
		if why, ok := Prop[types.LocalizedMethodFault](end, "info.error"); ok {
			err = &TaskError{Task: ref, Message: why.LocalizedMessage, Cause: why.Fault}
		}
		c.traceTask(ref, waited, err)
		return nil, err
	}
	c.traceTask(ref, waited, nil)
	progress.Report(100)
	return end.Props["info.result"], nil
}

// TaskUser returns the user who started a task, from its info.reason; "" if the system or a schedule started it.
func TaskUser(task Object) string {
	switch r := task.Props["info.reason"].(type) {
	case types.TaskReasonUser:
		return r.UserName
	case *types.TaskReasonUser:
		return r.UserName
	}
	return ""
}

// started is the response of every method that starts a task.
type started interface {
	~struct {
		Returnval types.ManagedObjectReference `xml:"returnval" json:"returnval"`
	}
}

// Starts returns a function that calls a method and returns the task that the call has started.
func Starts[Q any, R started](c *Conn, method func(context.Context, soap.RoundTripper, *Q) (*R, error), req *Q) func(context.Context) (
	types.ManagedObjectReference, error) {
	return func(ctx context.Context) (types.ManagedObjectReference, error) {
		res, err := method(ctx, c.vim, req)
		if err != nil {
			return types.ManagedObjectReference{}, err
		}
		return struct{ Returnval types.ManagedObjectReference }(*res).Returnval, nil
	}
}

// Run starts a task and waits for its end as Task does.
func (c *Conn) Run(ctx context.Context, progress backends.Progress,
	start func(context.Context) (types.ManagedObjectReference, error)) (types.AnyType, error) {
	task, err := start(ctx)
	if err != nil {
		return nil, err
	}
	return c.Task(ctx, task, progress)
}

// DefaultTimeout is the default time limit for connecting.
const DefaultTimeout = 15 * time.Second

// A Config says which vCenter to connect to, how to verify it, and how to log in.
type Config struct {
	URL      string // host, host:port or https://host/sdk; no user info
	Username string

	// Password is called for each login, also after a session has expired: it should remember the answer.
	Password func(ctx context.Context) (string, error)

	// Thumbprint is the expected SHA-256 fingerprint of the certificate, with or without colons. If it is set, nothing else is
	// accepted, not even a certificate signed by a known authority.
	Thumbprint string
	// CAFiles are PEM files of the authorities to trust instead of the system's.
	CAFiles []string
	// Insecure accepts any certificate; if it is set, every page must show it.
	Insecure bool

	// Dial connects to HOST:PORT of a vCenter inside this process, past any proxy; nil: TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// Timeout bounds connecting and logging in, each; zero means DefaultTimeout.
	Timeout time.Duration
	// CallLimit bounds each later call whose own limit (2 min, 30 min for esxcli) is longer; zero: its own.
	CallLimit time.Duration
	// Pause is the delay before a call is repeated, longer each time; zero: half a second.
	Pause time.Duration
	// ReplyLimit bounds the bytes of one reply after login; zero: 64 MiB.
	ReplyLimit int64

	// Confirm is called on first use of a certificate that cannot be verified, with its SHA-256 fingerprint. Nil refuses.
	Confirm func(ctx context.Context, host, sha256 string) (bool, error)

	// Notice is called when vCenter cannot be reached any more, and when it answers again; may be nil.
	Notice func(text string)
	// Trace receives every call; may be nil.
	Trace backends.Trace

	// UserAgent names the program in vCenter's list of sessions; empty: the library's own.
	UserAgent string
}

func (c *Config) endpoint() (*url.URL, error) {
	if strings.TrimSpace(c.URL) == "" {
		return nil, backends.Usagef("", "give --url or set RDMA_SETUP_URL", "no vCenter address given")
	}
	u, err := backends.VCenterAddress(c.URL)
	if err != nil {
		return nil, err
	}
	if c.Username == "" {
		c.Username = u.User.Username()
	}
	u.User = nil
	return u, nil
}

func (c *Config) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return DefaultTimeout
}

func (c *Config) pause() time.Duration {
	if c.Pause > 0 {
		return c.Pause
	}
	return 500 * time.Millisecond
}
