// Package nvidia parses the output of nvidia-smi: the summary table, the query and the topology matrix.
package nvidia

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// SMIResult is the summary table of nvidia-smi.
type SMIResult struct {
	scan.Envelope
	DriverVersion *string   `json:"driver_version"`
	CUDAVersion   *string   `json:"cuda_version"`
	GPUs          []GPU     `json:"gpus"`
	Processes     []Process `json:"processes"`
}

// GPU is one GPU of the table.
type GPU struct {
	Index         *int64   `json:"index"`
	Name          *string  `json:"name"` // may end in "..."
	Persistence   *bool    `json:"persistence"`
	PCIAddress    *string  `json:"pci_address"`
	DisplayActive *bool    `json:"display_active"`
	ECCErrors     *int64   `json:"ecc_errors"` // uncorrected, volatile
	FanPercent    *int64   `json:"fan_percent"`
	TempC         *int64   `json:"temp_c"`
	PerfState     *string  `json:"perf_state"`
	PowerW        *float64 `json:"power_w"`
	PowerCapW     *float64 `json:"power_cap_w"`
	MemUsedMiB    *int64   `json:"mem_used_mib"`
	MemTotalMiB   *int64   `json:"mem_total_mib"`
	UtilPercent   *int64   `json:"util_percent"`
	ComputeMode   *string  `json:"compute_mode"`
	MIGEnabled    *bool    `json:"mig_enabled"` // nil if the table has no MIG row or says N/A
}

// Process is one line of the process table.
type Process struct {
	GPU    *int64  `json:"gpu"`
	PID    *int64  `json:"pid"`
	Type   *string `json:"type"` // C, G, C+G
	Name   *string `json:"name"`
	MemMiB *int64  `json:"mem_mib"`
}

// tableEdge is where a line of the table ends in a text that is all on one line.
var tableEdge = regexp.MustCompile(`(\|)\s+(\||\+[-=])|([-=][|+])\s+\|`)

// SMI parses the summary table of nvidia-smi. A GPU has two lines, and a third for MIG; their cells are recognized by their
// contents, because the widths differ between versions.
func SMI(text string) SMIResult {
	r := SMIResult{GPUs: []GPU{}, Processes: []Process{}}
	r.Envelope, text = scan.Begin("nvidia_smi", text)
	if scan.IsFlat(text) {
		text = tableEdge.ReplaceAllString(text, "$1\n$2")
	}
	messages(&r.Envelope, text)
	understood := false
	var gpu *GPU
	part := 0 // the lines of gpu read so far
	for line := range scan.Lines(text) {
		understood = versions(line, &r.DriverVersion, &r.CUDAVersion) || understood
		lower := strings.ToLower(line)
		if strings.Contains(lower, "no running processes") || strings.Contains(lower, "persistence-m") {
			understood, gpu = true, nil
			continue
		}
		words := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(line, "|", " "), "│", " "))
		if len(words) == 0 || scan.IsRule(line) {
			if part > 1 && len(words) > 0 {
				gpu = nil
			}
			continue
		}
		if g, ok := gpuHead(words); ok {
			r.GPUs = append(r.GPUs, g)
			gpu, part = &r.GPUs[len(r.GPUs)-1], 1
			continue
		}
		switch {
		case gpu != nil && part == 1 && gpu.load(words):
			part = 2
		case gpu != nil && part == 2 && gpu.mig(words):
			part = 3
		default:
			if p, ok := process(words); ok {
				r.Processes = append(r.Processes, p)
			}
		}
	}
	r.NotUnderstood(understood || len(r.GPUs)+len(r.Processes) > 0, text)
	return r
}

// messages finds the messages of nvidia-smi without a table.
func messages(e *scan.Envelope, text string) {
	for line := range scan.Lines(text) {
		lower := strings.ToLower(line)
		switch {
		case strings.Contains(lower, "no devices were found"), strings.Contains(lower, "no devices found"):
			e.Fail(scan.CodeNoDevices, line, nil)
		case strings.Contains(lower, "nvidia-smi has failed"), strings.Contains(lower, "failed to initialize nvml"),
			strings.Contains(lower, "couldn't communicate with the nvidia driver"), strings.Contains(lower, "unable to determine the device handle"),
			strings.Contains(lower, "couldn't find libnvidia-ml"), strings.Contains(lower, "driver/library version mismatch"):
			e.Fail("driver_error", line, nil)
		}
	}
}

// versions reads "Driver Version: 535.54.03" and "CUDA Version: 12.2", with any blanks around the colon.
func versions(line string, driver, cuda **string) bool {
	if !strings.Contains(line, "ersion") {
		return false
	}
	known := func(key string) bool { return key == "driver version" || key == "cuda version" || key == "kmd version" }
	found := false
	for _, p := range scan.Pairs(line, known) {
		found = true
		to := driver
		if p.Key == "cuda version" {
			to = cuda
		}
		scan.Keep(to, scan.Str(strings.TrimRight(scan.Word(p.Value), "|")))
	}
	return found
}

