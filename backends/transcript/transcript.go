// Package transcript parses the text that a tool printed into a typed value. The parsers are pure and total: no text makes one
// panic or hang, meaningless lines are ignored, and a tool's error message becomes an error code.
//
// The packages below have one file per tool: perftest, verbs, linux, nvidia, esxi, firmware and klog, based on scan. This package
// is the table of all of them, for callers that have only the id of a tool.
package transcript

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends/transcript/esxi"
	"github.com/rdma-setup/rdma-setup/backends/transcript/firmware"
	"github.com/rdma-setup/rdma-setup/backends/transcript/klog"
	"github.com/rdma-setup/rdma-setup/backends/transcript/linux"
	"github.com/rdma-setup/rdma-setup/backends/transcript/nvidia"
	"github.com/rdma-setup/rdma-setup/backends/transcript/perflog"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
	"github.com/rdma-setup/rdma-setup/backends/transcript/verbs"
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

// Tools returns every tool, ordered by id.
func Tools() []Tool {
	tools := []Tool{
		named("ib_send_bw", perflog.Bandwidth),
		named("ib_write_bw", perflog.Bandwidth),
		named("ib_read_bw", perflog.Bandwidth),
		named("ib_send_lat", perflog.Latency),
		named("ib_write_lat", perflog.Latency),
		named("ib_read_lat", perflog.Latency),
		named("ibv_rc_pingpong", perflog.PingPong),
		single("ibv_devices", verbs.Devices),
		single("ibv_devinfo", verbs.DevInfo),
		single("ibstat", verbs.IBStat),
		single("ibstatus", verbs.IBStatus),
		single("ibdev2netdev", verbs.Netdev),
		single("rdma_link", verbs.RDMALinks),
		single("show_gids", verbs.GIDs),
		single("ofed_info", verbs.OFED),
		single("ip_addr", linux.IPAddr),
		single("ethtool_i", linux.Driver),
		single("ethtool_s", linux.Counters),
		single("mlnx_qos", linux.QoS),
		single("lsmod", linux.Modules),
		single("lspci", linux.PCI),
		single("nvidia_smi", nvidia.SMI),
		single("nvidia_smi_q", nvidia.Query),
		single("nvidia_smi_topo", nvidia.Topo),
	}
	for _, family := range []map[string]func(string) any{esxi.Tools(), firmware.Tools(), klog.Tools()} {
		for id, parse := range family {
			tools = append(tools, Tool{id, func(text string) Result { return parse(text).(Result) }})
		}
	}
	slices.SortFunc(tools, func(a, b Tool) int { return cmp.Compare(a.ID, b.ID) })
	return tools
}

// named makes a tool of a parser that serves several ids.
func named[R Result](id string, parse func(tool, text string) R) Tool {
	return Tool{id, func(text string) Result { return parse(id, text) }}
}

// single makes a tool of a parser that serves one id.
func single[R Result](id string, parse func(text string) R) Tool {
	return Tool{id, func(text string) Result { return parse(text) }}
}
