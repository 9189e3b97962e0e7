package generate

import (
	"fmt"
	"regexp"
	"strconv"
)

// A Path is how the workers of a job can move data.
type Path string

// The paths. Only GPUDirect has one between GPU and NIC that bypasses host memory.
const (
	PVRDMA    Path = "pvrdma"
	SRIOV     Path = "sriov"
	GPUDirect Path = "gpudirect"
	TCP       Path = "tcp"
)

// NCCL contains the network settings of NVIDIA's collective library.
type NCCL struct {
	Path      Path
	Device    string // RDMA device in the workers, rocep19s0f1; "": chosen by NCCL
	GID       int    // GID index of the RoCE v2 address; -1: chosen by NCCL
	Class     int    // IP traffic class of RoCE, DSCP<<2 with the ECN bit: 106; 0: not marked
	Level     string // maximum distance between GPU and NIC: LOC (off), PIX, PXB, PHB, SYS; "": PHB with GPUDirect, else LOC
	Interface string // network interface for NCCL's own traffic, and for all traffic with TCP; "": chosen by NCCL
}

// Off disables GPUDirect RDMA.
const Off = "LOC"

// levelNumbers maps the levels to their numbers in libraries before 2.4 (NCCL user guide, NCCL_NET_GDR_LEVEL).
var levelNumbers = map[string]string{Off: "0", "PIX": "1", "PXB": "2", "PHB": "3", "SYS": "4"}

// A Variable is an environment variable.
type Variable struct{ Name, Value string }

// deviceName matches names of RDMA devices and network interfaces in Linux.
var deviceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// Check returns an error for settings that NCCL does not support.
func (n NCCL) Check() error {
	switch {
	case n.Path != PVRDMA && n.Path != SRIOV && n.Path != GPUDirect && n.Path != TCP:
		return fmt.Errorf("%q is not a transport: pvrdma, sriov, gpudirect or tcp", n.Path)
	case n.Device != "" && !deviceName.MatchString(n.Device):
		return fmt.Errorf("%q is not a valid name of an RDMA device", n.Device)
	case n.Interface != "" && !deviceName.MatchString(n.Interface):
		return fmt.Errorf("%q is not a valid name of a network interface", n.Interface)
	case n.GID < -1 || n.GID > 255:
		return fmt.Errorf("GID index %d is not between 0 and 255", n.GID)
	case n.Level != "" && levelNumbers[n.Level] == "":
		return fmt.Errorf("%q is not a GDR level: LOC, PIX, PXB, PHB or SYS", n.Level)
	case n.Class < 0 || n.Class > 255:
		return fmt.Errorf("traffic class %d is not between 0 and 255", n.Class)
	}
	return nil
}

// Variables returns the settings for NCCL, in a fixed order. Libraries of the time of v1alpha2 (before 2.4) use the former name
// of the GDR level and numbers, and names without the "=" that requests an exact match (NCCL user guide, environment variables).
// Level LOC, formerly 0, disables GPUDirect: neither PVRDMA nor a VF with a vGPU has a path for it (RDG: RoCE accelerated ML and
// HPC on Kubernetes with vGPU and PVRDMA, NVIDIA/Mellanox, 2019); PHB, formerly 3, lets it cross the CPU, which is how a VM sees
// all its passed-through devices.
func (n NCCL) Variables(old bool) []Variable {
	exactly, level := "=", "NCCL_NET_GDR_LEVEL"
	gdr := n.Level
	if gdr == "" {
		gdr = Off
		if n.Path == GPUDirect {
			gdr = "PHB"
		}
	}
	if old {
		exactly, level, gdr = "", "NCCL_IB_GDR_LEVEL", levelNumbers[gdr]
	}
	out := []Variable{{"NCCL_DEBUG", "INFO"}}
	if n.Path == TCP {
		out = append(out, Variable{"NCCL_IB_DISABLE", "1"})
	} else {
		out = append(out, Variable{"NCCL_IB_DISABLE", "0"}, Variable{level, gdr})
		if n.Device != "" {
			out = append(out, Variable{"NCCL_IB_HCA", exactly + n.Device})
		}
		if n.GID >= 0 {
			out = append(out, Variable{"NCCL_IB_GID_INDEX", strconv.Itoa(n.GID)})
		}
		if n.Class > 0 {
			out = append(out, Variable{"NCCL_IB_TC", strconv.Itoa(n.Class)})
		}
	}
	if n.Interface != "" {
		out = append(out, Variable{"NCCL_SOCKET_IFNAME", exactly + n.Interface})
	}
	return out
}

// proof returns the transport that NCCL's log must show, and the pattern of its lines of success: NCCL also names a transport
// that it could not use, as in "NET/IB : No device found." (NCCL, src/transport/net_ib.cc, net_socket.cc and net.cc). Both are
// safe in a comment of a generated file.
func (n NCCL) proof() (transport, expression string) {
	switch n.Path {
	case TCP:
		return "NET/Socket", `NET/Socket : Using [[]| via NET/Socket/`
	case GPUDirect:
		return "NET/IB with GDRDMA", ` via NET/IB/[0-9]+([(][0-9]+[)])*/GDRDMA`
	}
	return "NET/IB", `NET/IB : Using [[]| via NET/IB/`
}
