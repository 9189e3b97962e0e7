package nic

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// PortTools are the programs that set PFC and DSCP trust in a guest that owns the port: mlnx_qos of MLNX_OFED, or dcb of iproute2
// 5.11 and later.
const PortTools = "mlnx_qos nor dcb"

// PortCommands are the command lines of each of PortTools that configure a port manually, according to mlnx_qos(8), dcb-app(8)
// and dcb-pfc(8).
func PortCommands(q backends.QoSSpec) (ofed string, iproute []string) {
	bits := strings.Split("0,0,0,0,0,0,0,0", ",")
	bits[min(max(q.Priority, 0), len(bits)-1)] = "1"
	return "mlnx_qos -i DEV --trust=dscp --pfc=" + strings.Join(bits, ","),
		[]string{fmt.Sprintf("dcb app replace dev DEV dscp-prio %d:%d", q.DSCP, q.Priority), fmt.Sprintf("dcb pfc set dev DEV prio-pfc all:off %d:on", q.Priority)}
}

// BufferCommands give a priority a receive buffer of its own (NVIDIA, Quality of Service (QoS); dcb-buffer(8)). This program does
// not run them: the firmware assigns a buffer to a priority with PFC, unless buffers were configured manually (Linux, mlx5
// en_dcbnl.c, mlx5e_dcbnl_ieee_setpfc).
func BufferCommands(priority int) string {
	to := strings.Split("0,0,0,0,0,0,0,0", ",")
	to[min(max(priority, 0), len(to)-1)] = "1"
	return fmt.Sprintf("mlnx_qos -i DEV --prio2buffer=%s, or dcb buffer set dev DEV prio-buffer %d:1", strings.Join(to, ","), priority)
}
