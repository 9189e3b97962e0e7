package transcript_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// The format of nvidia-smi topo -p2p r in public transcripts: tabs, a heading that begins with a blank, a legend below.
func TestP2P(t *testing.T) {
	const legend = "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n  GNS  = GPU not supported\n"
	for text, want := range map[string]map[string]string{
		" \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tOK\tX\t\n" + legend: {"GPU0 GPU1": "GNS", "GPU1 GPU0": "OK"},
		"        GPU0    GPU1    GPU2\nGPU0     X      CNS     OK\nGPU1    CNS      X      NS\n": {"GPU0 GPU1": "CNS", "GPU0 GPU2": "OK",
			"GPU1 GPU0": "CNS", "GPU1 GPU2": "NS"},
		"\tGPU0\t\n GPU0\tX\t\n" + legend: nil,
		"Invalid combination of input arguments. Please run 'nvidia-smi topo -h' for help.\n": nil,
		"GPU0\nGPU0 X OK OK OK\nGPU1": nil,
		"":                            nil,
		// underlined, on a pipe too
		" \t\x1b[4mGPU0\tGPU1\t\x1b[0m\n GPU0\tX\tCNS\t\n GPU1\tOK\tX\t\n" + legend: {"GPU0 GPU1": "CNS", "GPU1 GPU0": "OK"},
	} {
		if got := transcript.P2P(text); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// The format of p2pBandwidthLatencyTest, according to its source; the figures are invented.
const peerTest = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nDevice: 0, NVIDIA A100 80GB PCIe, pciBusID: 13, pciDeviceID: 0, " +
	"pciDomainID:0\n" +
	"Device=0 CANNOT Access Peer Device=1\nDevice=1 CANNOT Access Peer Device=0\n\n***NOTE: In case a device doesn't have P2P access ...\n\n" +
	"P2P Connectivity Matrix\n     D\\D     0     1\n     0\t     1     0\n     1\t     0     1\n" +
	"Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n     0 1310.02  11.50 \n     1  11.25 1309.71 \n" +
	"Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1 \n     0 1311.13  22.50 \n     1  22.25 " +
	"1310.02 \n" +
	"Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)\n   D\\D     0      1 \n     0 1311.13   2.50 \n     1   2.25 1310.02 \n" +
	"Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n     0 1312.24   1.50 \n     1   1.25 1308.60 \n" +
	"Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n     0 1308.55  40.75 \n     1  41.25 1310.21 \n" +
	"P2P=Disabled Latency Matrix (us)\n   GPU     0      1 \n     0   2.31  12.77 \n     1  12.68   2.29 \n"

func TestReadPeerTest(t *testing.T) {
	older := strings.ReplaceAll(peerTest, " (P2P Writes)", "") // CUDA 9 and older
	for _, text := range []string{peerTest, older} {
		m, ok := transcript.ReadPeerTest(text)
		if !ok {
			t.Fatalf("not understood:\n%s", text)
		}
		for name, tc := range map[string]struct {
			matrix         [][]float64
			from, to, want float64
		}{
			"access": {m.Access, 0, 1, 0}, "without": {m.Without, 1, 0, 11.25}, "one way": {m.OneWay, 1, 0, 22.25},
			"both": {m.BothWays, 0, 1, 40.75},
		} {
			if from, to, got := transcript.Slowest(tc.matrix); float64(from) != tc.from || float64(to) != tc.to || got != tc.want {
				t.Errorf("%s: GPU%d to GPU%d %v, want %v", name, from, to, got, tc.want)
			}
		}
	}
	for name, text := range map[string]string{
		"empty": "", "no GPU": "Cuda failure p2pBandwidthLatencyTest.cu:599: 'no CUDA-capable device is detected'\n",
		"ends early": peerTest[:strings.Index(peerTest, "40.75")], "not a figure": strings.Replace(peerTest, "22.25", "  nan", 1),
		"reads fill in for writes": strings.Replace(peerTest, "     1  22.25 1310.02 \n", "", 1),
		"a row is missing":         strings.Replace(peerTest, "     1\t     0     1\n", "", 1),
	} {
		if m, ok := transcript.ReadPeerTest(text); ok {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func FuzzReadPeerTest(f *testing.F) {
	f.Add(peerTest)
	f.Add("P2P Connectivity Matrix\nD\\D 0\n0 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		if m, ok := transcript.ReadPeerTest(text); ok {
			for _, matrix := range [][][]float64{m.Access, m.Without, m.OneWay, m.BothWays} {
				if from, to, figure := transcript.Slowest(matrix); from == to || figure < 0 || matrix[from][to] != figure {
					t.Errorf("%d %d %v of %v", from, to, figure, matrix)
				}
			}
		}
	})
}
