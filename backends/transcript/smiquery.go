package transcript

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// SMIQueryResult is the text of nvidia-smi -q.
type SMIQueryResult struct {
	scan.Envelope
	DriverVersion *string    `json:"driver_version"`
	CUDAVersion   *string    `json:"cuda_version"`
	AttachedGPUs  *int64     `json:"attached_gpus"`
	GPUs          []GPUQuery `json:"gpus"`
}

// GPUQuery is one GPU; memory sizes are MiB.
type GPUQuery struct {
	PCIAddress       *string `json:"pci_address"` // nil in an excerpt without a GPU line
	ProductName      *string `json:"product_name"`
	Architecture     *string `json:"architecture"`
	Serial           *string `json:"serial"`
	UUID             *string `json:"uuid"`
	VBIOSVersion     *string `json:"vbios_version"`
	Persistence      *bool   `json:"persistence"`
	PCIeGenCurrent   *int64  `json:"pcie_gen_current"`
	PCIeGenMax       *int64  `json:"pcie_gen_max"`
	LinkWidthCurrent *int64  `json:"link_width_current"`
	LinkWidthMax     *int64  `json:"link_width_max"`
	FBTotalMiB       *int64  `json:"fb_total_mib"`
	FBReservedMiB    *int64  `json:"fb_reserved_mib"`
	FBUsedMiB        *int64  `json:"fb_used_mib"`
	FBFreeMiB        *int64  `json:"fb_free_mib"`
	BAR1TotalMiB     *int64  `json:"bar1_total_mib"`
	BAR1UsedMiB      *int64  `json:"bar1_used_mib"`
	BAR1FreeMiB      *int64  `json:"bar1_free_mib"`
	ComputeMode      *string `json:"compute_mode"`

	Virtualization *string `json:"-"` // Pass-Through, VGPU, None: the section GPU Virtualization Mode
	License        *string `json:"-"` // of a vGPU: "Licensed (Expiry: ...)", "Unlicensed (Restricted)"
}

// SMIQuery parses the text of nvidia-smi -q. The section of a key is the last line without a value, because the indentation may be
// lost.
func SMIQuery(text string) SMIQueryResult {
	r := SMIQueryResult{GPUs: []GPUQuery{}}
	r.Envelope, text = scan.Begin("nvidia_smi_q", text)
	messages(&r.Envelope, text)
	excerpt, found := &GPUQuery{}, false // of a text without a GPU line
	gpu, section, understood := excerpt, "", false
	pending := "" // a key whose value the terminal wrapped
	for raw := range scan.Lines(text) {
		line := strings.TrimSpace(raw)
		if line == "" {
			continue
		}
		if strings.Contains(line, "NVSMI LOG") {
			understood = true
			continue
		}
		if address := gpuLine(line); address != nil {
			r.GPUs = append(r.GPUs, GPUQuery{PCIAddress: address})
			gpu, section = &r.GPUs[len(r.GPUs)-1], ""
			continue
		}
		if pending != "" && !strings.Contains(line, ":") {
			line = pending + " " + line
		}
		if pending = ""; strings.HasSuffix(line, " :") {
			pending = line
			continue
		}
		key, value, ok := cutKey(line)
		if !ok {
			section = key
			continue
		}
		switch key {
		case "driver version":
			scan.Keep(&r.DriverVersion, scan.Str(value))
			understood = true
		case "cuda version":
			scan.Keep(&r.CUDAVersion, scan.Str(value))
			understood = true
		case "attached gpus":
			scan.Keep(&r.AttachedGPUs, scan.LeadingInt(value))
			understood = true
		default:
			if (gpuKeys.Set(gpu, key, value) || gpuKeys.Set(gpu, section+"/"+key, value)) && gpu == excerpt {
				found = true
			}
		}
	}
	if len(r.GPUs) == 0 && found {
		r.GPUs = append(r.GPUs, *excerpt)
	}
	r.NotUnderstood(understood || len(r.GPUs) > 0, text)
	return r
}

// gpuLine reads "GPU 00000000:1D:00.0".
func gpuLine(line string) *string {
	rest, ok := strings.CutPrefix(line, "GPU ")
	if !ok || strings.Count(rest, ":") < 2 || strings.Contains(rest, " : ") {
		return nil
	}
	return scan.PCI(scan.Word(rest))
}

// cutKey splits "Total : 81559 MiB"; a line without a value is the name of a section.
func cutKey(line string) (key, value string, ok bool) {
	name, value, ok := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	return scan.Key(name), value, ok && value != ""
}

// gpuKeys are the fields of a GPU: those of any section by their key, the others by section and key.
var gpuKeys = scan.Keys[GPUQuery]{
	"product name":             func(g *GPUQuery, v string) { scan.Keep(&g.ProductName, scan.Str(v)) },
	"product architecture":     func(g *GPUQuery, v string) { scan.Keep(&g.Architecture, scan.Str(v)) },
	"serial number":            func(g *GPUQuery, v string) { scan.Keep(&g.Serial, scan.Str(v)) },
	"gpu uuid":                 func(g *GPUQuery, v string) { scan.Keep(&g.UUID, scan.Str(v)) },
	"vbios version":            func(g *GPUQuery, v string) { scan.Keep(&g.VBIOSVersion, scan.Str(v)) },
	"persistence mode":         func(g *GPUQuery, v string) { scan.Keep(&g.Persistence, scan.Bool(v)) },
	"compute mode":             func(g *GPUQuery, v string) { scan.Keep(&g.ComputeMode, scan.Str(v)) },
	"license status":           func(g *GPUQuery, v string) { scan.Keep(&g.License, scan.Str(v)) },
	"virtualization mode":      func(g *GPUQuery, v string) { scan.Keep(&g.Virtualization, scan.Str(v)) },
	"pcie generation/current":  func(g *GPUQuery, v string) { scan.Keep(&g.PCIeGenCurrent, scan.LeadingInt(v)) },
	"pcie generation/max":      func(g *GPUQuery, v string) { scan.Keep(&g.PCIeGenMax, scan.LeadingInt(v)) },
	"link width/current":       func(g *GPUQuery, v string) { scan.Keep(&g.LinkWidthCurrent, scan.LeadingInt(v)) },
	"link width/max":           func(g *GPUQuery, v string) { scan.Keep(&g.LinkWidthMax, scan.LeadingInt(v)) },
	"fb memory usage/total":    func(g *GPUQuery, v string) { scan.Keep(&g.FBTotalMiB, scan.LeadingInt(v)) },
	"fb memory usage/reserved": func(g *GPUQuery, v string) { scan.Keep(&g.FBReservedMiB, scan.LeadingInt(v)) },
	"fb memory usage/used":     func(g *GPUQuery, v string) { scan.Keep(&g.FBUsedMiB, scan.LeadingInt(v)) },
	"fb memory usage/free":     func(g *GPUQuery, v string) { scan.Keep(&g.FBFreeMiB, scan.LeadingInt(v)) },
	"bar1 memory usage/total":  func(g *GPUQuery, v string) { scan.Keep(&g.BAR1TotalMiB, scan.LeadingInt(v)) },
	"bar1 memory usage/used":   func(g *GPUQuery, v string) { scan.Keep(&g.BAR1UsedMiB, scan.LeadingInt(v)) },
	"bar1 memory usage/free":   func(g *GPUQuery, v string) { scan.Keep(&g.BAR1FreeMiB, scan.LeadingInt(v)) },
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
