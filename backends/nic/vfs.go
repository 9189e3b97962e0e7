package nic

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// NumOfVFs returns the number of VFs to write to a card's firmware: the sum of its ports' VFs plus one, at most what the firmware
// supports, and never less than the current number (RoCE SR-IOV Setup and Performance Study on vSphere 7.x, VMware, 2022;
// NUM_OF_VFS counts per port, so one is a margin). It fails if a port needs more than the firmware supports.
func NumOfVFs(r backends.VFRules, current int, ports []int) (int, error) {
	sum := 0
	for _, n := range ports {
		if n < 0 || n > r.Most {
			return 0, fmt.Errorf("%d VFs on a port, but the firmware allows 0 to %d", n, r.Most)
		}
		sum += n
	}
	return max(current, min(r.Most, sum+1)), nil
}

// EnoughVFs reports whether a card's NUM_OF_VFS is sufficient for each of its ports.
func EnoughVFs(numOfVFs int, ports []int) bool {
	return len(ports) == 0 || numOfVFs >= slices.Max(ports)
}

// A Port is one function claimed by a driver.
type Port struct {
	PCI string // 0000:3b:00.0
	VFs int    // requested; -1: keep the current entry of the list
}

// MaxVFs returns a driver's list of VFs: one number for each function that the driver claims, in ascending order of
// segment:bus:device.function (Broadcom KB 309346), not by vmnic number. current is the present list, "" if unset; ports with VFs
// -1 keep its entries.
func MaxVFs(r backends.VFRules, ports []Port, current string) (string, error) {
	var now []int
	for _, f := range strings.Split(strings.Trim(current, `" `), ",") {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 {
			return "", fmt.Errorf("%s is %q: %q is not a number", r.Param, current, f)
		}
		now = append(now, n)
	}
	type entry struct {
		key [4]uint64
		vfs int
	}
	list := make([]entry, len(ports))
	for i, p := range ports {
		key, err := pciKey(p.PCI)
		if err != nil {
			return "", err
		}
		list[i] = entry{key, p.VFs}
	}
	slices.SortFunc(list, func(a, b entry) int { return slices.CompareFunc(a.key[:], b.key[:], cmp.Compare[uint64]) })
	out := make([]string, len(list))
	for i, e := range list {
		if i > 0 && e.key == list[i-1].key {
			return "", fmt.Errorf("the same PCI function is listed twice")
		}
		n := e.vfs
		if n < 0 {
			n = 0
			if i < len(now) {
				n = now[i]
			}
		}
		if n > r.Most {
			return "", fmt.Errorf("%d VFs on a port, but the firmware allows 0 to %d", n, r.Most)
		}
		out[i] = strconv.Itoa(n)
	}
	return strings.Join(out, ","), nil
}

// pciKey splits a hexadecimal PCI address, with or without segment.
func pciKey(addr string) ([4]uint64, error) {
	parts := strings.FieldsFunc(addr, func(r rune) bool { return r == ':' || r == '.' })
	if len(parts) == 3 {
		parts = append([]string{"0"}, parts...)
	}
	var key [4]uint64
	if len(parts) != 4 {
		return key, fmt.Errorf("%q is not a PCI address", addr)
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 16, 32)
		if err != nil {
			return key, fmt.Errorf("%q is not a PCI address", addr)
		}
		key[i] = n
	}
	return key, nil
}

// LowFunctionEmpty reports whether a card requests VFs on a later port only: with more than 8, some hosts provide fewer (KB
// 2039824, ESXi 5.1; a warning, because VMware's own example does the same).
func LowFunctionEmpty(ports []int) bool {
	return len(ports) > 1 && ports[0] == 0 && slices.Max(ports) > 8
}
