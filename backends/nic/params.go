package nic

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Wish is the requested number of VFs of ports. Other ports keep theirs; if the current list was made for another set of ports
// (a card was added or removed), they get as many as VMs use.
type Wish struct {
	VFs  map[string]int // by PCI address of the port
	Used map[string]int // number of VFs that VMs use, by PCI address of the port
}

// VFParam returns the driver's current list of VFs, "" if it is unset.
func VFParam(sys *backends.HostSystem, f Family) string {
	return Param(sys, f.Driver(), f.VFs().Param)
}

// IsVFParam reports whether a parameter of a module is a list of VFs.
func IsVFParam(module, name string) bool {
	f := Of(module)
	return f != nil && f.VFs().Param == name
}

// Read reports whether the parameters of any family's driver were read.
func Read(sys *backends.HostSystem) bool {
	return sys != nil && slices.ContainsFunc(Families(), func(f Family) bool { return sys.Modules[f.Driver()].Known() })
}

// Shifted reports whether the list of VFs has a different number of entries than the driver has ports (Broadcom KB 309346).
func Shifted(h *backends.Host, f Family) (numbers, ports int, is bool) {
	list := strings.Trim(h.System.Module(f.Driver()).Params[f.VFs().Param], `" ,`)
	if list == "" {
		return 0, 0, false
	}
	all := Ports(h, f)
	numbers, ports = strings.Count(list, ",")+1, len(all)-len(hidden(all))
	return numbers, ports, numbers != ports && numbers != len(all)
}

// hidden are the ports that are set to InfiniBand until the next reboot.
func hidden(ports []*backends.NIC) []*backends.NIC {
	return slices.DeleteFunc(slices.Clone(ports), func(n *backends.NIC) bool { return n.Hidden == "" })
}

// VFs returns the number of VFs that the list assigns to each port, in port order.
func VFs(h *backends.Host, f Family, w Wish) ([]int, error) {
	list, err := maxVFs(h, f, w)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.VFs().Param, err)
		}
		out = append(out, n)
	}
	return out, nil
}

func maxVFs(h *backends.Host, f Family, w Wish) (string, error) {
	var ports []Port
	_, _, shifted := Shifted(h, f)
	all, list := Ports(h, f), strings.Split(VFParam(h.System, f), ",")
	for i, n := range all {
		if n.Hidden != "" && len(list) < len(all) {
			list = slices.Insert(list, min(i, len(list)), "0") // its position in the list of the functions that will exist
		}
		p := Port{PCI: n.PCI, VFs: -1} // as in the list
		switch vfs, asked := w.VFs[n.PCI]; {
		case asked:
			p.VFs = vfs
		case shifted:
			p.VFs = w.Used[n.PCI]
		}
		ports = append(ports, p)
	}
	return MaxVFs(f.VFs(), ports, strings.Join(list, ","))
}

// WithVFs adds the list of VFs to parameters: one number for every port of the driver, unchanged for other ports. An equivalent
// list keeps its spelling.
func WithVFs(h *backends.Host, f Family, params map[string]string, w Wish) (map[string]string, error) {
	list, err := maxVFs(h, f, w)
	if err != nil {
		return nil, err
	}
	return with(params, map[string]string{f.VFs().Param: list}), nil
}

// A Class is the traffic class to make lossless.
type Class struct {
	Mask uint8 // bit of its priority
	DSCP int
	ECN  bool
}

// Lossless returns the parameters of the modules that make a class lossless by PFC: the same mask for both directions, trust in
// DSCP, ECN always explicit (its default differs between driver versions), and the DSCP of the host's own RDMA (VMware, lossless
// network for NVMe over RDMA; RoCE SR-IOV Setup and Performance Study on vSphere 7.x, VMware, 2022). missing are the parameters
// that a driver does not have.
func Lossless(h *backends.Host, f Family, c Class) (core, rdma map[string]string, missing []Missing) {
	p, ecn := f.Lossless(), "0"
	if c.ECN {
		ecn = "1"
	}
	pfc := fmt.Sprintf("0x%02x", c.Mask)
	take := func(module string, want map[string]string) map[string]string {
		m := h.System.Module(module)
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if !slices.Contains(m.Known, key) {
				missing = append(missing, Missing{Name: module + " " + key, PFC: key == p.PFCTx || key == p.PFCRx})
				delete(want, key)
			}
		}
		return with(m.Params, want)
	}
	core = take(f.Driver(), map[string]string{p.PFCTx: pfc, p.PFCRx: pfc, p.Trust: strconv.Itoa(p.ByDSCP), p.ECN: ecn})
	rdma = take(f.RDMA(), map[string]string{p.DSCP: strconv.Itoa(c.DSCP)})
	return core, rdma, missing
}

// A Missing is a parameter that a driver does not have.
type Missing struct {
	Name string // with its module
	PFC  bool   // the class cannot be lossless without it
}

// WithoutPFC removes PFC from the parameters of a driver, and reports whether it was set.
func WithoutPFC(f Family, core map[string]string) (out map[string]string, was bool) {
	p := f.Lossless()
	out = map[string]string{}
	for key, v := range core {
		if (key == p.PFCTx || key == p.PFCRx) && masked(v) {
			v, was = "0x00", true
		}
		out[key] = v
	}
	return out, was
}

// AnyPFC reports whether PFC is enabled for any priority in a driver of the host.
func AnyPFC(sys *backends.HostSystem) bool {
	for _, f := range Families() {
		if p := f.Lossless(); p != nil && Number(Param(sys, f.Driver(), p.PFCTx)) > 0 {
			return true
		}
	}
	return false
}

func masked(v string) bool {
	n, err := strconv.ParseUint(strings.Trim(v, `" `), 0, 16)
	return err == nil && n > 0
}

// Param returns a parameter as esxcli lists it, without the quotes of older builds.
func Param(sys *backends.HostSystem, module, name string) string {
	return strings.Trim(sys.Module(module).Params[name], `" `)
}

// Number parses 8, 0x08 or 08; it returns -1 for anything else.
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

// with merges parameters. A parameter with an equal value in another spelling (8, 0x08) keeps its spelling, because rewriting it
// would cost an unnecessary reboot.
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
