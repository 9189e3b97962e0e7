package netif

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// A DCB contains the Data Center Bridging settings of a port. The zero value is the default: no PFC, trust PCP, ECN on.
type DCB struct {
	PFC          int      // mask of priorities with PFC
	Apps         [64]int8 // priority + 1 by DSCP; DSCP is trusted while there is an entry (Linux, mlx5 en_dcbnl.c, ieee_setapp)
	NPOff, RPOff int      // masks of priorities in which ECN's notification or reaction point is off
}

// Trust returns the trust mode: the header field from which the priority is derived.
func (d DCB) Trust() string {
	if d.Apps == [64]int8{} {
		return "pcp"
	}
	return "dscp"
}

// buffer returns the receive buffer of a priority. Priorities with PFC use buffer 1, the others use buffer 0.
func (d DCB) buffer(priority int) int { return d.PFC >> priority & 1 }

// whole returns the port of an interface that supports DCB. mlx5 supports it only for functions that manage their port, not for
// VFs (Linux, mlx5 en_dcbnl.c, vport_group_manager).
func (c *Config) whole(name string) (*HCA, error) {
	l, ok := c.Stack.Link(name)
	if !ok || l.Name != name {
		return nil, syscall.ENODEV
	}
	if l.HCA == nil || l.HCA.DCB == nil {
		return nil, syscall.EOPNOTSUPP
	}
	return l.HCA, nil
}

// dcb implements the program dcb of iproute2 5.11 and later (dcb-pfc(8), dcb-app(8), dcb-buffer(8)).
func (c *Config) dcb(_ context.Context, p *sh.Proc) int {
	args := p.Args[1:]
	if len(args) > 0 && args[0] == "-N" {
		args = args[1:]
	}
	if len(args) < 4 || args[2] != "dev" {
		fmt.Fprintf(p.Stderr, "Usage: dcb [ OPTIONS ] OBJECT { COMMAND | help }\n")
		return 1
	}
	object, verb, words := args[0], args[1], args[4:]
	h, err := c.whole(args[3])
	if err != nil {
		fmt.Fprintf(p.Stderr, "Attribute read: %v\n", err)
		return 1
	}
	if verb != "show" && !p.Root() {
		fmt.Fprintf(p.Stderr, "Attribute write: %v\n", syscall.EPERM)
		return 1
	}
	d := h.DCB()
	switch object + " " + verb {
	case "pfc show":
		p.Printf("prio-pfc")
		for i := range 8 {
			p.Printf(" %d:%s", i, map[int]string{0: "off", 1: "on"}[d.PFC>>i&1])
		}
		p.Printf(" \n")
		return 0
	case "buffer show":
		p.Printf("prio-buffer")
		for i := range 8 {
			p.Printf(" %d:%d", i, d.buffer(i))
		}
		p.Printf(" \n")
		return 0
	case "app show":
		if d.Trust() == "dscp" {
			p.Printf("dscp-prio")
			for dscp, prio := range d.Apps {
				if prio > 0 {
					p.Printf(" %d:%d", dscp, prio-1)
				}
			}
			p.Printf(" \n")
		}
		return 0
	case "app flush":
		d.Apps = [64]int8{}
	case "pfc set", "app replace", "app add", "app del":
		if len(words) < 2 || words[0] != map[string]string{"pfc": "prio-pfc", "app": "dscp-prio"}[object] {
			fmt.Fprintf(p.Stderr, "What is %q?\n", strings.Join(words, " "))
			return 1
		}
		for _, w := range words[1:] {
			if !d.map1(object, verb, w) {
				fmt.Fprintf(p.Stderr, "Invalid mapping %q\n", w)
				return 1
			}
		}
	default:
		fmt.Fprintf(p.Stderr, "Object %q is unknown, try \"dcb help\".\n", object)
		return 1
	}
	h.SetDCB(d)
	return 0
}

// map1 applies one KEY:VALUE argument of dcb.
func (d *DCB) map1(object, verb, word string) bool {
	key, value, _ := strings.Cut(word, ":")
	k, err := strconv.Atoi(key)
	if object == "pfc" {
		on := value == "on"
		switch {
		case !on && value != "off":
			return false
		case key == "all":
			d.PFC = map[bool]int{true: 0xff}[on]
		case err != nil || k < 0 || k > 7:
			return false
		default:
			d.PFC = d.PFC&^(1<<k) | map[bool]int{true: 1 << k}[on]
		}
		return true
	}
	prio, errPrio := strconv.Atoi(value)
	if err != nil || errPrio != nil || k < 0 || k > 63 || prio < 0 || prio > 7 {
		return false
	}
	switch {
	case verb != "del":
		d.Apps[k] = int8(prio + 1)
	case d.Apps[k] != int8(prio+1):
		return false
	default:
		d.Apps[k] = 0
	}
	return true
}

