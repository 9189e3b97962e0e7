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
	var e scan.Envelope
	var h perflog.Header
	if strings.HasSuffix(test, "_lat") {
		res := perflog.Latency(test, text)
		e, h, complete = res.Envelope, res.Header, res.Complete
		for _, row := range res.Rows {
			if row.TTypicalUs != nil || row.TAvgUs != nil {
				m.Rows = append(m.Rows, latencyRow(row))
			}
		}
	} else {
		res := perflog.Bandwidth(test, text)
		e, h, complete = res.Envelope, res.Header, res.Complete
		for _, row := range res.Rows {
			if row.BWAvgGbps != nil {
				m.Rows = append(m.Rows, Row{Bytes: row.SizeBytes, Iterations: row.Iterations, PeakGbps: value(row.BWPeakGbps), AvgGbps: *row.BWAvgGbps})
			}
		}
	}
	m.head(h)
	overflow := slices.ContainsFunc(e.Warnings, func(w scan.Message) bool { return w.Code == perflog.CodeOverflow })
	m.Verdict = VerdictFail
	switch {
	case out.Exit == timedOut:
		m.Error = fmt.Sprintf("%s did not end within %s", test, r.limit())
		m.Hint = "perftest hangs when its peer dies or the link drops: check the port state on both ends"
	case len(e.Errors) > 0:
		m.Error = problemWords(e.Errors[0])
	case out.Exit != 0:
		m.Error = fmt.Sprintf("%s ended with status %d: %s", test, out.Exit, lastLine(text))
	case h.LinkLayer != nil && *h.LinkLayer == "IB":
		m.Error, m.Hint = test+" used an InfiniBand port", "the port is InfiniBand (Link type IB): set LINK_TYPE to ETH, then restart its host"
	case len(m.Rows) == 0 && overflow:
		m.Verdict, m.Error = VerdictUnknown, test+" printed no figure: its counters overflowed"
		m.Hint = "perftest's counters overflowed in a long run: repeat with a shorter -D"
	case len(m.Rows) == 0:
		m.Error = test + " printed no result"
	default:
		m.Verdict = ""
	}
	if len(e.Errors) > 0 && m.Hint == "" {
		m.Hint = m.remedy(e, h, r.Mode)
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
	if e, _ := toolOutput(test, out.Stdout+"\n"+out.Stderr); len(e.Errors) > 0 {
		return problemWords(e.Errors[0])
	}
	if last := lastLine(out.Stdout + "\n" + out.Stderr); last != "" {
		return last
	}
	return fmt.Sprintf("status %d", out.Exit)
}

func errorCode(test string, out Output) string {
	if e, _ := toolOutput(test, out.Stdout+"\n"+out.Stderr); len(e.Errors) > 0 {
		return e.Errors[0].Code
	}
	return ""
}

func toolOutput(test, text string) (scan.Envelope, perflog.Header) {
	test, _, _ = strings.Cut(test, " ")
	if strings.HasSuffix(test, "_lat") {
		res := perflog.Latency(test, text)
		return res.Envelope, res.Header
	}
	res := perflog.Bandwidth(test, text)
	return res.Envelope, res.Header
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
func (m *Measurement) broken(test, mode string, err error) (code string) {
	m.Verdict, m.Error = VerdictFail, err.Error()
	if errors.Is(err, errTaken) {
		m.Hint = "wait for the other measurement to end, or stop the program that uses the port: ss -ltnp in the server's guest shows it"
		return portTaken
	}
	e, h := toolOutput(test, m.Error)
	if len(e.Errors) == 0 {
		return ""
	}
	if e.Errors[0].Code != "not_understood" {
		m.Hint = m.remedy(e, h, mode)
	}
	return e.Errors[0].Code
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
	complete := (&Runner{Mode: mode}).read(tool, Output{Stdout: text}, &m)
	if m.Error != "" {
		return m
	}
	Judge(&m, mode, Fabric{LinkMbps: linkMbps})
	if !complete && m.Verdict == VerdictPass {
		m.Verdict, m.Hint = VerdictUnknown, "the output ends before its last line: pass the complete output"
	}
	return m
}
