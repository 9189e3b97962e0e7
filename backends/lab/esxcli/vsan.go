package esxcli

import (
	"fmt"
	"strconv"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// resyncSummary prints the amount of data that vSAN has to resync. On a host without vSAN, the command fails.
func resyncSummary(w *world.World, host string, _ Args) (Answer, error) {
	vsan := false
	a, err := view(w, host, "ResyncSummary", func(s *world.State, h *world.Host) [][]Field {
		services := s.ClusterServices(h.Cluster)
		if vsan = services.VSAN; !vsan {
			return nil
		}
		objects, left := 0, services.Resync
		if left > 0 {
			objects = 3
		}
		return [][]Field{row("Total Number Of Resyncing Objects", strconv.Itoa(objects), "Total Bytes Left To Resync", strconv.FormatInt(left, 10),
			"Total GB Left To Resync", fmt.Sprintf("%.2f", float64(left)/(1<<30)))}
	})
	if err == nil && !vsan {
		err = refuse("vSAN is not enabled on this host")
	}
	return a, err
}
