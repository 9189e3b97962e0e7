package nvidia_test

import (
	"maps"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/nvidia"
)

// The form of nvidia-smi topo -p2p r in public transcripts: tabs, a heading that begins with a blank, a legend below.
func TestP2P(t *testing.T) {
	const legend = "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n  GNS  = GPU not supported\n"
	for text, want := range map[string]map[string]string{
		" \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tOK\tX\t\n" + legend:                            {"GPU0 GPU1": "GNS", "GPU1 GPU0": "OK"},
		"        GPU0    GPU1    GPU2\nGPU0     X      CNS     OK\nGPU1    CNS      X      NS\n": {"GPU0 GPU1": "CNS", "GPU0 GPU2": "OK", "GPU1 GPU0": "CNS", "GPU1 GPU2": "NS"},
		"\tGPU0\t\n GPU0\tX\t\n" + legend:                                                        nil,
		"Invalid combination of input arguments. Please run 'nvidia-smi topo -h' for help.\n":    nil,
		"GPU0\nGPU0 X OK OK OK\nGPU1":                                                            nil,
		"":                                                                                       nil,
	} {
		if got := nvidia.P2P(text); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
