package perftest

import (
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

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
