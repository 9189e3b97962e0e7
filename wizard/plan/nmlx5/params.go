package nmlx5

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// A Wish is how many VFs one port shall have. Other ports keep theirs; where the list in force was made for another set
// of ports (a card was added or taken out), they get what VMs use of them.
type Wish struct {
	PCI  string
	VFs  int
	Used map[string]int // VFs that VMs have, by PCI address of the port
}

// Shifted reports whether max_vfs is a list for another number of ports than the driver has (Broadcom KB 309346).
func Shifted(h *backends.Host) (numbers, ports int, is bool) {
	list := strings.Trim(h.System.Module(Core).Params["max_vfs"], `" ,`)
	if list == "" {
		return 0, 0, false
	}
	numbers, ports = strings.Count(list, ",")+1, len(Ports(h))
	return numbers, ports, numbers != ports
}

// VFs returns the number of VFs that each port would get by max_vfs, in port order.
func VFs(h *backends.Host, w Wish) ([]int, error) {
	list, err := maxVFs(h, w)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, f := range strings.Split(list, ",") {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, fmt.Errorf("max_vfs: %w", err)
		}
		out = append(out, n)
	}
	return out, nil
}

func maxVFs(h *backends.Host, w Wish) (string, error) {
	var ports []sizing.Port
	_, _, shifted := Shifted(h)
	for _, n := range Ports(h) {
		p := sizing.Port{PCI: n.PCI, VFs: -1} // as the list has it
		switch {
		case n.PCI == w.PCI:
			p.VFs = w.VFs
		case shifted:
			p.VFs = w.Used[n.PCI]
		}
		ports = append(ports, p)
	}
	return sizing.MaxVFs(ports, h.System.Module(Core).Params["max_vfs"])
}

// WithVFs adds max_vfs to parameters: one number for every port of the driver, those of other ports as they are. A list
// that says the same already keeps its spelling.
func WithVFs(h *backends.Host, params map[string]string, w Wish) (map[string]string, error) {
	list, err := maxVFs(h, w)
	if err != nil {
		return nil, err
	}
	return with(params, map[string]string{"max_vfs": list}), nil
}

// QoS returns the parameters of the modules that make a class lossless by PFC: the same mask for both directions, trust
// in DSCP, ECN always written out (its default differs between driver versions), and the mark of the host's own RDMA
// (VMware, lossless network for NVMe over RDMA; RoCE SR-IOV Setup and Performance Study on vSphere 7.x, VMware, 2022).
// missing names what a driver does not list.
func QoS(h *backends.Host, q answers.QoS) (core, rdma map[string]string, missing []string, err error) {
	mask, err := sizing.PFCMask(q.Priority)
	if err != nil {
		return nil, nil, nil, err
	}
	ecn := "0"
	if q.ECN {
		ecn = "1"
	}
	pfc := fmt.Sprintf("0x%02x", mask)
	take := func(module string, want map[string]string) map[string]string {
		m := h.System.Module(module)
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if !slices.Contains(m.Known, key) {
				missing = append(missing, module+" "+key)
				delete(want, key)
			}
		}
		return with(m.Params, want)
	}
	core = take(Core, map[string]string{"pfctx": pfc, "pfcrx": pfc, "trust_state": strconv.Itoa(sizing.TrustDSCP), "ecn": ecn})
	rdma = take(RDMA, map[string]string{"dscp_force": strconv.Itoa(q.DSCP)})
	return core, rdma, missing, nil
}

// with merges parameters. One that has the value already, however it is spelled (8, 0x08), keeps its spelling: rewriting
// it would cost a reboot for nothing.
func with(params, more map[string]string) map[string]string {
	out := maps.Clone(params)
	if out == nil {
		out = map[string]string{}
	}
	for key, v := range more {
		if !same(out[key], v) {
			out[key] = v
		}
	}
	return out
}

func same(a, b string) bool {
	x, y := strings.Split(strings.Trim(a, `" `), ","), strings.Split(b, ",")
	return slices.EqualFunc(x, y, func(p, q string) bool {
		m, err := strconv.ParseUint(strings.TrimSpace(p), 0, 32)
		n, err2 := strconv.ParseUint(q, 0, 32)
		return err == nil && err2 == nil && m == n
	})
}
