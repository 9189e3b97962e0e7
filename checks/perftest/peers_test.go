package perftest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// peerGuest answers one command.
type peerGuest struct {
	out perftest.Output
	err error
}

func (g peerGuest) Exec(context.Context, string, perftest.Command) (perftest.Output, error) {
	return g.out, g.err
}

// The format is that of NVIDIA's cuda-samples; TestReadPeerTest reads it completely.
func peerOutput(access, enabled string) string {
	var b strings.Builder
	for _, m := range [][2]string{{"P2P Connectivity Matrix", access}, {"Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)", "9.50"},
		{"Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)", enabled}, {"Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)",
			"31.00"}} {
		b.WriteString(m[0] + "\n   D\\D     0      1 \n     0 1300.00  " + m[1] + " \n     1  " + m[1] + " 1300.00 \n")
	}
	return b.String()
}

func TestGPUPairs(t *testing.T) {
	const not = "vm-1: the bandwidth between its GPUs was not measured: "
	const slowest = "vm-1: bandwidth between its GPUs at the slowest pair (GPU0 to GPU1): "
	for name, tt := range map[string]struct {
		guest peerGuest
		want  string
	}{
		"P2P": {peerGuest{out: perftest.Output{Stdout: peerOutput("1", "20.25")}},
			slowest + "20.2 GB/s in one direction, 31.0 GB/s in both, 9.5 GB/s without P2P"},
		"no access": {peerGuest{out: perftest.Output{Stdout: peerOutput("0", "9.50")}},
			slowest +
				"9.5 GB/s in one direction, 31.0 GB/s in both, 9.5 GB/s without P2P; P2P is not enabled between GPU0 and GPU1: see GST-GPUP2P-040"},
		"not there": {peerGuest{out: perftest.Output{Exit: 127}}, not + "p2pBandwidthLatencyTest is not in the guest"},
		"too slow":  {peerGuest{out: perftest.Output{Exit: 124}}, not + "p2pBandwidthLatencyTest did not end within 2 minutes"},
		"fails": {peerGuest{out: perftest.Output{Exit: 1, Stdout: "[P2P]\nCuda failure x.cu:599: 'no device'\n"}},
			not + "p2pBandwidthLatencyTest failed (exit status 1): Cuda failure x.cu:599: 'no device'"},
		"no answer": {peerGuest{err: errors.New("connection lost")}, not + "connection lost"},
		"another program": {peerGuest{out: perftest.Output{Stdout: "hello\n"}},
			not + "the output of p2pBandwidthLatencyTest cannot be parsed: hello"},
	} {
		if got := (&perftest.Runner{Shell: tt.guest}).GPUPairs(t.Context(), "vm-1"); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
