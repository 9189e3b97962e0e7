package klog

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// mark pairs a text that a line must contain with the finder that then examines it.
type mark struct {
	text string
	find func(line string) (Event, bool)
}

// finders returns those that apply to a line, without those of the marks that are done.
func finders(line string, without []string) []mark {
	var out []mark
	for _, m := range marks {
		if strings.Contains(line, m.text) && !slices.Contains(without, m.text) {
			out = append(out, m)
		}
	}
	return out
}

var marks = []mark{
	{"Xid (", finder(func(m []string, _ string) Event {
		return Event{Code: GPUXid, PCIAddress: gpuAddress(m[1]), Keys: map[string]any{"xid": scan.Int(m[2])}}
	}, xidLine)},
	{"PCI I/O region assigned to", barInvalid},
	{"[mem size", finder(func(m []string, _ string) Event {
		return Event{Code: BARNoSpace, PCIAddress: scan.PCI(m[1]), Keys: map[string]any{"bar": scan.Int(m[2]), "size_bytes": scan.Int(m[3])}}
	}, noSpaceLine, noSpaceOld)},
	{"failed with error", finder(func(m []string, _ string) Event {
		return Event{Code: GPUProbeFailed, PCIAddress: scan.PCI(m[1]), Keys: map[string]any{"error": scan.Int(m[2])}}
	}, probeOld, probeNew)},
	{"initialized", finder(func([]string, string) Event { return Event{Code: GPUNone} }, noneLine)},
	{"RmInitAdapter failed", finder(func(m []string, line string) Event {
		return Event{Code: GPUInitFailed, PCIAddress: anyAddress(line), Keys: map[string]any{"status": m[1]}}
	}, initLine)},
	{"power cable", powerCable},
	{"likely needs to be reset", resetNeeded},
	{"firmware version:", finder(func(m []string, _ string) Event {
		return Event{Code: NICFirmware, PCIAddress: scan.PCI(m[1]), Keys: map[string]any{"fw_version": m[2]}}
	}, firmwareLine)},
	{"Gb/s available", finder(func(m []string, line string) Event {
		before, _, _ := strings.Cut(line, m[0])
		return Event{Code: PCIeLimited, PCIAddress: anyAddress(before), Keys: map[string]any{
			"available_gbps": scan.Float(m[1]), "speed_gts": scan.Float(m[2]), "width": scan.Int(m[3]),
			"limited_at": scan.PCI(m[4]), "capable_gbps": scan.Float(m[5]),
		}}
	}, limitedLine)},
	{"invalid context", finder(func([]string, string) Event { return Event{Code: PeermemContext} }, contextLine)},
	{"disagrees about version of symbol", finder(func(m []string, _ string) Event {
		return Event{Code: SymbolMismatch, Keys: map[string]any{"module": m[1], "symbol": m[2]}}
	}, mismatchLine)},
	{"Unknown symbol ", finder(func(m []string, _ string) Event {
		return Event{Code: UnknownSymbol, Keys: map[string]any{"module": m[1], "symbol": m[2], "error": scan.Int(m[3])}}
	}, unknownLine)},
	{"could not insert", loadFailed},
}

// finder finds the event that the first matching expression tells.
func finder(tell func(m []string, line string) Event, expressions ...*regexp.Regexp) func(line string) (Event, bool) {
	return func(line string) (Event, bool) {
		for _, x := range expressions {
			if m := x.FindStringSubmatch(line); m != nil {
				return tell(m, line), true
			}
		}
		return Event{}, false
	}
}

const addressPattern = `(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2,4}:[0-9A-Fa-f]{2}(?:\.[0-9A-Fa-f])?`