// gpuHead reads "0 NVIDIA A100-PCI... Off 00000000:CF:00.0 Off 0".
func gpuHead(words []string) (GPU, bool) {
	at := -1
	for i, w := range words {
		if strings.Count(w, ":") == 2 && scan.PCI(w) != nil {
			at = i
			break
		}
	}
	if at < 2 || scan.Int(words[0]) == nil {
		return GPU{}, false
	}
	g := GPU{Index: scan.Int(words[0]), PCIAddress: scan.PCI(words[at])}
	name := words[1:at]
	if last := name[len(name)-1]; len(name) > 1 && (scan.Bool(last) != nil || scan.IsNull(last) || last == "WDDM" || last == "TCC" || last == "MCDM") {
		g.Persistence, name = scan.Bool(last), name[:len(name)-1]
	}
	g.Name = scan.Str(strings.Join(name, " "))
	if after := words[at+1:]; len(after) > 0 {
		g.DisplayActive = scan.Bool(after[0])
		if len(after) > 1 {
			g.ECCErrors = scan.Int(after[1])
		}
	}
	return g, true
}

// load reads "N/A 31C P0 41W / 250W 655MiB / 40536MiB 0% Default": the first slash is in the power, the second in the memory.
func (g *GPU) load(words []string) bool {
	var flat []string
	for _, w := range words {
		if scan.IsNull(w) || !strings.Contains(w, "/") {
			flat = append(flat, w)
			continue
		}
		a, b, _ := strings.Cut(w, "/")
		for _, x := range []string{a, "/", b} {
			if x != "" {
				flat = append(flat, x)
			}
		}
	}
	mem := -1 // the slash of the memory
	power := -1
	for i, w := range flat {
		switch {
		case w != "/":
		case i > 0 && strings.HasSuffix(flat[i-1], "MiB") || i+1 < len(flat) && strings.HasSuffix(flat[i+1], "MiB"):
			mem = i
		case power < 0:
			power = i
		default:
			mem = i
		}
	}
	if mem < 1 || mem+1 >= len(flat) {
		return false
	}
	g.MemUsedMiB, g.MemTotalMiB = scan.LeadingInt(flat[mem-1]), scan.LeadingInt(flat[mem+1])
	if power > 0 {
		g.PowerW, g.PowerCapW = scan.LeadingFloat(flat[power-1]), scan.LeadingFloat(flat[power+1])
	}
	front := flat[:mem-1]
	for i, w := range front {
		switch {
		case i == 0 && strings.HasSuffix(w, "%"):
			g.FanPercent = scan.LeadingInt(w)
		case len(w) > 1 && strings.HasSuffix(w, "C") && scan.Int(w[:len(w)-1]) != nil:
			g.TempC = scan.Int(w[:len(w)-1])
		case len(w) > 1 && w[0] == 'P' && scan.Int(w[1:]) != nil:
			g.PerfState = scan.Str(w)
		}
	}
	if rest := flat[mem+2:]; len(rest) > 0 {
		if strings.HasSuffix(rest[0], "%") {
			g.UtilPercent, rest = scan.LeadingInt(rest[0]), rest[1:]
		} else if scan.IsNull(rest[0]) || rest[0] == "ERR!" {
			rest = rest[1:]
		}
		g.ComputeMode = scan.Str(strings.Join(rest, " "))
	}
	return true
}

// mig reads the third line, which contains only the MIG mode.
func (g *GPU) mig(words []string) bool {
	if len(words) != 1 {
		return false
	}
	mode := strings.TrimRight(words[0], "*")
	g.MIGEnabled = scan.Bool(mode)
	return g.MIGEnabled != nil || scan.IsNull(mode)
}

// process reads "0 N/A N/A 5213 C /opt/test 525MiB"; versions before MIG have no instance columns.
func process(words []string) (Process, bool) {
	if len(words) < 4 || scan.Int(words[0]) == nil {
		return Process{}, false
	}
	for _, at := range []int{4, 2} {
		if at >= len(words)-1 || !isProcessType(words[at]) || scan.Int(words[at-1]) == nil {
			continue
		}
		p := Process{GPU: scan.Int(words[0]), PID: scan.Int(words[at-1]), Type: scan.Str(words[at])}
		name := words[at+1:]
		last := name[len(name)-1]
		if strings.HasSuffix(last, "MiB") || scan.IsNull(last) && len(name) > 1 {
			p.MemMiB, name = scan.LeadingInt(last), name[:len(name)-1]
		}
		p.Name = scan.Str(strings.Join(name, " "))
		return p, true
	}
	return Process{}, false
}

func isProcessType(w string) bool {
	switch w {
	case "C", "G", "C+G", "G+C", "M", "M+C", "M+C+G":
		return true
	}
	return false
}
