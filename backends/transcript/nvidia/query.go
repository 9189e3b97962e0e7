package nvidia

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// QueryResult is the text of nvidia-smi -q.
type QueryResult struct {
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

// Query parses the text of nvidia-smi -q. The section of a key is the last line without a value, because the indentation may be
// lost.
func Query(text string) QueryResult {
	r := QueryResult{GPUs: []GPUQuery{}}
	r.Envelope, text = scan.Begin("nvidia_smi_q", text)
	messages(&r.Envelope, text)
	excerpt, found := &GPUQuery{}, false // of a text without a GPU line
	gpu, section, understood := excerpt, "", false
	pending := "" // a key whose value the terminal wrapped
	name := ""    // the line before, if it is the name of a GPU, of which a terminal of 72 columns wraps the end
	for raw := range scan.Lines(text) {
		line := strings.TrimSpace(raw)
		if name != "" && line != "" && raw[0] != ' ' && len(name)+len(raw) >= 72 && !strings.Contains(line, ":") {
			line, gpu.ProductName = name+" "+line, nil
		}
		name = ""
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
			set(&r.DriverVersion, scan.Str(value))
			understood = true
		case "cuda version":
			set(&r.CUDAVersion, scan.Str(value))
			understood = true
		case "attached gpus":
			set(&r.AttachedGPUs, scan.LeadingInt(value))
			understood = true
		default:
			if gpu.set(section, key, value) && gpu == excerpt {
				found = true
			}
			if key == "product name" && section == "" && raw[0] == ' ' {
				name = raw
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

func (g *GPUQuery) set(section, key, value string) bool {
	switch key {
	case "product name":
		set(&g.ProductName, scan.Str(value))
	case "product architecture":
		set(&g.Architecture, scan.Str(value))
	case "serial number":
		set(&g.Serial, scan.Str(value))
	case "gpu uuid":
		set(&g.UUID, scan.Str(value))
	case "vbios version":
		set(&g.VBIOSVersion, scan.Str(value))
	case "persistence mode":
		set(&g.Persistence, scan.Bool(value))
	case "compute mode":
		set(&g.ComputeMode, scan.Str(value))
	case "license status":
		set(&g.License, scan.Str(value))
	case "virtualization mode":
		set(&g.Virtualization, scan.Str(value))
	default:
		to := g.sized(section, key)
		if to == nil {
			return false
		}
		set(to, scan.LeadingInt(value))
	}
	return true
}

// sized returns the number in the value of a key of a section.
func (g *GPUQuery) sized(section, key string) **int64 {
	switch section + "/" + key {
	case "pcie generation/current":
		return &g.PCIeGenCurrent
	case "pcie generation/max":
		return &g.PCIeGenMax
	case "link width/current":
		return &g.LinkWidthCurrent
	case "link width/max":
		return &g.LinkWidthMax
	case "fb memory usage/total":
		return &g.FBTotalMiB
	case "fb memory usage/reserved":
		return &g.FBReservedMiB
	case "fb memory usage/used":
		return &g.FBUsedMiB
	case "fb memory usage/free":
		return &g.FBFreeMiB
	case "bar1 memory usage/total":
		return &g.BAR1TotalMiB
	case "bar1 memory usage/used":
		return &g.BAR1UsedMiB
	case "bar1 memory usage/free":
		return &g.BAR1FreeMiB
	}
	return nil
}
