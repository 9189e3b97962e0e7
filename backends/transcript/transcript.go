// Package transcript parses the text that a tool printed into a typed value. The parsers are pure and total: no text makes one
// panic or hang, meaningless lines are ignored, and a tool's error message becomes an error code.
//
// There is one file per tool, based on package scan; the tests of perftest are in package perflog. The table of tools is for callers
// that have only the id of one.
package transcript

import (
	"fmt"
	"io"

	"github.com/rdma-setup/rdma-setup/backends/transcript/perflog"
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

// Tools returns every tool, ordered by id: those whose output this program itself reads.
func Tools() []Tool {
	return []Tool{
		single("esxcli_software_vib_install", VIBChangeOf),
		single("flint", Flint),
		named("ib_read_bw", perflog.Bandwidth),
		named("ib_read_lat", perflog.Latency),
		named("ib_send_bw", perflog.Bandwidth),
		named("ib_send_lat", perflog.Latency),
		named("ib_write_bw", perflog.Bandwidth),
		named("ib_write_lat", perflog.Latency),
		single("ibv_devinfo", DevInfo),
		single("ip_addr", IPAddr),
		single("lspci", PCI),
		single("mlnx_qos", QoS),
		single("mlxconfig", MLXConfig),
		single("mlxfwmanager", MLXFWManager),
		single("mst", MST),
		single("nvidia_smi_q", SMIQuery),
		single("nvidia_smi_topo", Topo),
		single("ofed_info", OFED),
		single("vsphere_error", VSphereError),
	}
}

// named makes a tool of a parser that serves several ids.
func named[R Result](id string, parse func(tool, text string) R) Tool {
	return Tool{id, func(text string) Result { return parse(id, text) }}
}

func single[R Result](id string, parse func(text string) R) Tool {
	return Tool{id, func(text string) Result { return parse(text) }}
}
