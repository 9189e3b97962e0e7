package recipe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/draft"
)

// latencyHigh is the level of latency sensitivity that is planned; vSphere keeps more of them.
const latencyHigh = "high"

// tuning plans what makes a VM perform predictably: reserved CPU, high latency sensitivity, and the NUMA node of the NIC (RoCE
// SR-IOV Setup and Performance Study on vSphere 7.x, VMware, 2022, Table 1; vSphere Resource Management, latency-sensitive VMs).
// Settings that were not requested are not changed.
func (b *builder) tuning(v *draft.VM) []plan.Change {
	var out []plan.Change
	ref, h := backends.VMRef(v.Name), b.Part(v.Host)
	add := func(kind backends.Kind, name string, to any, why string) {
		s := backends.Setting{Target: ref, Kind: kind, Name: name}
		out = append(out, plan.Change{Setting: s, From: b.Now(s), To: backends.ValueOf(to), Why: why})
	}
	want := b.Answers.Tuning
	if want.ReserveCPU || want.Latency == latencyHigh {
		if h.CPUMHz == 0 {
			b.Refuse(ref, "VM-CPURES-012", "set tuning.reserve_cpu to false and tuning.latency to normal",
				"the clock of %s is not known, so its CPU cannot be reserved in full", h.Name)
			return nil
		}
		add(backends.KindCPU, "", int64(v.CPUs)*int64(h.CPUMHz), fmt.Sprintf("%d vCPUs x %d MHz, so that no other VM takes them", v.CPUs,
			h.CPUMHz))
	}
	if want.Latency == latencyHigh {
		add(backends.KindLatency, "", latencyHigh, "each vCPU has a core of its own; needs all memory and CPU reserved")
	}
	if want.NUMA == "nic" && h.Chosen != nil {
		nodes, near, unknown := b.nodesOf(v, h)
		cores := 0 // of a node
		if h.Sockets > 0 {
			cores = h.Cores / h.Sockets
		}
		switch {
		case unknown != "":
			b.Refuse(ref, "HOST-PNIC-NUMA-011", "set tuning.numa to none", "the NUMA node of %s on %s is not known", unknown, h.Name)
		case len(nodes) > 1:
			b.NoteEach(v.Name, "[its|their] rails are on NUMA nodes %s of %s: no node is near to all, and none is set", strings.Join(nodes, " and "),
				h.Name)
		case cores > 0 && v.CPUs > cores:
			b.Object(ref, "VM-NUMA-013", "give it fewer vCPUs, or set tuning.numa to none", "has %d vCPUs, a NUMA node of %s has %d cores", v.CPUs,
				h.Name, cores)
		default:
			add(backends.KindExtra, backends.NodeAffinityKey, nodes[0], fmt.Sprintf("%s is on NUMA node %s", near, nodes[0]))
		}
	}
	if want.NUMA != "nic" && b.Answers.Several() && b.Virtual() && h.Chosen != nil {
		switch nodes, _, unknown := b.nodesOf(v, h); {
		case unknown != "":
			b.NoteEach(v.Name, "the NUMA node of %s on %s is not known: nothing keeps the [VM near its|VMs near their] VFs", unknown, h.Name)
		case len(nodes) > 1:
			b.NoteEach(v.Name, "[its|their] rails are on NUMA nodes %s of %s: no node is near to all [its|their] VFs", strings.Join(nodes, " and "),
				h.Name)
		default:
			b.NoteEach(v.Name,
				"[its|their] rails are on NUMA node %s of %s; ESXi may run [it|them] on another one: tuning.numa: nic keeps [it|them] there", nodes[0],
				h.Name)
		}
	}
	return out
}

// nodesOf returns the NUMA nodes of a VM's pNICs, the first of these, and the pNIC whose node is not known.
func (b *builder) nodesOf(v *draft.VM, h *draft.Host) (nodes []string, first, unknown string) {
	ports := []*backends.NIC{}
	for _, n := range v.Nets {
		if p := b.Port(h, n); p != nil {
			ports = append(ports, p)
		}
	}
	if len(ports) == 0 {
		ports = append(ports, h.Chosen)
	}
	for _, p := range ports {
		node := strconv.Itoa(p.NUMA)
		if p.NUMA < 0 {
			return nil, "", p.Device
		}
		if !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes, ports[0].Device, ""
}

// cpuFits refuses CPU reservations and exclusive cores that a host cannot provide. Reservations of other VMs count too while they
// are on.
func (b *builder) cpuFits() {
	if !b.Answers.Tuning.ReserveCPU && b.Answers.Tuning.Latency != latencyHigh {
		return
	}
	mhz, cores := map[string]int64{}, map[string]int{}
	for i := range b.Inventory.VMs {
		v := &b.Inventory.VMs[i]
		h := b.Part(v.Host)
		switch {
		case h == nil:
		case b.ByVM[v.Name] != nil:
			mhz[v.Host] += int64(v.CPUs) * int64(h.CPUMHz)
			if b.Answers.Tuning.Latency == latencyHigh {
				cores[v.Host] += v.CPUs
			}
		case v.Power == "poweredOn" && v.CPUReserved != nil:
			mhz[v.Host] += *v.CPUReserved
		}
	}
	for _, h := range b.Hosts {
		ref, all := backends.HostRef(h.Name), int64(h.Cores)*int64(h.CPUMHz)
		switch {
		case h.Cores == 0:
		case mhz[h.Name] > all:
			b.Object(ref, "VM-CPURES-012", "move VMs, give them fewer vCPUs, or set tuning.reserve_cpu to false and tuning.latency to normal",
				"%d MHz of CPU would be reserved, it has %d MHz", mhz[h.Name], all)
		case cores[h.Name] >= h.Cores:
			b.Object(ref, "VM-LATSENS-011", "leave ESXi some cores (VMware's RoCE SR-IOV study gives VMs 44 of 48), or set tuning.latency to normal",
				"%d of its %d cores would be reserved for latency-sensitive VMs", cores[h.Name], h.Cores)
		}
	}
}
