package backends

import "time"

// A Call is one SOAP call, or one command on a host, in a guest or of kubectl, that has ended. It holds no secret: the
// payload names what was asked, never the fields or the input that may be one.
type Call struct {
	ID             string // of the request; vCenter writes that of a SOAP call into its own logs
	Method         string // "RetrievePropertiesEx", "esxcli network nic list", "ssh systemctl"
	Target         string
	Started        time.Time
	Took           time.Duration
	Outcome        string // "ok", "exit 1", the name of a fault
	Sent, Received int64  // bytes
	Payload        string // a summary
}

// A Trace is told of every call when it has ended; nil: nobody is. Many goroutines call it.
type Trace func(Call)
