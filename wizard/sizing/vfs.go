package sizing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// FirmwareVFs is the most VFs that ConnectX firmware gives a port (MFT documentation).
const FirmwareVFs = 127

// NumOfVFs is the NUM_OF_VFS to write to a card's firmware: the sum of its ports' max_vfs and one, at most 127, and
// never less than what is there (RoCE SR-IOV Setup and Performance Study on vSphere 7.x, VMware, 2022; NUM_OF_VFS
// counts per port, so one is a margin). It fails where a port wants more than the firmware gives.
func NumOfVFs(current int, ports []int) (int, error) {
	sum := 0
	for _, n := range ports {
		if n < 0 || n > FirmwareVFs {
			return 0, fmt.Errorf("%d VFs on a port; the firmware gives 0 to %d", n, FirmwareVFs)
		}
		sum += n
	}
	return max(current, min(FirmwareVFs, sum+1)), nil
}

// EnoughVFs reports whether a card's NUM_OF_VFS covers its ports: not below the largest max_vfs.
func EnoughVFs(numOfVFs int, ports []int) bool {
	return len(ports) == 0 || numOfVFs >= slices.Max(ports)
}

// A Port is one function claimed by nmlx5_core.
type Port struct {
	PCI string // 0000:3b:00.0
	VFs int    // wanted; -1: keep what the list says now
}

// MaxVFs writes nmlx5_core's max_vfs: one number for each function that the driver claims, in ascending order of
// segment:bus:device.function (Broadcom KB 309346), never by vmnic number. current is the list as it is, "" when unset;
// its entries stay for ports whose VFs are -1.
func MaxVFs(ports []Port, current string) (string, error) {
	var now []int
	for _, f := range strings.Split(strings.Trim(current, `" `), ",") {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 {
			return "", fmt.Errorf("max_vfs is %q: %q is no number", current, f)
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
			return "", fmt.Errorf("the same PCI function stands twice")
		}
		n := e.vfs
		if n < 0 {
			n = 0
			if i < len(now) {
				n = now[i]
			}
		}
		if n > FirmwareVFs {
			return "", fmt.Errorf("%d VFs on a port; the firmware gives 0 to %d", n, FirmwareVFs)
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
		return key, fmt.Errorf("%q is no PCI address", addr)
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 16, 32)
		if err != nil {
			return key, fmt.Errorf("%q is no PCI address", addr)
		}
		key[i] = n
	}
	return key, nil
}

// LowFunctionEmpty reports whether a card asks for VFs on a later port only: with more than 8 some hosts give fewer
// (KB 2039824, ESXi 5.1; a warning, as VMware's own example does the same).
func LowFunctionEmpty(ports []int) bool {
	return len(ports) > 1 && ports[0] == 0 && slices.Max(ports) > 8
}

// VectorsFor is how many interrupt vectors VFs take, three each; 3072 are left to them on a host with 32 CPUs (vSphere
// Networking, Intel and Emulex formula).
func VectorsFor(vfs int) int { return 3 * vfs }

// VectorLimit bounds VectorsFor.
const VectorLimit = 3072

// PassthroughLimit is how many passthrough devices a VM takes by hardware version: 16, from 20 on 32 (64 with ESXi
// 8.0 U1), from 21 on 128 (KB 309986).
func PassthroughLimit(hardware int, esxi8u1 bool) int {
	switch {
	case hardware >= 21:
		return 128
	case hardware >= 20 && esxi8u1:
		return 64
	case hardware >= 20:
		return 32
	}
	return 16
}
