package generate

import (
	"fmt"
	"regexp"
	"strconv"
)

// A Path is how the workers of a job can move data.
type Path string

// The paths. Only GPUDirect has one between GPU and NIC that leaves host memory out.
const (
	PVRDMA    Path = "pvrdma"
	SRIOV     Path = "sriov"
	GPUDirect Path = "gpudirect"
	TCP       Path = "tcp"
)

// NCCL is what NVIDIA's collective library must know of the network.
type NCCL struct {
	Path      Path
	Device    string // RDMA device in the workers, rocep19s0f1; "": NCCL looks for itself
	GID       int    // index of the RoCE v2 address in the device's GID table; -1: NCCL looks for itself
	Class     int    // IP traffic class of RoCE, DSCP<<2 with the ECN bit: 106; 0: not marked
	Level     string // how far apart GPU and NIC may be: LOC (off), PIX, PXB, PHB, SYS; "": PHB with GPUDirect, else LOC
	Interface string // network interface for NCCL's own traffic, and for all with TCP; "": NCCL looks for itself
}

// Off keeps GPUDirect RDMA off.
const Off = "LOC"

// levelNumbers are the levels as libraries before 2.4 know them (NCCL user guide, NCCL_NET_GDR_LEVEL).
var levelNumbers = map[string]string{Off: "0", "PIX": "1", "PXB": "2", "PHB": "3", "SYS": "4"}

// A Variable is one of the environment.
type Variable struct{ Name, Value string }

// deviceName fits names of RDMA devices and network interfaces as Linux makes them.
var deviceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// Check names what NCCL could not mean.
func (n NCCL) Check() error {
	switch {
	case n.Path != PVRDMA && n.Path != SRIOV && n.Path != GPUDirect && n.Path != TCP:
		return fmt.Errorf("%q is no way to move data: pvrdma, sriov, gpudirect or tcp", n.Path)
	case n.Device != "" && !deviceName.MatchString(n.Device):
		return fmt.Errorf("%q is no name of an RDMA device", n.Device)
	case n.Interface != "" && !deviceName.MatchString(n.Interface):
		return fmt.Errorf("%q is no name of a network interface", n.Interface)
	case n.GID < -1 || n.GID > 255:
		return fmt.Errorf("GID index %d is not between 0 and 255", n.GID)
	case n.Level != "" && levelNumbers[n.Level] == "":
		return fmt.Errorf("%q is no GDR level: LOC, PIX, PXB, PHB or SYS", n.Level)
	case n.Class < 0 || n.Class > 255:
		return fmt.Errorf("traffic class %d is not between 0 and 255", n.Class)
	}
	return nil
}

// Variables are the settings for NCCL, in a fixed order. Libraries of the time of v1alpha2 (before 2.4) know the GDR
// level by its former name and as a number, and names without the mark for "exactly" (NCCL user guide, environment
// variables). Level LOC, formerly 0, keeps GPUDirect off: neither PVRDMA nor a VF beside a vGPU has a path for it (RDG:
// RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA, NVIDIA/Mellanox, 2019); PHB, formerly 3, lets it
// cross the CPU, which is how a VM sees all its passed-through devices.
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

// proof is the transport that NCCL's log must show, and the expression for its lines of success: NCCL names a transport that it could
// not use too, as in "NET/IB : No device found." (NCCL, src/transport/net_ib.cc, net_socket.cc and net.cc). It
// has nothing that a comment in a generated file could not hold.
func (n NCCL) proof() (transport, expression string) {
	switch n.Path {
	case TCP:
		return "NET/Socket", `NET/Socket : Using [[]| via NET/Socket/`
	case GPUDirect:
		return "NET/IB with GDRDMA", ` via NET/IB/[0-9]+([(][0-9]+[)])*/GDRDMA`
	}
	return "NET/IB", `NET/IB : Using [[]| via NET/IB/`
}