// mlnxQoS implements mlnx_qos of MLNX_OFED (Mellanox/mlnx-tools, python/mlnx_qos; NVIDIA, "Quality of Service (QoS)").
func (c *Config) mlnxQoS(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("i: f: h interface: trust: pfc: dscp2prio:")
	if err != nil {
		return p.Usage(2, err)
	}
	h, err := c.whole(o.Value("i", "interface"))
	if err != nil {
		fmt.Fprintf(p.Stderr, "Netlink error: Bad value. see dmesg.\n")
		return 1
	}
	d := h.DCB()
	changes := false
	switch trust := o.Value("trust"); {
	case trust == "dscp" && d.Trust() != "dscp":
		changes = true
		for dscp := range d.Apps {
			d.Apps[dscp] = int8(dscp/8 + 1)
		}
	case trust == "pcp" && d.Trust() != "pcp":
		d.Apps, changes = [64]int8{}, true
	}
	if w := strings.Split(o.Value("dscp2prio"), ","); len(w) == 3 {
		verb := map[string]string{"set": "replace", "del": "del"}[w[0]]
		if verb == "" || !d.map1("app", verb, w[1]+":"+w[2]) {
			fmt.Fprintf(p.Stderr, "Bad dscp2prio\n")
			return 1
		}
		changes = true
	}
	if list := o.Value("f", "pfc"); list != "" {
		words := strings.Split(list, ",")
		if len(words) != 8 {
			fmt.Fprintf(p.Stderr, "pfc: expected 8 values\n")
			return 1
		}
		d.PFC, changes = 0, true
		for i, w := range words {
			if w == "1" {
				d.PFC |= 1 << i
			}
		}
	}
	if changes && !p.Root() {
		fmt.Fprintf(p.Stderr, "Netlink error: Bad value. see dmesg.\n")
		return 1
	}
	if changes {
		h.SetDCB(d)
	}
	d.print(p)
	return 0
}

// print writes the output of mlnx_qos.
func (d DCB) print(p *sh.Proc) {
	p.Printf("DCBX mode: OS controlled\nPriority trust state: %s\n", d.Trust())
	if d.Trust() == "dscp" {
		p.Printf("dscp2prio mapping:\n")
		for prio := range 8 {
			list := ""
			for dscp := 63; dscp >= 0; dscp-- {
				if d.Apps[dscp] == int8(prio+1) {
					list += fmt.Sprintf("%02d,", dscp)
				}
			}
			if list != "" {
				p.Printf("\tprio:%d dscp:%s\n", prio, list)
			}
		}
	}
	row := func(name string, value func(int) int) {
		p.Printf("\t%-12s", name)
		for i := range 8 {
			p.Printf("%d   ", value(i))
		}
		p.Printf("\n")
	}
	p.Printf("Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,max_buffer_size=262016\nCable len: 7\nPFC configuration:\n")
	row("priority", func(i int) int { return i })
	row("enabled", func(i int) int { return d.PFC >> i & 1 })
	row("buffer", d.buffer)
	for i := range 8 {
		p.Printf("tc: %d ratelimit: unlimited, tsa: vendor\n\t priority:  %d\n", i, i)
	}
}

// ECN returns the directory ecn of a port's interface, which only MLNX_OFED's driver creates (NVIDIA, "Explicit Congestion
// Notification (ECN)").
func (h *HCA) ECN() vfs.Tree {
	t := vfs.Tree{}
	for i := range 8 {
		for name, mask := range map[string]func(*DCB) *int{"roce_np": func(d *DCB) *int { return &d.NPOff },
			"roce_rp": func(d *DCB) *int { return &d.RPOff }} {
			now := h.DCB()
			t[name+"/enable/"+strconv.Itoa(i)] = vfs.Entry{Data: strconv.Itoa(1-*mask(&now)>>i&1) + "\n", Mode: 0o644, Set: func(text string) error {
				d := h.DCB()
				switch strings.TrimSpace(text) {
				case "1":
					*mask(&d) &^= 1 << i
				case "0":
					*mask(&d) |= 1 << i
				default:
					return syscall.EINVAL
				}
				h.SetDCB(d)
				return nil
			}}
		}
	}
	return t
}
