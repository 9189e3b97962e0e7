// Package transcript parses the text that a tool printed into a typed value. The parsers are pure and total: no text makes one
// panic or hang, meaningless lines are ignored, and a tool's error message becomes an error code.
//
// The packages below have one file per tool: perftest, verbs, linux, nvidia, esxi, firmware and klog, based on scan. This package
// is the table of all of them, for callers that have only the id of a tool.
package transcript

import (
	"fmt"
	"io"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Result is the typed value of a text. It marshals to one JSON object that has tool, warnings and errors.
type Result interface {
	// Failed reports whether the text contains an error: the tool failed, or the text is not from the tool.
	Failed() bool
}

// Tool is one tool whose output can be parsed.
type Tool struct {
	ID    string // "ibv_devinfo"
	Parse func(text string) Result
}

// Lookup returns the tool of that id.
func Lookup(id string) (Tool, bool) {
	for _, t := range Tools() {
		if t.ID == id {
			return t, true
		}
	}
	return Tool{}, false
}

// Parse reads the text of the tool from r, at most scan.MaxInput bytes of it. It fails if the tool is unknown or r cannot be
// read; errors in the text itself are in the result.
func Parse(id string, r io.Reader) (Result, error) {
	tool, ok := Lookup(id)
	if !ok {
		return nil, fmt.Errorf("transcript: unknown tool %q", id)
	}
	text, err := scan.Read(r)
	if err != nil {
		return nil, fmt.Errorf("transcript: read the text of %s: %w", id, err)
	}
	return tool.Parse(text), nil
}