var (
	address      = regexp.MustCompile(`\b[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?\b`)
	xidLine      = regexp.MustCompile(`NVRM: Xid \((?:PCI:)?(` + addressPattern + `)(?: [^)]*)?\):\s*([0-9]+)`)
	barOf        = regexp.MustCompile(`BAR ?([0-9]+) is \S+ @ \S+\s+\((?:PCI:)?(` + addressPattern + `)\)`)
	noSpaceLine  = regexp.MustCompile(`(?:(` + addressPattern + `):\s+)?(?:VF )?BAR ([0-9]+) \[mem size (0x[0-9A-Fa-f]+)[^\]]*\]: can't assign; no space`)
	noSpaceOld   = regexp.MustCompile(`(?:(` + addressPattern + `):\s+)?(?:VF )?BAR ([0-9]+): no space for \[mem size (0x[0-9A-Fa-f]+)`)
	probeOld     = regexp.MustCompile(`nvidia: probe of (` + addressPattern + `) failed with error (-?[0-9]+)`)
	probeNew     = regexp.MustCompile(`nvidia (` + addressPattern + `): probe with driver nvidia failed with error (-?[0-9]+)`)
	noneLine     = regexp.MustCompile(`(?i)(?:none of the NVIDIA [a-z ]*?\b(?:were|was|are|is|could be)|no NVIDIA [a-z ]*?)\s*initialized`)
	initLine     = regexp.MustCompile(`RmInitAdapter failed!?\s*\(([0-9A-Fa-fx]+:[0-9A-Fa-fx]+:[0-9A-Fa-fx]+)\)`)
	firmwareLine = regexp.MustCompile(`mlx5_core (` + addressPattern + `):\s+firmware version:\s*(\S+)`)
	limitedLine  = regexp.MustCompile(`([0-9.]+) Gb/s available PCIe bandwidth, limited by ` +
		`(?:([0-9.]+) GT/s(?: PCIe)?|Unknown(?: speed)?) x([0-9]+) link at (` + addressPattern + `)(?: \(capable of ([0-9.]+) Gb/s)?`)
	contextLine   = regexp.MustCompile(`nvidia[-_]peermem.*invalid context`)
	mismatchLine  = regexp.MustCompile(`([\w-]+): disagrees about version of symbol (\S+)`)
	unknownLine   = regexp.MustCompile(`([\w-]+): Unknown symbol (\S+) \(err(?:or)? (-?[0-9]+)\)`)
	loadLine      = regexp.MustCompile(`could not insert (?:module )?['"]?([\w./-]+?)['"]?:\s*(.+)$`)
	oldNVRMSource = regexp.MustCompile(`^([0-9A-Fa-f]{4}):([0-9A-Fa-f]{2})\.([0-7])$`)
)

// gpuAddress reads an address of NVRM. Old drivers print bus (four digits), slot and function, without the domain.
func gpuAddress(s string) *string {
	if m := oldNVRMSource.FindStringSubmatch(s); m != nil {
		return scan.PCI(strings.TrimPrefix(m[1], "00") + ":" + m[2] + "." + m[3])
	}
	return scan.PCI(s)
}

// anyAddress returns the device that a line names.
func anyAddress(line string) *string { return scan.PCI(address.FindString(line)) }

func barInvalid(line string) (Event, bool) {
	return Event{Code: GPUBARInvalid}, strings.Contains(line, "your NVIDIA device")
}

func barLine(line string) (Event, bool) {
	if !strings.Contains(line, "BAR") {
		return Event{}, false
	}
	m := barOf.FindStringSubmatch(line)
	if m == nil {
		return Event{}, false
	}
	return Event{Code: GPUBARInvalid, PCIAddress: gpuAddress(m[2]), Keys: map[string]any{"bar": scan.Int(m[1])}}, true
}

func powerCable(line string) (Event, bool) {
	return Event{Code: GPUPowerCable, PCIAddress: anyAddress(line)}, strings.Contains(line, "NVRM")
}

func resetNeeded(line string) (Event, bool) {
	return Event{Code: GPUResetNeeded, PCIAddress: anyAddress(line)}, strings.Contains(line, "GPU likely needs to be reset")
}

func loadFailed(line string) (Event, bool) {
	m := loadLine.FindStringSubmatch(line)
	if m == nil || !strings.Contains(line, "modprobe") && !strings.Contains(line, "ERROR") && !strings.Contains(line, "insmod") {
		return Event{}, false
	}
	return Event{Code: ModuleLoadFailure, Keys: map[string]any{"module": m[1], "reason": strings.TrimSpace(m[2])}}, true
}
