package perftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/netip"
	"strconv"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/fabric"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/coreutils"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// A Network connects guests.
type Network interface {
	// Reach returns the VM that the guest reaches at ip by its routes.
	Reach(ip netip.Addr) (vm string, ok bool)
	// Path returns the current path between two interfaces.
	Path(a, b fabric.End) fabric.Path
	// Transmit counts traffic from a to b on the ports and RDMA devices of the hosts, and returns its effect.
	Transmit(p fabric.Path, f fabric.Flow) fabric.Effect
}

// A Tool is perftest in one guest.
type Tool struct {
	VM      string
	Version func() string // protocol version, such as "5.96"
	Relaxed bool          // the release supports PCIe relaxed ordering and prints small values with six digits
	Verbs   *rdma.Verbs
	Meeting *Meeting
	Load    *fabric.Load
	Net     Network
	Use     func() (release func()) // prevents the driver from being unloaded
	CUDA    CUDA

	built bool   // built with CUDA
	is    string // version of a perftest that was built in the guest; "": the distribution's
}

// Prefixes of programs that were built without CUDA: from the archive on the share, and from v4.4-0.11, as in VMware's guide.
const (
	OwnPrefix = "own-"
	OldPrefix = "old-"

	sourceVersion, oldVersion = "6.24", "5.60"
)

// version returns the protocol version of the program, "6.06".
func (t Tool) version() string { return cmp.Or(t.is, t.Version()) }

// Programs returns the programs by name. Names have the prefix cuda- for a build with CUDA, and own- or old- for a build
// without.
func (t Tool) Programs() map[string]sh.Program {
	all := map[string]sh.Program{}
	cuda, own, old := t, t, t
	cuda.built, cuda.is, own.is, old.is = true, sourceVersion, sourceVersion, oldVersion
	for _, name := range []string{"ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat"} {
		all[name], all[CUDAPrefix+name], all[OwnPrefix+name], all[OldPrefix+name] = t.run, cuda.run, own.run, old.run
	}
	return all
}

// buffered is standard output without a terminal: it is written at the end of the program, and lost if the program is killed.
type buffered struct {
	w    io.Writer
	line bool
	held []byte
}

func (b *buffered) Write(p []byte) (int, error) {
	if b.line {
		return b.w.Write(p)
	}
	b.held = append(b.held, p...)
	const block = 4096
	if len(b.held) >= block {
		return len(p), b.flush()
	}
	return len(p), nil
}

func (b *buffered) flush() error {
	_, err := b.w.Write(b.held)
	b.held = nil
	return err
}

func (t Tool) run(ctx context.Context, p *sh.Proc) int {
	mode := p.Getenv(coreutils.Unbuffered)
	out := &buffered{w: p.Stdout, line: p.Session.TTY || mode == "L" || mode == "0"}
	status := t.test(ctx, p, out)
	if ctx.Err() == nil {
		_ = out.flush() // fails if the reader has ended
	}
	return status
}

func (t Tool) test(ctx context.Context, p *sh.Proc, out io.Writer) int {
	o, err := parse(p, t.built)
	var alone bare
	switch {
	case errors.Is(err, errVersion):
		fmt.Fprintf(out, "Version: %s\n", t.version())
		return 1
	case errors.Is(err, errHelp):
		fmt.Fprintf(out, "Usage:\n  %s            start a server and wait for connection\n  %s <host>     connect to server at <host>\n",
			p.Name(), p.Name())
		if t.built {
			fmt.Fprintf(out, "      --use_cuda=<cuda device id> Use CUDA specific device for GPUDirect RDMA testing\n"+
				"      --use_cuda_bus_id=<cuda full BUS id> Use CUDA specific device, based on its full PCIe address, for GPUDirect RDMA testing\n"+
				"      --use_cuda_dmabuf Use CUDA DMA-BUF for GPUDirect RDMA testing\n")
		}
		return 1
	case errors.As(err, &alone):
		fmt.Fprintf(p.Stderr, "%v\n", err)
		return 1
	case err != nil:
		fmt.Fprintf(p.Stderr, "%s: %v\n Invalid Command or flag.\n Please check command line and run again.\n\n", p.Name(), err)
		return 1
	}
	self, text := t.open(p, o)
	if text != "" {
		fmt.Fprintf(p.Stderr, "%s", text)
		return 1
	}
	defer t.Use()()
	if o.memory.cuda {
		fmt.Fprintf(out, "Perftest doesn't supports CUDA tests with inline messages: inline size set to 0\n")
	}
	if o.server == "" {
		return t.serve(ctx, p, out, self)
	}
	if text := t.allocate(out, p, &self); text != "" {
		fmt.Fprintf(p.Stderr, "%s", text)
		return 1
	}
	return t.connect(ctx, p, out, self)
}

