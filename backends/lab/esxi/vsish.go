package esxi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// vsish prints the statistics of pNICs: the general ones, then those of the driver. nmlx5 uses the counter names that ethtool
// shows for mlx5 on Linux.
func (h *Host) vsish(_ context.Context, p *sh.Proc) int {
	args := p.Args[1:]
	if len(args) != 3 || args[0] != "-e" || !slices.Contains([]string{"get", "cat"}, args[1]) {
		fmt.Fprintf(p.Stderr, "Usage: vsish -e <command> <node>\n")
		return 1
	}
	device, ok := strings.CutSuffix(strings.TrimPrefix(args[2], "/net/pNics/"), "/stats")
	text := ""
	h.world.View(func(s *world.State) {
		host := s.Host(h.name)
		if nic := host.PNIC(device); ok && nic != nil {
			text = stats(nic)
		}
	})
	if text == "" {
		fmt.Fprintf(p.Stderr, "VSISHCmdGetInt():Get failed: Not found\n")
		return 1
	}
	p.Printf("%s", text)
	return 0
}

func stats(nic *world.PNIC) string {
	return "device {\n  -- General Statistics:\n  Rx Packets:184213\n  Tx Packets:90312\n  Rx Bytes:21913320\n  Tx Bytes:8120443\n" +
		"  -- Driver Specific Statistics:\n" + nic.Statistics("  ") + "}\n"
}
