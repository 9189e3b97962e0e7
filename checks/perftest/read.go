package perftest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
	"github.com/rdma-setup/rdma-setup/backends/transcript/perflog"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// timedOut is the exit status of timeout(1).
const timedOut = 124

// read parses the rows in the client's output, or the first cause if there are none. It reports whether the output is complete.
func (r *Runner) read(test string, out Output, m *Measurement) (complete bool) {
	text := out.Stdout + "\n" + out.Stderr
	test, _, _ = strings.Cut(test, " ")
	var problems []scan.Message
	if strings.HasSuffix(test, "_lat") {
		res := perflog.Latency(test, text)
		problems, complete = res.Errors, res.Complete
		m.head(res.Header)
		for _, row := range res.Rows {
			m.Rows = append(m.Rows, latencyRow(row))
		}
	} else {
		res := perflog.Bandwidth(test, text)
		problems, complete = res.Errors, res.Complete
		m.head(res.Header)
		for _, row := range res.Rows {
			m.Rows = append(m.Rows, Row{Bytes: row.SizeBytes, Iterations: row.Iterations, PeakGbps: value(row.BWPeakGbps), AvgGbps: value(row.BWAvgGbps)})
		}
	}
	switch {
	case out.Exit == timedOut:
		m.Error = fmt.Sprintf("%s did not end within %s", test, r.limit())
		m.Hint = "perftest hangs when its peer dies or the link drops: check the port state on both ends"
	case len(problems) > 0:
		m.Error = problemWords(problems[0])
		m.Hint = remedies[problems[0].Code]
	case out.Exit != 0:
		m.Error = fmt.Sprintf("%s ended with status %d: %s", test, out.Exit, lastLine(text))
	case len(m.Rows) == 0:
		m.Error = test + " printed no result"
	}
	if m.Error != "" {
		m.Verdict = VerdictFail
	}
	return complete
}

func (m *Measurement) head(h perflog.Header) {
	if bidirectional := h.Bidirectional; bidirectional != nil && *bidirectional && !bothDirections(m.Test) {
		m.Test += bothFlag
	}
	if h.MTU != nil {
		m.MTU = int(*h.MTU)
	}
	if h.GIDIndex != nil {
		m.GIDIndex = int(*h.GIDIndex)
	}
}

func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

// firstCause describes why a tool ended.
func firstCause(test string, out Output) string {
	text := out.Stdout + "\n" + out.Stderr
	if e := toolErrors(test, text); len(e) > 0 {
		return problemWords(e[0])
	}
	if last := lastLine(text); last != "" {
		return last
	}
	return fmt.Sprintf("status %d", out.Exit)
}

func errorCode(test string, out Output) string {
	if e := toolErrors(test, out.Stdout+"\n"+out.Stderr); len(e) > 0 {
		return e[0].Code
	}
	return ""
}

func toolErrors(test, text string) []scan.Message {
	test, _, _ = strings.Cut(test, " ")
	if strings.HasSuffix(test, "_lat") {
		return perflog.Latency(test, text).Errors
	}
	return perflog.Bandwidth(test, text).Errors
}

func problemWords(m scan.Message) string {
	if m.Code == "not_understood" {
		return strings.TrimSpace("the tool is missing or printed something else: " + m.Text)
	}
	return m.Text
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// portTaken is the code for errTaken.
const portTaken = "port_taken"

// broken records why a test failed and returns the code of the cause, if it is one of perftest's or portTaken.
func (m *Measurement) broken(test string, err error) (code string) {
	m.Verdict, m.Error = VerdictFail, err.Error()
	if errors.Is(err, errTaken) {
		m.Hint = "wait for the other measurement to end, or stop the program that uses the port: ss -ltnp in the server's guest shows it"
		return portTaken
	}
	return errorCode(test, Output{Stderr: m.Error})
}

// remedies maps causes that perftest names to remedies.
var remedies = map[string]string{
	"connect_failed":   "open TCP 18515 and following between the guests, and ping the peer's RDMA address",
	"port_down":        "bring the RDMA interface up; for vmw_pvrdma reload the module last",
	"bad_device":       "the RDMA device is gone: run ibv_devices in the guest",
	"gid_missing":      "give the RDMA interface an IPv4 address, then use the index of its RoCE v2 entry",
	"bad_option":       "the installed perftest does not support an option: install the distribution's perftest on both ends",
	"version_mismatch": "install the same perftest on both ends, or set a source for all guests in measure.perftest; releases from 5.70 on refuse older ones (v4.4-0.11 is 5.60)",
	"mr_failed":        "raise memlock to unlimited for the user",
	"qp_create_failed": "raise memlock to unlimited; check dmesg in the guest",
	"qp_rtr_failed":    "MTU or GID of the two ends do not match: compare active_mtu and show_gids",
	"completion_error": "packets are lost or rejected in the network: check UDP 4791, VLAN, MTU and PFC",
	"exchange_failed":  "the peer closed the connection during the test: check the server's guest",
	"not_understood":   "install perftest in both guests",
	"rdma_cm_failed":   "check that rdma_cm is loaded and the address belongs to the RDMA interface",
	"cuda_unsupported": "install a perftest that was built with CUDA",
}

// Recordable reports whether the recorded output of a tool can be judged: the bandwidth and latency tests of perftest.
func Recordable(tool string) bool {
	if _, ok := transcript.Lookup(tool); !ok {
		return false
	}
	return strings.HasPrefix(tool, "ib_") && slices.Contains([]string{"_bw", "_lat"}, tool[strings.LastIndex(tool, "_"):])
}

// Recorded judges the client's output of a test that someone else ran, by the rules of Judge, on a link of linkMbps; 0 is
// unknown.
func Recorded(tool, text, mode string, linkMbps int) Measurement {
	m := Measurement{Test: tool, Rows: []Row{}}
	complete := (&Runner{}).read(tool, Output{Stdout: text}, &m)
	if m.Error != "" {
		return m
	}
	Judge(&m, mode, Fabric{LinkMbps: linkMbps})
	if !complete && m.Verdict == VerdictPass {
		m.Verdict, m.Hint = VerdictUnknown, "the output ends before its last line: pass the complete output"
	}
	return m
}