// open returns the device with its GID, or the error message of the program.
func (t Tool) open(p *sh.Proc, o options) (side, string) {
	var dev rdma.Device
	found := false
	for _, d := range t.Verbs.Open(p) {
		if !found && (o.device == "" || d.Name == o.device) {
			dev, found = d, true
		}
	}
	switch {
	case !found && o.device == "":
		return side{}, " Did not detect devices \n If device exists, check if driver is up\n Unable to find the Infiniband/RoCE device\n"
	case !found:
		return side{}, fmt.Sprintf("IB device %s not found\n Unable to find the Infiniband/RoCE device\n", o.device)
	case o.ibPort != 1:
		return side{}, fmt.Sprintf(" Unable to query port %d attributes\n Couldn't set the link layer\n Couldn't get context for the device\n",
			o.ibPort)
	case !dev.Active:
		return side{}, " Port number 1 state is Down\n Couldn't set the link layer\n Couldn't get context for the device\n"
	case o.conn != "RC":
		return side{}, "Unable to create QP.\nFailed to create QP.\n Couldn't create IB resources\n"
	}
	if need := int64(2*o.sizes()[len(o.sizes())-1]*o.qps) / 1024; !p.Root() && p.Session.Memlock >= 0 && p.Session.Memlock < need {
		return side{}, "Couldn't allocate MR\nfailed to create mr\nFailed to create MR\n Couldn't create IB resources\n"
	}
	at := o.gid
	if at < 0 {
		at = best(dev.GIDs)
	}
	if at >= len(dev.GIDs) {
		return side{}, fmt.Sprintf("can't read sgid of index %d\n Unable to set up IB connection\n", at)
	}
	mtu := rdma.ActiveMTU(dev.MTU)
	if o.mtu > 0 {
		mtu = min(mtu, o.mtu)
	}
	n := number(t.VM, p.PID)
	return side{version: t.version(), end: fabric.End{VM: t.VM, MAC: dev.MAC, MTU: dev.MTU, Up: dev.Up}, dev: dev, gid: dev.GIDs[at],
		gidAt: at, mtu: mtu,
		opt: o, qpn: 0x10 + n%0x200, psn: n & 0xffffff}, ""
}

// best returns the GID that perftest selects by default: RoCE v2 before v1, IPv4 before link-local.
func best(table []rdma.GID) int {
	at, score := 0, -1
	for i, g := range table {
		s := 0
		if g.Addr.Is4In6() {
			s += 2
		}
		if g.V2 {
			s++
		}
		if s > score {
			at, score = i, s
		}
	}
	return at
}

func number(vm string, pid int) int {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%d", vm, pid)
	return int(h.Sum32())
}

const notResolved = "Unable to open file descriptor for socket connection Unable to init the socket connection\n"

func (t Tool) serve(ctx context.Context, p *sh.Proc, out io.Writer, self side) int {
	fmt.Fprintf(out, "\n************************************\n* Waiting for client to connect... *\n************************************\n")
	calls, stop, err := t.Meeting.listen(place{t.VM, self.opt.port})
	if err != nil {
		fmt.Fprintf(p.Stderr, "Couldn't listen to port %d\n%s", self.opt.port, notResolved)
		return 1
	}
	defer stop()
	var c *call
	select {
	case c = <-calls:
	case <-ctx.Done():
		return sh.Cause(ctx).Status()
	}
	stop()
	defer close(c.gone)
	if text := t.allocate(out, p, &self); text != "" {
		fmt.Fprintf(p.Stderr, "%s", text)
		return 1
	}
	c.answer <- self
	if status := t.agree(p, out, self, c.client); status != 0 {
		return status
	}
	for {
		select {
		case r, ok := <-c.rows:
			if !ok {
				fmt.Fprintf(out, "%s\n", rule)
				return 0
			}
			t.Verbs.Devices.Count(self.dev.Name, r.counted)
			if r.lost {
				fmt.Fprintf(p.Stderr, " Unable to read from socket/rdma_cm\nFailed to exchange data between server and clients\n")
				return 1
			}
			result(out, t, self.opt, r)
		case <-ctx.Done():
			return sh.Cause(ctx).Status()
		}
	}
}

