package vm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// vmTuningChecks examine what makes a VM with devices start and perform predictably.
func vmTuningChecks() []checks.Check {
	return []checks.Check{
		{
			ID: "VM-MEMGPU-009", Scope: checks.VM, Link: checks.InVM, Modes: row.GPUDirect, Quick: true, Fix: checks.Manual,
			Source:   "HPE: GPU memory sizing",
			Criteria: "memory >= 1.5 x framebuffers / less / -", Remedy: "Give the VM more memory.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				w, err := f.Window(v)
				if err != nil {
					return row.Unknown(t, "the framebuffers are not known: %v", err)
				}
				return row.WarnIf(2*v.MemoryMB < 3*int64(w.SumFramebufferGB)<<10, t, "%d MB of memory, %d GB of framebuffer", v.MemoryMB,
					w.SumFramebufferGB)
			}),
		},
		{
			ID: "VM-HOTADD-010", Scope: checks.VM, Link: checks.InVM, Modes: row.Direct, Quick: true, Fix: checks.Manual, Source: "vhpc-toolkit",
			Criteria: "hot-add of CPU and memory off / - / on", Remedy: "Disable hot-add.",
			Run: row.EachVM(func(_ *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				return row.PassIf(!v.CPUHotAdd && !v.MemHotAdd, t, "hot-add of CPU is %s, of memory %s", row.OnOff(v.CPUHotAdd), row.OnOff(v.MemHotAdd))
			}),
		},
		{
			ID: "VM-LATSENS-011", Scope: checks.VM, Link: checks.InVM, Modes: row.Direct, Quick: true,
			Fixes:    []backends.Kind{backends.KindLatency, backends.KindCPU, backends.KindMemory}, // ESXi powers the VM on only with all of them
			Source:   row.SRIOVStudy + ", Table 1",
			Criteria: "latency sensitivity high with full reservations, or not asked for / asked for and not high / high without reservations",
			Remedy:   "Set latency sensitivity to high, with full reservations.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				if v.Latency != "high" && f.Answers.Tuning.Latency != "high" {
					return row.Pass(t, "latency sensitivity %s; the answers do not ask for high (tuning.latency)", cmp.Or(v.Latency, "not read"))
				}
				if v.Latency != "high" {
					return row.Warn(t, "latency sensitivity %s, asked for: high", cmp.Or(v.Latency, "not read"))
				}
				return row.PassIf(v.MemoryLocked, t, "latency sensitivity high, memory reserved %t", v.MemoryLocked)
			}),
		},
		{
			ID: "VM-CPURES-012", Scope: checks.VM, Link: checks.InVM, Modes: row.Direct, Quick: true, Fixes: []backends.Kind{backends.KindCPU},
			Source:   "vhpc-toolkit",
			Criteria: "vCPU x MHz reserved, or latency sensitivity is not high / partly / nothing", Remedy: "Reserve the CPU.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				h := f.Inventory.Host(v.Host)
				switch {
				case v.Latency != "high":
					return row.Pass(t, "latency sensitivity %s needs no reservation", cmp.Or(v.Latency, "none"))
				case v.CPUReserved == nil || h == nil || h.CPUMHz == 0:
					return row.Waiting(t, "the CPU reservation or the host's MHz were not read")
				}
				want := int64(v.CPUs) * int64(h.CPUMHz)
				if *v.CPUReserved == 0 {
					return row.Fail(t, "no CPU is reserved, %d MHz are needed", want)
				}
				return row.WarnIf(*v.CPUReserved < want, t, "%d MHz reserved, wanted %d", *v.CPUReserved, want)
			}),
		},
		{
			ID: "VM-NUMA-013", Scope: checks.VM, Link: checks.InVM, Quick: true, Fix: checks.Manual, Source: "vhpc-toolkit",
			Criteria: "the vCPUs fit into one node / they span nodes / -",
			Remedy:   "Reduce the number of vCPUs, or set the NUMA affinity to the NIC's node.",
			Run: row.EachVM(func(f *checks.Facts, t backends.Ref, v *backends.VM) checks.Answer {
				h := f.Inventory.Host(v.Host)
				if h == nil || h.Sockets == 0 || h.Cores == 0 {
					return row.Waiting(t, "the cores of host %s are not known", cmp.Or(v.Host, "none"))
				}
				return row.WarnIf(v.CPUs > h.Cores/h.Sockets, t, "%d vCPUs, %d cores per socket", v.CPUs, h.Cores/h.Sockets)
			}),
		},
	}
}

// pciAddress parses a PCI address in the form of the API (hexadecimal 0000:3b:00.1) or of VMX keys (decimal 00000:059:00.1,
// recognized by its width) and returns the first form; "" for anything else.
func pciAddress(s string) string {
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == ':' || r == '.' })
	if len(parts) != 4 || !slices.Contains([]int{4, 5}, len(parts[0])) {
		return ""
	}
	base := 16
	if len(parts[0]) == 5 && len(parts[1]) == 3 {
		base = 10
	}
	var n [4]uint64
	for i, p := range parts {
		v, err := strconv.ParseUint(p, base, 16)
		if err != nil {
			return ""
		}
		n[i] = v
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", n[0], n[1], n[2], n[3])
}
