package nvidia

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// p2pGPU is a GPU in the heading and at the beginning of the rows.
var p2pGPU = regexp.MustCompile(`^GPU[0-9]+$`)

// P2P reads the matrix of nvidia-smi topo -p2p r: "GPU0 GPU1" -> OK, CNS, GNS, TNS, NS, DR, U; nil if the text has none. The matrix ends
// where the legend begins (public transcripts: NVIDIA/cuda-samples issue 284, LLMServe/DistServe issue 35).
func P2P(text string) map[string]string {
	var columns []string
	var out map[string]string
	for line := range scan.Lines(text) {
		words := scan.Words(line)
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