// foreign reports whether a perftest of version own rejects a peer's version: from 5.70 on, at least 5.70 is required
// (perftest, src/perftest_communication.c, check_version_compatibility).
func foreign(own, peer string) bool {
	const least = 5.70
	a, errA := strconv.ParseFloat(own, 64)
	b, errB := strconv.ParseFloat(peer, 64)
	return errA == nil && errB == nil && a >= least && b < least
}

// agree prints the header of the report, or the reason why the two sides are incompatible.
func (t Tool) agree(p *sh.Proc, out io.Writer, self, peer side) int {
	if foreign(self.version, peer.version) {
		fmt.Fprintf(p.Stderr, "Current implementation is not compatible with versions older than 5.70\n")
		return 1
	}
	if foreign(peer.version, self.version) { // the other side disconnects during the exchange
		fmt.Fprintf(p.Stderr, " Unable to read from socket/rdma_cm\n Failed to exchange data between server and clients\n")
		return 1
	}
	if self.gid.Addr.Is4In6() != peer.gid.Addr.Is4In6() {
		fmt.Fprintf(p.Stderr, "\n Found Incompatibility issue with GID types.\n Please Try to use a different IP version.\n\n")
		header(out, t, self.opt, self, min(self.mtu, peer.mtu))
		return 1
	}
	header(out, t, self.opt, self, min(self.mtu, peer.mtu))
	address(out, "local", self)
	address(out, "remote", peer)
	columns(out, self.opt)
	if self.opt.test() != peer.opt.test() {
		fmt.Fprintf(p.Stderr,
			"ethernet_read_keys: Couldn't read remote address\n\n Unable to read from socket/rdma_cm\nFailed to exchange data between server "+
				"and clients\n")
		return 1
	}
	return 0
}

func (t Tool) connect(ctx context.Context, p *sh.Proc, out io.Writer, self side) int {
	o := self.opt
	ip, err := netip.ParseAddr(o.server)
	if err != nil {
		fmt.Fprintf(p.Stderr, "Temporary failure in name resolution for %s:%d\nProblem in resolving basic address and port\n%s", o.server, o.port,
			notResolved)
		return 1
	}
	c := &call{client: self, answer: make(chan side, 1), rows: make(chan row), gone: make(chan struct{})}
	vm, ok := t.Net.Reach(ip)
	if !ok {
		sleep(ctx, 300*time.Millisecond) // the kernel's timeout when a neighbour does not respond
		fmt.Fprintf(p.Stderr, "Couldn't connect to %s:%d\n%s", o.server, o.port, notResolved)
		return 1
	}
	peer, err := t.Meeting.connect(ctx, place{vm, o.port}, c)
	switch {
	case errors.Is(err, errNobody):
		fmt.Fprintf(p.Stderr, "Couldn't connect to %s:%d\n%s", o.server, o.port, notResolved)
		return 1
	case err != nil:
		return sh.Cause(ctx).Status()
	}
	if status := t.agree(p, out, self, peer); status != 0 {
		return status
	}
	path := t.Net.Path(self.end, peer.end)
	if !path.Reachable || !t.speaks(self, peer) {
		fmt.Fprintf(p.Stderr, "Failed to modify QP %d to RTR\n Unable to Connect the HCA's through the link\n", self.qpn)
		return 1
	}
	return t.measure(ctx, p, out, c, self, peer)
}

// speaks reports whether the GIDs of both sides can communicate: they need the same RoCE version and reachable addresses.
func (t Tool) speaks(self, peer side) bool {
	if self.gid.V2 != peer.gid.V2 || self.gid.Addr == peer.gid.Addr {
		return false
	}
	if !peer.gid.Addr.Is4In6() {
		return true
	}
	vm, ok := t.Net.Reach(peer.gid.Addr.Unmap())
	return ok && vm == peer.end.VM
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
