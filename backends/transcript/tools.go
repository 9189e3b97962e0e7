package transcript

import (
	"cmp"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends/transcript/perftest"
)

// Tools returns every tool, ordered by id.
func Tools() []Tool {
	tools := []Tool{
		named("ib_send_bw", perftest.Bandwidth),
		named("ib_write_bw", perftest.Bandwidth),
		named("ib_read_bw", perftest.Bandwidth),
		named("ib_send_lat", perftest.Latency),
		named("ib_write_lat", perftest.Latency),
		named("ib_read_lat", perftest.Latency),
		named("ibv_rc_pingpong", perftest.PingPong),
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
