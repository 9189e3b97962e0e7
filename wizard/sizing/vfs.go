package sizing

// VectorsFor returns how many interrupt vectors VFs need, three each; 3072 are available to them on a host with 32 CPUs (vSphere
// Networking, Intel and Emulex formula).
func VectorsFor(vfs int) int { return 3 * vfs }

// VectorLimit bounds VectorsFor.
const VectorLimit = 3072

// PassthroughLimit returns how many passthrough devices a VM supports by hardware version: 16, from 20 on 32 (64 with ESXi 8.0
// U1), from 21 on 128 (KB 309986).
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
