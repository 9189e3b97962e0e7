package backends

import "time"

// A Call is a finished SOAP call, or a finished command on a host, in a guest or of kubectl. It holds no secret: the payload
// names what was requested, never fields or input that may contain a secret.
type Call struct {
	ID             string // id of the request; vCenter writes the id of a SOAP call to its own logs
	Method         string // "RetrievePropertiesEx", "esxcli network nic list", "ssh systemctl"
	Target         string
	Started        time.Time
	Took           time.Duration
	Outcome        string // "ok", "exit 1", or the name of a fault
	Sent, Received int64  // bytes
	Payload        string // a summary
}

// A Trace receives every finished call. It may be nil. It must be safe for concurrent use.
type Trace func(Call)
