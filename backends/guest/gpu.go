package guest

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// NVIDIAVendor is the PCI vendor id of NVIDIA's GPUs.
const NVIDIAVendor = "10de"

// gpuScript reads the NVIDIA driver, peer memory and a perftest with CUDA. Such a perftest is usually built manually, so the
// usual directories are searched after the PATH.
func gpuScript() string {
	return section("smi", "command -v nvidia-smi >/dev/null && { nvidia-smi -L 2>&1 || echo failed; }") +
		section("smidriver", "command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=driver_version --format=csv,noheader") +
		section("smiquery", smiQuery) +
		section("smitopo", "command -v nvidia-smi >/dev/null && nvidia-smi topo -m") +
		section("smip2p", "command -v nvidia-smi >/dev/null && nvidia-smi topo -p2p r") +
		section("vgpudriver", "command -v nvidia-gridd || echo none") +
		section("vgputoken", `d=/etc/nvidia/ClientConfigToken
ls $d/*.tok 2>/dev/null || { [ -d $d ] && ! [ -r $d ]; } || grep -qsE '^[[:space:]]*(ClientConfigTokenPath|ServerAddress)=' /etc/nvidia/gridd.conf || echo none`) +
		section("vgpuservers", script("license-servers.sh")) +
		section("nvloaded", "cat /proc/driver/nvidia/version") +
		section("nvlicense", "modinfo -F license nvidia") +
		section("nvversion", "modinfo -F version nvidia") +
		section("peerapi", "[ -r /proc/kallsyms ] && echo read && grep -owE 'ib_register_(device|peer_memory_client)' /proc/kallsyms | sort -u") +
		section("cudaperftest", `for d in '' /usr/local/bin/ /opt/perftest/bin/ /usr/local/perftest/bin/; do
	command -v ${d}ib_write_bw >/dev/null || continue
	o=$(${d}ib_write_bw --help 2>&1 | grep -o -- '--use_cuda[a-z_]*')
	[ -n "$o" ] && echo dir "$d" && echo "$o" && break
done`)
}

func (f facts) gpus(g *backends.Guest) {
	g.NVIDIA = f.nvidia(g)
	if words := strings.Fields(f["cudaperftest"]); len(words) > 1 && slices.Contains(words, "--use_cuda") {
		g.CUDATests = &backends.CUDAPerftest{DMABuf: slices.Contains(words, "--use_cuda_dmabuf")}
		if strings.HasPrefix(words[1], "/") {
			g.CUDATests.Dir = strings.TrimSuffix(words[1], "/")
		}
	}
	// The symbol is visible only while ib_core is loaded. /proc/modules does not list an ib_core that is built into the kernel.
	found, ok := strings.CutPrefix(f["peerapi"], "read\n")
	if ok && (slices.Contains(f.loaded(), "ib_core") || strings.Contains(found, "ib_register_device")) {
		g.PeerAPI = new(strings.Contains(found, "ib_register_peer_memory_client"))
	}
}

