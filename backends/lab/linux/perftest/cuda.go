package perftest

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/fabric"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A GPU is a device in CUDA's list.
type GPU struct {
	Name string
	Bus  string // 1B:00
	Host string // host address
}

// CUDA contains the data that a perftest built with CUDA requires from the guest.
type CUDA struct {
	Ready      func() bool // reports whether NVIDIA's driver can be used
	GPUs       func() []GPU
	PeerMemory func(dmabuf bool) bool
	Peer       func(gpu, mac string) fabric.Peer
}

// CUDAPrefix is the prefix of programs that were built with CUDA.
const CUDAPrefix = "cuda-"

// cudaOptions are the additional options of a build with CUDA.
const cudaOptions = " use_cuda: use_cuda_dmabuf use_cuda_bus_id: use_data_direct cuda_mem_type:"

// memory is the memory that a test reads and writes.
type memory struct {
	cuda   bool
	device int
	dmabuf bool
}

// memoryOf parses the options of a CUDA build. Their order matters: --use_cuda_dmabuf before --use_cuda is an error (perftest
// issue 336).
func memoryOf(args []string, latency bool, verb string) (memory, error) {
	var m memory
	for _, a := range args {
		switch value, isCUDA := strings.CutPrefix(a, "--use_cuda="); {
		case isCUDA:
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				return m, bare(" CUDA device argument " + value + " should be int\n Parser function exited with Error")
			}
			m.cuda, m.device = true, n
		case a == "--use_cuda_dmabuf" && !m.cuda:
			return m, bare("CUDA DMA-BUF cannot be used without CUDA\n Parser function exited with Error")
		case a == "--use_cuda_dmabuf":
			m.dmabuf = true
		}
	}
	if m.cuda && latency && verb == "RDMA_Write" {
		return m, bare("Perftest supports CUDA latency tests with read/send verbs only")
	}
	return m, nil
}

// bare is an error that perftest prints without its usage text.
type bare string

func (b bare) Error() string { return string(b) }

// allocate allocates GPU memory and registers it with the card. It returns the reason if it fails, otherwise "". The texts are those
// of perftest 24.01 to 25.01 on a real GPU, except those about memory regions.
func (t Tool) allocate(out io.Writer, p *sh.Proc, self *side) string {
	m := self.opt.memory
	if !m.cuda {
		return ""
	}
	fmt.Fprintf(out, "initializing CUDA\n")
	if !t.CUDA.Ready() {
		fmt.Fprintf(out, "cuInit(0) returned 100\n")
		return "Couldn't init GPU context: 1\n Couldn't create IB resources\n"
	}
	gpus := t.CUDA.GPUs()
	if m.device >= len(gpus) {
		return fmt.Sprintf("No such device ID (%d) exists in system\nCouldn't init GPU context: 1\n Couldn't create IB resources\n", m.device)
	}
	fmt.Fprintf(out, "Listing all CUDA devices in system:\n")
	for n, g := range gpus {
		fmt.Fprintf(out, "CUDA device %d: PCIe address is %s\n", n, g.Bus)
	}
	g := gpus[m.device]
	fmt.Fprintf(out, "\nPicking device No. %d\n[pid = %d, dev = %d] device name = [%s]\ncreating CUDA Ctx\nmaking it the current CUDA Ctx\n",
		m.device, p.PID, m.device, g.Name)
	if m.dmabuf && !t.CUDA.PeerMemory(true) {
		return "DMA-BUF is not supported on this GPU\n Couldn't create IB resources\n"
	}
	size := 2 * self.opt.sizes()[len(self.opt.sizes())-1]
	fmt.Fprintf(out,
		"CUDA device integrated: 0\ncuMemAlloc() of a %d bytes GPU buffer\nallocated GPU buffer address at 00007fdb%08x pointer=0x7fdb%08x\n",
		size, p.PID<<12, p.PID<<12)
	if m.dmabuf {
		fmt.Fprintf(out, "using DMA-BUF for GPU buffer address at 0x7fdb%08x aligned at 0x7fdb%08x with aligned size %d\n", p.PID<<12, p.PID<<12,
			size)
	}
	if !m.dmabuf && !t.CUDA.PeerMemory(false) || g.Host == "" {
		return "Couldn't allocate MR with error=14\nfailed to create mr\nFailed to create MR\n Couldn't create IB resources\ndestroying " +
			"current CUDA Ctx\n"
	}
	self.peer = t.CUDA.Peer(g.Host, self.dev.MAC)
	return ""
}

// belowSwitch reports whether a side uses the memory of a GPU that is below the same PCIe switch as its card.
func (s side) belowSwitch() bool {
	return s.opt.memory.cuda && (s.peer.Distance == world.OneSwitch || s.peer.Distance == world.SwitchTree)
}

// limits returns the bandwidth share and the additional latency of a path if the two sides use GPU memory. ok is false if the
// IOMMU blocks one of the cards.
func limits(a, b side) (share, micros float64, ok bool) {
	share, ok = 1, true
	for _, s := range []side{a, b} {
		if !s.opt.memory.cuda {
			continue
		}
		share, micros, ok = min(share, s.peer.Share), micros+s.peer.Micros, ok && s.peer.OK
	}
	return share, micros, ok
}
