package transcript

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// TopoResult is the text of nvidia-smi topo -m.
type TopoResult struct {
	scan.Envelope
	Columns   []string          `json:"columns"` // GPUs and NICs
	Rows      []TopoRow         `json:"rows"`
	NICLegend map[string]string `json:"nic_legend"` // NIC0 -> mlx5_0
}

// TopoRow contains the paths of one GPU or NIC to the others: X (left out), NV#, PIX, PXB, PHB, NODE, SYS.
type TopoRow struct {
	Name         string            `json:"name"`
	Links        map[string]string `json:"links"`
	CPUAffinity  *string           `json:"cpu_affinity"`
	NUMAAffinity *string           `json:"numa_affinity"`
	GPUNUMAID    *string           `json:"gpu_numa_id"`

	cells []string // links first, then affinities
}

// Topo reads the matrix of nvidia-smi topo -m. Heading and rows may be wrapped.
func Topo(text string) TopoResult {
	t := topoParser{}
	t.result = TopoResult{Columns: []string{}, Rows: []TopoRow{}, NICLegend: map[string]string{}}
	t.result.Envelope, text = scan.Begin("nvidia_smi_topo", text)
	for line := range scan.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			t.line(line, words)
		} else {
			t.open = nil
		}
	}
	for i := range t.result.Rows {
		t.result.Rows[i].assign(t.result.Columns, t.affinities)
	}
	t.result.NotUnderstood(len(t.result.Rows) > 0 || slices.ContainsFunc(t.result.Columns, isUsualDevice), text)
	return t.result
}

type topoParser struct {
	result     TopoResult
	affinities []string // CPU, NUMA, GPU: the columns after the devices
	heading    bool     // the heading may continue
	open       *TopoRow // the row that may continue
}

func (t *topoParser) line(line string, words []string) {
	switch {
	case len(words) == 2 && strings.HasPrefix(words[0], "NIC") && strings.HasSuffix(words[0], ":"):
		t.result.NICLegend[strings.TrimSuffix(words[0], ":")] = words[1]
	case strings.Contains(line, "=") || strings.HasSuffix(words[0], ":"):
		t.open, t.heading = nil, false
	case isTopoDevice(words[0]) && len(words) > 1 && isLink(words[1]):
		t.heading = false
		t.result.Rows = append(t.result.Rows, TopoRow{Name: words[0], Links: map[string]string{}, cells: words[1:]})
		t.open = &t.result.Rows[len(t.result.Rows)-1]
	case len(t.result.Rows) == 0 && (t.heading && isAffinity(words[0]) || isTopoDevice(words[0]) && (t.heading || len(t.result.Columns) == 0)):
		t.columns(words)
	case t.open != nil:
		if isLink(words[0]) || len(t.open.cells) < len(t.result.Columns)+len(t.affinities) && isCPUList(words[0]) {
			t.open.cells = append(t.open.cells, words...)
		} else {
			t.open = nil
		}
	}
}

// columns reads "GPU0 GPU1 NIC0 CPU Affinity NUMA Affinity GPU NUMA ID".
func (t *topoParser) columns(words []string) {
	t.heading = true
	for i, w := range words {
		switch {
		case isTopoDevice(w):
			t.result.Columns = append(t.result.Columns, w)
		case w == "CPU":
			t.affinities = append(t.affinities, "cpu")
		case w == "NUMA" && (i == 0 || words[i-1] != "GPU"):
			t.affinities = append(t.affinities, "numa")
		case w == "GPU":
			t.affinities = append(t.affinities, "gpu")
		}
	}
}

func isAffinity(w string) bool {
	return w == "CPU" || w == "NUMA" || w == "GPU" || w == "Affinity" || w == "ID"
}

// isUsualDevice recognizes the devices that identify a heading of this tool without a row below it.
func isUsualDevice(w string) bool {
	return strings.HasPrefix(w, "GPU") || strings.HasPrefix(w, "NIC") || strings.HasPrefix(w, "mlx")
}

// isTopoDevice recognizes GPU0, NIC3, mlx5_0, mlx5_bond_0, hns_0: letters first and a number at the end.
func isTopoDevice(w string) bool {
	if len(w) < 2 || len(w) > 32 || w[len(w)-1] < '0' || w[len(w)-1] > '9' || isLink(w) {
		return false
	}
	if strings.HasPrefix(w, "GPU") || strings.HasPrefix(w, "NIC") {
		return strings.Trim(w[3:], "0123456789") == ""
	}
	return w[0] >= 'a' && w[0] <= 'z' && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

func isLink(w string) bool {
	switch w {
	case "X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "C2C", "OK", "PSB":
		return true
	}
	rest, ok := strings.CutPrefix(w, "NV")
	return ok && rest != "" && strings.Trim(rest, "0123456789#") == ""
}

// isCPUList recognizes an affinity: "0-31,64-95", "0", "N/A".
func isCPUList(w string) bool { return scan.IsNull(w) || strings.Trim(w, "0123456789,-") == "" }

// assign distributes the cells over the columns: as many links as there are devices, then the affinities.
func (r *TopoRow) assign(columns, affinities []string) {
	n := 0
	for n < len(r.cells) && n < len(columns) && isLink(r.cells[n]) {
		if r.cells[n] != "X" {
			r.Links[columns[n]] = r.cells[n]
		}
		n++
	}
	for i, cell := range r.cells[n:] {
		if i >= len(affinities) {
			break
		}
		switch affinities[i] {
		case "cpu":
			r.CPUAffinity = scan.Str(cell)
		case "numa":
			r.NUMAAffinity = scan.Str(cell)
		case "gpu":
			r.GPUNUMAID = scan.Str(cell)
		}
	}
}

// p2pGPU is a GPU in the heading and at the beginning of the rows.
var p2pGPU = regexp.MustCompile(`^GPU[0-9]+$`)

// P2P reads the matrix of nvidia-smi topo -p2p r: "GPU0 GPU1" -> OK, CNS, GNS, TNS, NS, DR, U; nil if the text has none. The matrix ends
// where the legend begins (public transcripts: NVIDIA/cuda-samples issue 284, LLMServe/DistServe issue 35). nvidia-smi underlines the
// heading on a pipe too (recorded with driver 580.159.04).
func P2P(text string) map[string]string {
	var columns []string
	var out map[string]string
	for line := range scan.Lines(scan.Normalize(text)) {
		words := strings.Fields(line)
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
