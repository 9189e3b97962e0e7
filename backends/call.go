package backends

import "time"

// A Call is a finished SOAP call, or a finished command on a host, in a guest or of kubectl. It holds no secret: the payload
// names what was requested, never fields or input that may contain a secret.
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

// A Trace receives every call when it has finished; it may be nil. It is called by many goroutines.
type Trace func(Call)
