// Package nmlx5 reads what the modules of Mellanox's driver on ESXi were given: their parameters, and the ports that a
// list of them is for.
package nmlx5

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// The nmlx5 modules.
const (
	Core = "nmlx5_core"
	RDMA = "nmlx5_rdma"
)

// Number reads 8, 0x08 or 08; -1 for anything else.
func Number(s string) int {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return int(n)
	}
	n, err := strconv.ParseInt(s, 0, 32)
	if err != nil {
		return -1
	}
	return int(n)
}

// Ports are the addresses of the functions of nmlx5_core in PCI order.
func Ports(h *backends.Host) []string {
	var ports []string
	for _, n := range h.NICs {
		if n.Driver == Core {
			ports = append(ports, n.PCI)
		}
	}
	slices.Sort(ports) // addresses have fixed width, so that the order of text is that of numbers
	return ports
}

// Param is a parameter as esxcli lists it, without the quotes of older builds.
func Param(sys *backends.HostSystem, module, name string) string {
	return strings.Trim(sys.Module(module).Params[name], `" `)
}