// nvidia reads the driver; nil if there is none. A driver without a GPU, as before the GPU is passed through, has an Error and
// the version of its module.
func (f facts) nvidia(g *backends.Guest) *backends.NVIDIA {
	list := strings.TrimSpace(f["smi"])
	version, open := f.module()
	if list == "" && version == "" {
		return nil
	}
	n := &backends.NVIDIA{GPUs: []string{}, Driver: cmp.Or(driverVersion.FindString(f.line("smidriver")), version)}
	n.DMABuf = open && !olderKernel(g.Kernel, 5, 12)
	if gridd := f.line("vgpudriver"); gridd != "" {
		n.VGPUDriver = new(gridd != "none")
	}
	n.Token, n.NoToken = strings.Contains(f["vgputoken"], ".tok"), f.line("vgputoken") == "none"
	for _, m := range []string{"nvidia_peermem", "nv_peer_mem"} {
		if slices.Contains(f.loaded(), m) {
			n.Peermem = m
		}
	}
	switch {
	case list == "":
		n.Driver, n.Error = version, "the kernel module is loaded, but nvidia-smi is missing"
		return n
	case strings.HasSuffix(list, "failed"):
		n.Driver, n.Error = version, strings.TrimSpace(strings.TrimSuffix(list, "failed"))
		return n
	}
	for l := range strings.SplitSeq(list, "\n") { // "GPU 0: NVIDIA A100 80GB PCIe (UUID: GPU-...)"
		if _, name, ok := strings.Cut(l, ": "); ok && strings.HasPrefix(l, "GPU ") {
			name, _, _ = strings.Cut(name, " (UUID")
			n.GPUs = append(n.GPUs, name)
		}
	}
	if len(n.GPUs) == 0 {
		n.Error = list // without a GPU, nvidia-smi -L prints "No devices found." and ends with status 0
		return n
	}
	for _, d := range transcript.SMIQuery(f["smiquery"]).GPUs {
		gpu := backends.GuestGPU{Name: text(d.ProductName), PCI: text(d.PCIAddress)}
		if d.FBTotalMiB != nil {
			gpu.MemoryMB = *d.FBTotalMiB
		}
		if d.BAR1TotalMiB != nil {
			gpu.BAR1MB = *d.BAR1TotalMiB
		}
		gpu.VGPU = strings.EqualFold(text(d.Virtualization), "VGPU") || vgpuName.MatchString(gpu.Name)
		gpu.License, gpu.Persistent = text(d.License), d.Persistence
		n.Devices = append(n.Devices, gpu)
	}
	for line := range strings.Lines(f["vgpuservers"]) {
		switch w := strings.Fields(line); {
		case len(w) == 3 && (w[2] == "open" || w[2] == "closed"):
			n.LicenseServers = append(n.LicenseServers, backends.LicenseServer{Host: w[0], Port: w[1], Open: w[2] == "open"})
		case len(w) > 0:
			n.LicenseUnknown = strings.TrimSpace(line)
		}
	}
	n.Topology, n.P2P = topology(f["smitopo"]), transcript.P2P(f["smip2p"])
	return n
}

// driverVersion matches the version of a driver; without a GPU, nvidia-smi prints a message in its place.
var driverVersion = regexp.MustCompile(`[0-9]{3,}\.[0-9.]+`)

// module returns the version of the driver's kernel module, "" if there is none, and whether it is the open one: of the module that
// is loaded, else of the one on disk. Those two differ from an update of the driver until the next boot, and modinfo may be missing
// or may not know where the module came from. /proc/driver/nvidia/version has "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64
// 580.159.04  Release Build  (...)", with the other module "NVIDIA UNIX x86_64 Kernel Module  570.133.20".
func (f facts) module() (version string, open bool) {
	line := f.line("nvloaded")
	if version = driverVersion.FindString(line); version != "" {
		return version, strings.Contains(line, "Open Kernel Module")
	}
	// The open kernel modules have the license "Dual MIT/GPL", the others "NVIDIA".
	return strings.TrimSpace(f["nvversion"]), strings.Contains(f["nvlicense"], "GPL")
}

// vgpuName matches the name of a vGPU in a guest: "GRID A100-40C", "NVIDIA A30-12C".
var vgpuName = regexp.MustCompile(`^GRID |-[0-9]+[ABCQ]$`)

func topology(text string) map[string]string {
	var out map[string]string
	topo := transcript.Topo(text)
	for _, row := range topo.Rows {
		nic, isNIC := topo.NICLegend[row.Name]
		if !isNIC {
			nic = row.Name // older drivers print the device name itself
		}
		for other, link := range row.Links {
			if strings.HasPrefix(other, "GPU") && !strings.HasPrefix(row.Name, "GPU") {
				if out == nil {
					out = map[string]string{}
				}
				out[nic+" "+other] = link
			}
		}
	}
	return out
}

// olderKernel reports whether a release of uname -r is before major.minor, or cannot be parsed.
func olderKernel(release string, major, minor int) bool {
	var have [2]int
	for i, part := range strings.SplitN(release, ".", 3)[:min(2, strings.Count(release, ".")+1)] {
		digits := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if digits < 0 {
			digits = len(part)
		}
		n, err := strconv.Atoi(part[:digits])
		if err != nil {
			return true
		}
		have[i] = n
	}
	return have[0] < major || have[0] == major && have[1] < minor
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
