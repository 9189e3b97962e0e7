// Package perftest implements ib_send_bw, ib_write_bw, ib_read_bw and the corresponding _lat programs for the lab's guests. A
// server waits for a client, both exchange their parameters, and the client prints the performance of the fabric.
package perftest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

const (
	defaultPort = 18515
	bwSize      = 65536
	latSize     = 2
	defaultRuns = 1000
	maxSize     = 8 << 20
)

// options are the options of one run.
type options struct {
	verb     string // Send, RDMA_Write, RDMA_Read
	latency  bool
	server   string // "" on the server
	device   string
	ibPort   int
	port     int
	size     int
	all      bool
	iters    int
	seconds  int
	gid      int // -1: selected by the program
	mtu      int // 0: MTU of the device
	qps      int
	gbits    bool
	depth    int
	rxDepth  int
	moderate int
	rdmaCM   bool
	conn     string
	bidir    bool
	class    int // traffic class of the IP header
	memory   memory
}

// complaint is an error with perftest's message.
type complaint string

func (c complaint) Error() string { return string(c) }

var (
	errVersion = errors.New("version")
	errHelp    = errors.New("help")
)

// parse parses the options. cuda is true if the program was built with CUDA.
func parse(p *sh.Proc, cuda bool) (options, error) {
	known := "a all d: ib-dev: i: ib-port: p: port: s: size: n: iters: D: duration: x: gid-index: m: mtu: q: qp: F CPU-freq " +
		"report_gbits report-both t: tx-depth: r: rx-depth: Q: cq-mod: b bidirectional R rdma_cm z comm_rdma_cm c: connection: S: sl: tclass: " +
		"u: qp-timeout: I: inline_size: " +
		"N no_peak e events l: post_list: U report-unsorted H report-histogram C report-cycles V version h help perform_warm_up use_hugepages " +
		"f: margin: dont_xchg_versions " +
		"disable_pcie_relaxed ipv6 ipv6-addr"
	if cuda {
		known += cudaOptions
	}
	o, err := p.Options(known)
	if err != nil {
		return options{}, err
	}
	name := p.Name()
	opt := options{latency: strings.HasSuffix(name, "_lat"), device: o.Value("d", "ib-dev"), all: o.Has("a", "all"),
		gbits: o.Has("report_gbits"), rdmaCM: o.Has("R", "rdma_cm", "z", "comm_rdma_cm"), bidir: o.Has("b", "bidirectional"), conn: "RC"}
	opt.verb = map[string]string{"send": "Send", "write": "RDMA_Write", "read": "RDMA_Read"}[strings.Split(name, "_")[1]]
	switch {
	case o.Has("V", "version"):
		return opt, errVersion
	case o.Has("h", "help"):
		return opt, errHelp
	}
	if c := o.Value("c", "connection"); c != "" {
		opt.conn = c
	}
	numbers := []struct {
		into  *int
		def   int
		names []string
	}{
		{&opt.ibPort, 1, []string{"i", "ib-port"}}, {&opt.port, defaultPort, []string{"p", "port"}},
		{&opt.size, 0, []string{"s", "size"}}, {&opt.iters, defaultRuns, []string{"n", "iters"}},
		{&opt.seconds, 0, []string{"D", "duration"}}, {&opt.gid, -1, []string{"x", "gid-index"}},
		{&opt.mtu, 0, []string{"m", "mtu"}}, {&opt.qps, 1, []string{"q", "qp"}},
		{&opt.depth, 128, []string{"t", "tx-depth"}}, {&opt.rxDepth, 512, []string{"r", "rx-depth"}},
		{&opt.moderate, 100, []string{"Q", "cq-mod"}}, {&opt.class, 0, []string{"tclass"}},
	}
	for _, n := range numbers {
		*n.into = n.def
		if text := o.Value(n.names...); text != "" {
			if *n.into, err = strconv.Atoi(text); err != nil {
				return opt, complaint(fmt.Sprintf("Failed to parse parameter %s: %q", n.names[0], text))
			}
		}
	}
	if len(o.Args) > 0 {
		opt.server = o.Args[0]
	}
	if cuda {
		if opt.memory, err = memoryOf(p.Args[1:], opt.latency, opt.verb); err != nil {
			return opt, err
		}
	}
	return opt, opt.complete(len(o.Args))
}

// complete sets values that depend on other options and rejects invalid combinations.
func (o *options) complete(operands int) error {
	switch {
	case operands > 1:
		return complaint("too many operands")
	case o.all && o.seconds > 0:
		return complaint("Duration mode currently doesn't support running on all sizes.")
	case o.class < 0 || o.class > 255:
		return complaint("Traffic class is out of range")
	case o.iters < 5:
		return complaint("Number of iterations must be at least 5")
	case o.size < 0 || o.size > 1<<30:
		return complaint("Message size is out of range")
	}
	if o.size == 0 {
		o.size = bwSize
		if o.latency {
			o.size = latSize
		}
	}
	if o.iters < o.depth {
		o.depth = o.iters
	}
	if o.iters < o.rxDepth {
		o.rxDepth = o.iters
	}
	if !o.all && o.size > 8192 || o.iters < 100 {
		o.moderate = 1
	}
	o.moderate = min(o.moderate, o.depth)
	if o.latency {
		o.depth = 1
	}
	return nil
}

// sizes returns the message sizes of the run.
func (o options) sizes() []int {
	if !o.all {
		return []int{o.size}
	}
	var list []int
	for s := 2; s <= maxSize; s *= 2 {
		list = append(list, s)
	}
	return list
}

// test returns the name of the test, which must be the same on both sides.
func (o options) test() string {
	return fmt.Sprintf("%s/%t/%t/%d/%s/%d/%d", o.verb, o.latency, o.all, o.seconds, o.conn, o.qps, o.iters)
}

func (o options) title() string {
	kind := "BW"
	if o.latency {
		kind = "Latency"
	}
	return o.verb + " " + kind + " Test"
}
