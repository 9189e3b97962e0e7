package nvidia

import (
	"context"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// peerTest implements p2pBandwidthLatencyTest of the CUDA samples. GPUs without peer access copy through the VM's memory even
// if P2P is enabled, as a note in its output says. The results are fractions of a PCIe link's bandwidth and are chosen by the
// lab.
func (d *Driver) peerTest(_ context.Context, p *sh.Proc) int {
	gpus := d.GPUs()
	if !d.Ready() || len(gpus) == 0 {
		p.Printf("Cuda failure p2pBandwidthLatencyTest.cu:599: 'no CUDA-capable device is detected'\n")
		return 1
	}
	access := func(a, b int) bool { return a != b && peers(gpus[a], gpus[b]) == "OK" }
	p.Printf("[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n")
	for n, g := range gpus {
		p.Printf("Device: %d, %s, pciBusID: %s, pciDeviceID: 0, pciDomainID:0\n", n, g.Name, strings.TrimPrefix(g.Address[5:7], "0"))
	}
	for a := range gpus {
		for b := range gpus {
			if a != b {
				p.Printf("Device=%d %s Access Peer Device=%d\n", a, map[bool]string{true: "CAN", false: "CANNOT"}[access(a, b)], b)
			}
		}
	}
	p.Printf("\n***NOTE: In case a device doesn't have P2P access to other one, it falls back to normal memcopy procedure.\n" +
		"So you can see lesser Bandwidth (GB/s) and unstable Latency (us) in those cases.\n\n")
	matrix := func(title, corner, column, cell string, figure func(a, b int) any) {
		p.Printf("%s%s", title, corner)
		for n := range gpus {
			p.Printf(column, n)
		}
		for a := range gpus {
			p.Printf("\n%6d%s", a, map[bool]string{true: "\t", false: " "}[cell == "%6d"])
			for b := range gpus {
				p.Printf(cell, figure(a, b))
			}
		}
		p.Printf("\n")
	}
	matrix("P2P Connectivity Matrix\n", `     D\D`, "%6d", "%6d", func(a, b int) any { return map[bool]int{true: 1}[a == b || access(a, b)] })
	for _, m := range []struct {
		title      string
		enabled    bool
		directions float64
	}{
		{"Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n", false, 1}, {"Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n", true, 1},
		{"Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n", false, 1.4}, {"Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n", true, 1.4},
	} {
		matrix(m.title, `   D\D`, "%6d ", "%6.02f ", func(a, b int) any {
			link := float64(int(1)<<min(gpus[a].Gen, gpus[b].Gen)) * 1.97 // GB/s with 16 lanes
			switch {
			case a == b:
				return 1300.0
			case m.enabled && access(a, b):
				return link * 0.8 * m.directions
			}
			return link * 0.35 * m.directions
		})
	}
	for _, enabled := range []bool{false, true} {
		title := map[bool]string{false: "P2P=Disabled Latency Matrix (us)\n", true: "P2P=Enabled Latency (P2P Writes) Matrix (us)\n"}[enabled]
		for _, side := range []string{"   GPU", "\n   CPU"} {
			matrix(title, side, "%6d ", "%6.02f ", func(a, b int) any {
				if a == b || enabled && access(a, b) {
					return 2.1
				}
				return 12.6
			})
			title = ""
		}
	}
	p.Printf("\nNOTE: The CUDA Samples are not meant for performance measurements. Results may vary when GPU Boost is enabled.\n")
	return 0
}

// peers returns the status of a pair of GPUs as in nvidia-smi topo -p2p r. Passed-through GPUs can access each other below the
// same root port of the host, if the VM allows it. vGPUs in the same vendor device group can access each other over NVLink.
func peers(g, other GPU) string {
	switch {
	case g.Group != "" && g.Group == other.Group:
		return "OK"
	case g.Profile != "" || other.Profile != "":
		return "NS"
	case g.Root != "" && g.Root == other.Root:
		return "OK"
	}
	return "CNS"
}
