package esxi

import (
	"context"
	"regexp"
	"strconv"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// PriorityCounters reads the driver's per-priority counters of a pNIC, by the names it prints, such as rx_prio3_bytes. Only the
// port itself has these counters (kernel mlx5 counters.rst), and no esxcli command shows them. The vsish node is only read, never
// set. SSH must be open on the host.
func (h *Hosts) PriorityCounters(ctx context.Context, host, device string) (map[string]int64, error) {
	out := map[string]int64{}
	err := h.with(ctx, host, func(s *shell) error {
		r, err := s.conn.Run(ctx, ssh.Command{Argv: []string{"vsish", "-e", "cat", "/net/pNics/" + device + "/stats"}, Limit: s.limit})
		if err != nil {
			return err
		}
		out = priorityCounters(r.Stdout)
		if r.ExitCode != 0 || len(out) == 0 {
			return backends.Errorf(backends.KindPermanent, host, "", "read the statistics of %s: vsish shows no counters per priority", device)
		}
		return nil
	})
	return out, err
}

// priorityCounter matches one line of a per-priority counter in a driver's statistics.
var priorityCounter = regexp.MustCompile(`(?m)^\s*([rt]x_prio[0-7]_[a-z_]+)\s*[:=]\s*(\d+)\s*$`)

func priorityCounters(text string) map[string]int64 {
	out := map[string]int64{}
	for _, m := range priorityCounter.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.ParseInt(m[2], 10, 64); err == nil {
			out[m[1]] = n
		}
	}
	return out
}
