package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"syscall"
	"unicode"

	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Explain turns the error of a call into a backends.Error with the target, the operation (a clause: "enable the firewall ruleset
// pvrdma"), the cause and a hint. Nil stays nil; an error that was explained already only gets what it lacks.
func Explain(err error, target, what string) error {
	if err == nil {
		return nil
	}
	if known, is := errors.AsType[*backends.Error](err); is {
		if known.Target != "" {
			return err
		}
		return &backends.Error{Kind: known.Kind, Target: target, What: what, Hint: known.Hint, Err: err}
	}
	kind, text, hint := classify(err)
	if strings.HasPrefix(what, "read ") {
		text = strings.TrimSuffix(text, unsure)
	}
	return &backends.Error{Kind: kind, Target: target, What: what, Hint: hint, Err: worded{text, err}, Lasting: lasting(FaultOf(err))}
}

// unsure ends the text of an error after which a call may have taken effect, unless it only reads.
const unsure = "; whether it took effect is not known"

// lasting reports whether a fault is caused by the requested configuration and not by the current state: NotSupported,
// RestrictedVersion, and the faults that extend VmConfigFault (vSphere Web Services API). CannotAccessVmComponent and the faults
// that extend it may be temporary.
func lasting(f types.BaseMethodFault) bool {
	switch f.(type) {
	case types.BaseCannotAccessVmComponent:
		return false
	case types.BaseVmConfigFault, types.BaseNotSupported, *types.RestrictedVersion:
		return true
	}
	return false
}

// worded is an error with a better message; errors.Is and errors.As still find the cause.
type worded struct {
	text string
	err  error
}

func (w worded) Error() string { return w.text }
func (w worded) Unwrap() error { return w.err }

func classify(err error) (kind backends.ErrorKind, text, hint string) {
	text = Text(err)
	if f := FaultOf(err); f != nil {
		kind, hint = classifyFault(f)
		if p, ok := f.(*types.NoPermission); ok && p.PrivilegeId != "" {
			text = "permission denied (" + p.PrivilegeId + ")"
		}
		return kind, text, hint
	}
	var status *StatusError
	var rest *RESTError
	switch {
	case errors.As(err, &rest):
		kind, hint = rest.classify()
		return kind, text, hint
	case errors.Is(err, errHost):
		return backends.KindUnreachable, errHost.Error(), "check the host in vCenter, then run rdma-setup resume"
	case errors.Is(err, errSilence):
		return backends.KindUnreachable, "vCenter did not answer in time", "check vCenter's health, then run rdma-setup resume"
	case errors.Is(err, context.Canceled):
		return backends.KindInterrupted, "interrupted", ""
	case errors.Is(err, context.DeadlineExceeded):
		return backends.KindUnreachable, "it took longer than allowed", ""
	case isRestarting(err):
		return backends.KindTransient, "vCenter is restarting (" + text + ")", "wait until vCenter's services are up, then run rdma-setup resume"
	case errors.As(err, &status):
		return backends.KindUnreachable, text, "check that the address is a vCenter's"
	case isLong(err):
		return backends.KindPermanent, "vCenter's reply cannot be read (" + text + ")" + unsure, "check what is between this " +
			"machine and vCenter (proxies, firewalls), and vCenter's log; then run rdma-setup resume"
	case isUnreadable(err):
		return backends.KindTransient, "vCenter's reply cannot be read (" + text + ")" + unsure,
			"run rdma-setup resume, which first reads what was done"
	case isBroken(err):
		return backends.KindTransient, "the connection to vCenter was lost" + unsure, "run rdma-setup resume, which first reads what was done"
	}
	if _, is := errors.AsType[net.Error](err); is {
		return backends.KindUnreachable, plain(err), "check the network to vCenter, then run rdma-setup resume"
	}
	return backends.KindPermanent, text, ""
}

func classifyFault(f types.BaseMethodFault) (backends.ErrorKind, string) {
	switch f := f.(type) {
	case *types.NotAuthenticated:
		return backends.KindAuth, "the session was ended in vCenter; run it again"
	case *types.NoPermission:
		if f.PrivilegeId == "" {
			return backends.KindPermission, "print the role that is needed with: rdma-setup generate role"
		}
		return backends.KindPermission, "grant " + f.PrivilegeId + " to the account, or print the whole role with: rdma-setup generate role"
	case *types.InvalidLogin:
		return backends.KindAuth, "check user name and password"
	case *types.ConcurrentAccess:
		return backends.KindConflict, "somebody else is changing the same object; run it again"
	case *types.ManagedObjectNotFound:
		return backends.KindConflict, "it was removed meanwhile; run it again to plan from the current state"
	case *types.DuplicateName, *types.AlreadyExists:
		return backends.KindConflict, "an object with that name was created meanwhile; run it again to plan from the current state"
	case types.BaseTaskInProgress:
		return backends.KindTransient, "another task is working on it; wait for it to end, then run rdma-setup resume"
	case *types.RequestCanceled:
		return backends.KindPermanent, "the task was cancelled in vCenter; run rdma-setup resume"
	case types.BaseHostCommunication:
		return backends.KindUnreachable, "check the host's connection in vCenter, then run rdma-setup resume"
	case types.BaseTimedout:
		return backends.KindTransient, "look at the object's recent tasks in vCenter, then run rdma-setup resume"
	case *types.ResourceInUse:
		return backends.KindPermanent, "detach whatever uses it first"
	case types.BaseInsufficientResourcesFault:
		return backends.KindPermanent, "free resources on the host or move the VM"
	}
	return backends.KindPermanent, ""
}

// FaultOf returns the fault in err's chain, nil if there is none.
func FaultOf(err error) types.BaseMethodFault {
	var f interface{ Fault() types.BaseMethodFault }
	if errors.As(err, &f) {
		return f.Fault()
	}
	return nil
}

// Text returns the message of an error for display: vCenter's localized message with its details, or the fault's name if the
// server sends no message.
func Text(err error) string {
	f := FaultOf(err)
	if f == nil {
		return plain(err)
	}
	text := strings.TrimPrefix(err.Error(), "ServerFaultCode: ")
	if soap.IsSoapFault(err) {
		text = soap.ToSoapFault(err).String
	}
	if text = strings.TrimSpace(text); text == "" || strings.HasPrefix(text, "*types.") {
		text = faultName(f)
	}
	if m := f.GetMethodFault(); m != nil {
		for _, d := range m.FaultMessage {
			if d.Message != "" && !strings.Contains(text, strings.TrimSpace(d.Message)) {
				text += " " + strings.TrimSpace(d.Message)
			}
		}
	}
	return backends.Clean(text)
}

// faultName formats a type's name: *types.InvalidPowerState -> "invalid power state".
func faultName(f types.BaseMethodFault) string {
	var b strings.Builder
	for i, r := range reflect.TypeOf(f).Elem().Name() {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func plain(err error) string { return backends.Clean(backends.ErrorText(err)) }

func (c *Conn) explainConnect(ctx context.Context, err error) error {
	at := "vCenter " + c.host
	var (
		unknown  *UntrustedError
		mismatch *MismatchError
		dns      *net.DNSError
		record   tls.RecordHeaderError
		status   *StatusError
	)
	fail := func(kind backends.ErrorKind, hint, format string, args ...any) error {
		return backends.Errorf(kind, at, hint, format, args...)
	}
	const noVCenter = "use the address of a vCenter, such as https://vcenter.example/sdk"
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fail(backends.KindInterrupted, "", "connect: %w", ctx.Err())
	case errors.As(err, &unknown):
		return fail(backends.KindAuth, "compare the fingerprint with the vCenter administrator's; then continue with --thumbprint "+
			unknown.SHA256+" or set GOVC_TLS_CA_CERTS",
			"the certificate is not trusted (SHA-256 %s): %w", unknown.SHA256, unknown.Err)
	case errors.As(err, &mismatch):
		return fail(backends.KindAuth,
			"ask the vCenter administrator whether the certificate was renewed; if so, set the new one with --thumbprint",
			"the certificate is not the expected one: SHA-256 %s, expected %s", mismatch.Got, mismatch.Want)
	case errors.As(err, &dns) && !dns.IsTimeout:
		return fail(backends.KindUnreachable, "check the name and the resolver of this machine", "the name %s does not resolve: %w", dns.Name,
			dns)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail(backends.KindUnreachable, "check the port; vCenter listens on 443", "nothing listens there: connection refused")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fail(backends.KindUnreachable, "check routing and VPN of this machine", "%s", plain(err))
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response"):
		return fail(backends.KindUnreachable, noVCenter, "the server at this address does not use TLS")
	case isRestarting(err):
		return fail(backends.KindUnreachable, "wait until vCenter's services are up, then try again", "vCenter is starting: %w", err)
	case errors.As(err, &status):
		return fail(backends.KindUnreachable, noVCenter, "a web server answers, but it is not a vCenter: %w", status)
	case errors.Is(err, errSilence), errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return fail(backends.KindUnreachable, "check address, routing and firewalls between this machine and vCenter", "no answer within %s",
			c.cfg.timeout())
	case isLong(err), isUnreadable(err), strings.Contains(err.Error(), "expected element"):
		return fail(backends.KindUnreachable, noVCenter, "a web server answers, but it is not a vCenter")
	case FaultOf(err) != nil || soap.IsSoapFault(err):
		return fail(backends.KindUnreachable, noVCenter, "the server at this address is not a vCenter: %s", Text(err))
	}
	return fail(backends.KindUnreachable, noVCenter, "connect: %s", plain(err))
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

func (c *Conn) explainLogin(ctx context.Context, err error) error {
	at := "vCenter " + c.host
	switch f := FaultOf(err).(type) {
	case *types.InvalidLogin:
		if strings.Contains(strings.ToLower(err.Error()), "locked") {
			return backends.Authf(at,
				"wait for the lockout to end (5 minutes by default) or have the account unlocked in vCenter Single Sign-On",
				"log in as %s: the account is locked", c.cfg.Username)
		}
		return backends.Authf(at,
			"check user name (user@vsphere.local) and password; vCenter locks the account after a few failures and then returns the same error",
			"log in as %s: user name or password is wrong", c.cfg.Username)
	case *types.NoPermission:
		return backends.Authf(at, "give the account a role on the vCenter object; print it with: rdma-setup generate role",
			"log in as %s: the account has no permission in this vCenter", c.cfg.Username)
	case nil:
		return c.explainConnect(ctx, err)
	default:
		return backends.Authf(at, "", "log in as %s: %s", c.cfg.Username, fmt.Sprint(Text(err), faultDetail(f)))
	}
}

func faultDetail(f types.BaseMethodFault) string {
	if name := faultName(f); name != "" {
		return " (" + name + ")"
	}
	return ""
}
