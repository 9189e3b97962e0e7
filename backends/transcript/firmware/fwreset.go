// Package firmware parses the output of the Mellanox and NVIDIA firmware tools of MFT and mstflint: flint, mlxconfig,
// mlxfwmanager, mlxfwreset and mst.
package firmware

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Reset is what mlxfwreset (mstfwreset) prints.
type Reset struct {
	scan.Envelope
	Device           *string     `json:"device"` // as printed
	PCIAddress       *string     `json:"pci_address"`
	ResetLevel       *int64      `json:"reset_level"`
	ResetDescription *string     `json:"reset_description"`
	Steps            []ResetStep `json:"steps"`
	FWLoaded         bool        `json:"fw_loaded"`
}

// ResetStep is one step and its result: Done, Skipped, Failed.
type ResetStep struct {
	Name   string `json:"name"`
	Result string `json:"result"`
}

// CodeResetFailed is the error of a reset that was not completed.
const CodeResetFailed = "reset_failed"

var (
	resetHead  = regexp.MustCompile(`(?i)reset[ -]level for device,?\s*(\S+)`)
	resetLevel = regexp.MustCompile(`^([0-9]+)\s*:\s+(.+)$`)
	resetStep  = regexp.MustCompile(`^(?:-I-\s*)?(\S.*?)\s*\s-\s?([A-Z][A-Za-z]*)\.?$`)
	supported  = regexp.MustCompile(`\s*-\s*(?:Not )?Supported\s*(\(default\))?\s*$`)
)

// MLXFWReset reads "mlxfwreset -d DEVICE reset" and the levels of its query.
func MLXFWReset(text string) Reset {
	r := Reset{Steps: []ResetStep{}}
	r.Envelope, text = scan.Begin("mlxfwreset", text)
	understood, types := false, false
	for line := range scan.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if m := resetHeadOf(line); m != nil {
			understood = true
			if r.Device == nil {
				r.Device = new(strings.TrimRight(line[m[2]:m[3]], ":,"))
			}
			line = strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(line[m[3]:]), "is"), " :")
		}
		if line == "" {
			continue
		}
		if strings.Contains(line, "Reset-types") || strings.Contains(line, "Reset-sync") {
			types = true
		} else if strings.Contains(line, "Reset-levels") {
			types, understood = false, true
		}
		// A long line contains several messages, each with its mark.
		for i, piece := range strings.Split(strings.ReplaceAll(line, "-I-", "\n-I-"), "\n") {
			if piece = strings.TrimSpace(piece); piece != "" && (i > 0 || !types) {
				understood = r.message(piece, understood) || understood
			}
		}
	}
	r.PCIAddress = pciOf(r.Device)
	r.NotUnderstood(understood, text)
	return r
}

func resetHeadOf(line string) []int {
	if !strings.Contains(line, "evel for device") {
		return nil
	}
	return resetHead.FindStringSubmatchIndex(line)
}

// message reads a step, the end or a failure, and below a heading a level.
func (r *Reset) message(line string, headed bool) bool {
	if strings.HasPrefix(line, "-E-") {
		r.Fail(CodeResetFailed, strings.TrimSpace(line[3:]), nil)
		return true
	}
	if strings.Contains(line, "FW was loaded successfully") {
		r.FWLoaded = true
		return true
	}
	if strings.Contains(strings.ToLower(line), "reset failed") {
		r.Fail(CodeResetFailed, line, nil)
		return true
	}
	if line[0] >= '0' && line[0] <= '9' {
		return headed && r.level(line)
	}
	if !strings.HasPrefix(line, "-I-") && !strings.Contains(line, "Done") && !strings.Contains(line, "Skipped") && !strings.Contains(line, "Failed") {
		return false
	}
	if m := resetStep.FindStringSubmatch(line); m != nil && (strings.HasPrefix(line, "-I-") || m[2] == "Done" || m[2] == "Skipped" || m[2] == "Failed") {
		r.Steps = append(r.Steps, ResetStep{Name: m[1], Result: m[2]})
		if strings.HasPrefix(m[2], "Fail") {
			r.Fail(CodeResetFailed, line, nil)
		}
		return true
	}
	return false
}

// level reads "3: Driver restart and PCI reset".
func (r *Reset) level(line string) bool {
	m := resetLevel.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	description, _, _ := strings.Cut(m[2], "Continue with reset")
	if at := supported.FindStringSubmatchIndex(description); at != nil { // a query: its default is what a reset would do
		if at[2] < 0 {
			return true
		}
		description = description[:at[0]]
	}
	if r.ResetLevel == nil {
		r.ResetLevel, r.ResetDescription = scan.Int(m[1]), scan.Str(description)
	}
	return true
}

// Errors that the tools share.
const (
	CodeCannotOpen  = "cannot_open_device"
	CodeUnsupported = "unsupported_device"
	CodeFailed      = "failed" // for any other reason, which the text says
)

var (
	unsupported = regexp.MustCompile(`(?i)unsupported\s+(?:hw\s+)?device|MFE_UNSUPPORTED_DEVICE|device (?:type )?(?:\S+ )?is not supported|unsupported hardware`)
	cannotOpen  = regexp.MustCompile(`(?i)(?:can(?:not|'t| not)|could not|unable to|failed to)\s+open\b|failed to query\s+(?:\S+\s+)?device|open failed`)
	marked      = regexp.MustCompile(`^\s*(?:-[EWI]-|FATAL\s*-)\s*`)
)

// refusal returns the code of a line that says that the device cannot be used, and the line without its mark.
func refusal(line string) (code, words string) {
	if !mayRefuse(line) {
		return "", ""
	}
	words = strings.TrimSpace(line[len(marked.FindString(line)):])
	switch {
	case unsupported.MatchString(line):
		return CodeUnsupported, words
	case cannotOpen.MatchString(line):
		return CodeCannotOpen, words
	}
	return "", ""
}

// mayRefuse reports whether a line may match one of the regular expressions, which are slower than this check.
func mayRefuse(line string) bool {
	for _, word := range []string{"-E-", "pen", "upported", "UPPORTED", "uery"} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// withoutRefusals removes the lines with refusals and passes them to fail: their words resemble labels ("open device:").
func withoutRefusals(text string, fail func(line string) bool) string {
	if !strings.Contains(text, "-E-") && !mayRefuse(text) {
		return text
	}
	var b strings.Builder
	for line := range scan.Lines(text) {
		if !fail(line) {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Tools returns the parsers of this package by tool id.
func Tools() map[string]func(string) any {
	return map[string]func(string) any{
		"flint":        func(s string) any { return Flint(s) },
		"mlxconfig":    func(s string) any { return MLXConfig(s) },
		"mlxfwmanager": func(s string) any { return MLXFWManager(s) },
		"mlxfwreset":   func(s string) any { return MLXFWReset(s) },
		"mst":          func(s string) any { return MST(s) },
	}
}
