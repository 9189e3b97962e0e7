// Package transcript turns the text that a tool printed into a typed value. The parsers are pure and total: no text
// makes one panic or hang, lines that mean nothing pass by, and what a tool says about its failure becomes an error code.
//
// The packages below hold one file a tool: perftest, verbs, linux, nvidia, esxi, firmware and klog, on the common ground
// of scan. This package is the table over all of them, for callers that know the tool by its id only.
package transcript

import (
	"fmt"
	"io"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Result is the typed value of a text. It marshals to one JSON object that has tool, warnings and errors.
type Result interface {
	// Failed reports whether the text holds an error: the tool failed, or the text is none of the tool's.
	Failed() bool
}

// Tool is one tool whose text can be read.
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

// Parse reads the text of the tool from r, at most scan.MaxInput bytes of it. It fails when the tool is unknown or r
// cannot be read; what the text itself says is in the result.
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
