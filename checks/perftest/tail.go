package perftest

import (
	"context"
	"fmt"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/transcript/perflog"
)

const (
	tailMost  = 100_000         // number of messages from which p99.9 is meaningful
	tailLeast = 10_000          // with fewer messages it is little more than the slowest one
	tailTime  = 5 * time.Second // limit of the sample on a slow path
)

// tail measures the smallest message again, often enough for a p99.9, and replaces the sweep's thousand samples. If that fails
// the sweep's result stays.
func (r *Runner) tail(ctx context.Context, p Pair, port int, m *Measurement) {
	if len(m.Rows) == 0 || m.Rows[0].TypicalUs <= 0 {
		return
	}
	first := &m.Rows[0]
	there := time.Duration(2 * first.TypicalUs * float64(time.Microsecond)) // in both directions
	n := max(tailLeast, min(tailMost, int(tailTime/max(there, 1))))
	out, err := r.exchange(ctx, p, SendLatency, fmt.Sprintf("-s %d -n %d", first.Bytes, n), port, m)
	if err != nil || out.Exit != 0 {
		return
	}
	res := perflog.Latency(SendLatency, out.Stdout)
	if len(res.Errors) > 0 || len(res.Rows) != 1 || res.Rows[0].SizeBytes != first.Bytes || value(res.Rows[0].TTypicalUs) <= 0 {
		return
	}
	*first = latencyRow(res.Rows[0])
}

func latencyRow(row perflog.LatencyRow) Row {
	return Row{
		Bytes: row.SizeBytes, Iterations: row.Iterations, TypicalUs: value(row.TTypicalUs), AvgUs: value(row.TAvgUs),
		P99Us: value(row.P99Us), P999Us: value(row.P999Us),
	}
}
