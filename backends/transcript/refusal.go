package transcript

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Errors that the tools share.
const (
	CodeCannotOpen  = "cannot_open_device"
	CodeUnsupported = "unsupported_device"
	CodeFailed      = "failed" // for any other reason, which the text says
)

var (
	unsupported = regexp.MustCompile(
		`(?i)unsupported\s+(?:hw\s+)?device|MFE_UNSUPPORTED_DEVICE|device (?:type )?(?:\S+ )?is not supported|unsupported hardware`)
	cannotOpen = regexp.MustCompile(
		`(?i)(?:can(?:not|'t| not)|could not|unable to|failed to)\s+open\b|failed to query\s+(?:\S+\s+)?device|open failed`)
	marked = regexp.MustCompile(`^\s*(?:-[EWI]-|FATAL\s*-)\s*`)
)

// refusal returns the code of a line that says that the device cannot be used, and the line without its mark.
func refusal(line string) (code, words string) {
	words = strings.TrimSpace(line[len(marked.FindString(line)):])
	switch {
	case unsupported.MatchString(line):
		return CodeUnsupported, words
	case cannotOpen.MatchString(line):
		return CodeCannotOpen, words
	}
	return "", ""
}

// withoutRefusals removes the lines with refusals and passes them to fail: their words resemble labels ("open device:").
func withoutRefusals(text string, fail func(line string) bool) string {
	var b strings.Builder
	for line := range scan.Lines(text) {
		if !fail(line) {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
