package nic

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// PortTools are the programs by which a guest that owns its card's port sets PFC and DSCP trust: MLNX_OFED's, else that of iproute2
// 5.11 and later.
const PortTools = "mlnx_qos nor dcb"

// PortCommands are the command lines of each of PortTools that set a port by hand, as mlnx_qos(8), and dcb-app(8) and dcb-pfc(8)
// have them.
func PortCommands(q backends.QoSSpec) (ofed string, iproute []string) {
	bits := strings.Split("0,0,0,0,0,0,0,0", ",")
	bits[min(max(q.Priority, 0), len(bits)-1)] = "1"
	return "mlnx_qos -i DEV --trust=dscp --pfc=" + strings.Join(bits, ","),
		[]string{fmt.Sprintf("dcb app replace dev DEV dscp-prio %d:%d", q.DSCP, q.Priority), fmt.Sprintf("dcb pfc set dev DEV prio-pfc all:off %d:on", q.Priority)}
}

// BufferCommands give a priority a receive buffer of its own (NVIDIA, Quality of Service (QoS); dcb-buffer(8)). Nothing here runs
// them: the firmware gives a priority with PFC its buffer, as long as nobody has set buffers by hand (Linux, mlx5 en_dcbnl.c,
// mlx5e_dcbnl_ieee_setpfc).
func BufferCommands(priority int) string {
	to := strings.Split("0,0,0,0,0,0,0,0", ",")
	to[min(max(priority, 0), len(to)-1)] = "1"
	return fmt.Sprintf("mlnx_qos -i DEV --prio2buffer=%s, or dcb buffer set dev DEV prio-buffer %d:1", strings.Join(to, ","), priority)
}
