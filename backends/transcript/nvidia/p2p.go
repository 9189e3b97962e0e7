package nvidia

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// p2pGPU is a GPU in the heading and at the beginning of the rows.
var p2pGPU = regexp.MustCompile(`^GPU[0-9]+$`)

// P2P reads the matrix of nvidia-smi topo -p2p r: "GPU0 GPU1" -> OK, CNS, GNS, TNS, NS, DR, U; nil if the text has none. The matrix ends
// where the legend begins (public transcripts: NVIDIA/cuda-samples issue 284, LLMServe/DistServe issue 35). nvidia-smi underlines the
// heading on a pipe too; public copies lost the escape sequences (recorded with driver 580.159.04).
func P2P(text string) map[string]string {
	var columns []string
	var out map[string]string
	for line := range scan.Lines(scan.Normalize(text)) {
		words := strings.Fields(underline.Replace(line))
		switch {
		case len(words) == 0:
		case strings.HasPrefix(words[0], "Legend"):
			return out
		case columns == nil:
			for _, w := range words {
				if p2pGPU.MatchString(w) {
					columns = append(columns, w)
				}
			}
		case p2pGPU.MatchString(words[0]):
			for i, w := range words[1:] {
				if i >= len(columns) || w == "X" {
					continue
				}
				if out == nil {
					out = map[string]string{}
				}
				out[words[0]+" "+columns[i]] = w
			}
		}
	}
	return out
}

// A PeerTest contains the matrices of p2pBandwidthLatencyTest, GPU by GPU. Bandwidths are in GB/s; the diagonal is a copy within a GPU.
type PeerTest struct {
	Access   [][]float64 // 1: the row's GPU can access the memory of the column's
	Without  [][]float64 // one direction, P2P disabled
	OneWay   [][]float64 // one direction, P2P enabled if there is access
	BothWays [][]float64
}

// ReadPeerTest reads the output of p2pBandwidthLatencyTest; ok is false if a matrix is missing or incomplete. The form is that of the
// program's source (NVIDIA/cuda-samples, 5_Domain_Specific/p2pBandwidthLatencyTest) and of public transcripts (NVIDIA/nccl issue 814,
// NVIDIA/nccl-tests issue 100, ginkgo-project/ginkgo issue 164).
func ReadPeerTest(text string) (t PeerTest, ok bool) {
	var into *[][]float64
	width := 0
	for line := range scan.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case strings.Contains(line, "Matrix"):
			into, width = t.titled(line), 0
		case into != nil && words[0] == `D\D`:
			width = len(words) - 1
		case into != nil && width > 0 && len(words) == width+1 && words[0] == strconv.Itoa(len(*into)) && len(*into) < width:
			row := make([]float64, 0, width)
			for _, w := range words[1:] {
				if n := scan.Float(w); n != nil && *n >= 0 {
					row = append(row, *n)
				}
			}
			*into = append(*into, row)
		}
	}
	size := len(t.Access)
	for _, m := range [][][]float64{t.Access, t.Without, t.OneWay, t.BothWays} {
		if size < 2 || len(m) != size || slices.ContainsFunc(m, func(row []float64) bool { return len(row) != size }) {
			return PeerTest{}, false
		}
	}
	return t, true
}

// titled returns the matrix that a title begins, nil if it is not used here or has been read before.
func (t *PeerTest) titled(line string) *[][]float64 {
	for title, m := range map[string]*[][]float64{"P2P Connectivity": &t.Access, "Unidirectional P2P=Disabled": &t.Without,
		"Unidirectional P2P=Enabled": &t.OneWay, "Bidirectional P2P=Enabled": &t.BothWays} {
		if strings.HasPrefix(line, title) && *m == nil {
			return m
		}
	}
	return nil
}

// Slowest returns the pair of different GPUs with the smallest figure.
func Slowest(m [][]float64) (from, to int, figure float64) {
	from, to, figure = 0, 1, m[0][1]
	for i, row := range m {
		for j, f := range row {
			if i != j && f < figure {
				from, to, figure = i, j, f
			}
		}
	}
	return from, to, figure
}
