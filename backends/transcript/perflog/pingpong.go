package perflog

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// PingPongAddress is one end of the queue pair of ibv_rc_pingpong.
type PingPongAddress struct {
	LID *int64  `json:"lid"`
	QPN *int64  `json:"qpn"`
	PSN *int64  `json:"psn"`
	GID *string `json:"gid"` // eight groups of four hex digits
}

// PingPongResult is the text of ibv_rc_pingpong, ibv_uc_pingpong or ibv_ud_pingpong.
type PingPongResult struct {
	scan.Envelope
	Local            *PingPongAddress `json:"local"`
	Remote           *PingPongAddress `json:"remote"`
	Bytes            *int64           `json:"bytes"`
	Seconds          *float64         `json:"seconds"`
	BandwidthGbps    *float64         `json:"bandwidth_gbps"`
	Iterations       *int64           `json:"iterations"`
	UsecPerIteration *float64         `json:"usec_per_iteration"`
}

// pingPongCodes are the codes of this tool: others are not reported for it.
var pingPongCodes = []string{"qp_rtr_failed", "exchange_failed", "connect_failed", "bad_device", "completion_error"}

// PingPong reads the text of a ping-pong test; tool is "ibv_rc_pingpong".
func PingPong(tool, text string) PingPongResult {
	var r PingPongResult
	r.Envelope, text = scan.Begin(tool, text)
	var c cause
	var open *PingPongAddress
	understood := false
	part := "" // the name of an address part whose value is on the next line
	for line := range scan.Lines(text) {
		line = strings.TrimSpace(line)
		lower := strings.ToLower(line)
		if i := strings.Index(lower, "local address:"); i >= 0 {
			open = &PingPongAddress{}
			scan.Keep(&r.Local, open)
			line = open.read(line[i:])
		}
		if i := strings.Index(strings.ToLower(line), "remote address:"); i >= 0 {
			open = &PingPongAddress{}
			scan.Keep(&r.Remote, open)
			line = open.read(line[i:])
		}
		if open != nil && startsWithPart(part+line) { // wrapped
			line = open.read(part + line)
		}
		if part = ""; startsWithPart(line) {
			part = line + " "
		}
		understood = r.rates(strings.ToLower(line)) || understood || open != nil
		c.line(line, lower)
	}
	if c.code != "" && !containsAny(c.code, pingPongCodes...) {
		c = cause{}
	}
	c.report(&r.Envelope)
	r.NotUnderstood(understood, text)
	return r
}

func startsWithPart(line string) bool {
	word, _, _ := strings.Cut(line, " ")
	return word == "LID" || word == "QPN" || word == "PSN" || word == "GID"
}

// read reads the parts of an address and returns the text after them.
func (a *PingPongAddress) read(line string) string {
	if i := strings.Index(line, "address:"); i >= 0 {
		line = line[i+len("address:"):]
	}
	for {
		name, rest, _ := strings.Cut(strings.TrimLeft(line, " \t,"), " ")
		value, behind, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
		value = strings.TrimRight(value, ",;")
		switch strings.ToUpper(name) {
		case "LID", "QPN", "PSN", "GID":
			if value == "" {
				return name
			}
		}
		switch strings.ToUpper(name) {
		case "LID":
			scan.Keep(&a.LID, scan.Int(value))
		case "QPN":
			scan.Keep(&a.QPN, scan.Int(value))
		case "PSN":
			scan.Keep(&a.PSN, scan.Int(value))
		case "GID":
			scan.Keep(&a.GID, scan.GID(value))
		default:
			return strings.TrimSpace(line)
		}
		line = behind
	}
}

// rates reads "8192000 bytes in 0.01 seconds = 8566.60 Mbit/sec" and "1000 iters in 0.01 seconds = 7.65 usec/iter", also if both
// are on one line.
func (r *PingPongResult) rates(lower string) bool {
	words := strings.Fields(lower)
	found := false
	for i := 1; i < len(words); i++ {
		w := strings.TrimRight(words[i], ",.")
		switch w {
		case "bytes":
			scan.Keep(&r.Bytes, scan.Int(words[i-1]))
		case "seconds":
			scan.Keep(&r.Seconds, scan.Float(words[i-1]))
		case "iters":
			scan.Keep(&r.Iterations, scan.Int(words[i-1]))
		case "usec/iter":
			scan.Keep(&r.UsecPerIteration, scan.Float(words[i-1]))
			found = true
		case "mbit/sec", "gbit/sec":
			if f := scan.Float(words[i-1]); f != nil {
				gbps := *f
				if w == "mbit/sec" {
					gbps /= 1000
				}
				scan.Keep(&r.BandwidthGbps, &gbps)
				found = true
			}
		}
	}
	return found
}
