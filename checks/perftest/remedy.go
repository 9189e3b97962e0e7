package perftest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/perflog"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// evidence is the cause that a tool names and the facts around it.
type evidence struct {
	code, mode     string
	errno          int64 // 0: not printed
	index          int64 // of the local GID; -1: not printed
	local, remote  netip.Addr
	cuda, dmaBuf   bool
	provider       string // the driver whose library libibverbs could not load
	lostOnTransmit bool   // completion status 12, transport retry counter exceeded
}

// remedy returns what to do about the cause in the output of a measurement's tool.
func (m *Measurement) remedy(e scan.Envelope, h perflog.Header, mode string) string {
	ev := evidence{code: e.Errors[0].Code, mode: mode, index: -1, cuda: h.CUDA || m.GPU != nil,
		dmaBuf: h.DMABuf || m.GPU != nil && m.GPU.From.DMABuf}
	number := func(key string) int64 {
		if n, _ := e.Errors[0].Extra[key].(*int64); n != nil {
			return *n
		}
		return 0
	}
	ev.errno, ev.lostOnTransmit = number("errno"), number("status") == 12
	if h.GIDIndex != nil {
		ev.index = *h.GIDIndex
	}
	if len(h.Local) > 0 && len(h.Remote) > 0 {
		ev.local, ev.remote = h.Local[0].GID, h.Remote[0].GID
	}
	for _, w := range e.Warnings {
		if w.Code == scan.CodeProviderMissing {
			ev.provider, _ = w.Extra["provider"].(string)
		}
	}
	return remedy(ev)
}

// Conditions of rows of remedies.
var (
	onCUDA     = func(e evidence) bool { return e.cuda }
	onPVRDMA   = func(e evidence) bool { return e.mode == "pvrdma" }
	withoutGID = func(e evidence) bool { return empty(e.local) || empty(e.remote) }
	otherGID   = func(e evidence) bool {
		return e.local.IsValid() && e.remote.IsValid() && e.local.Is4In6() != e.remote.Is4In6()
	}
	byDMABuf    = func(e evidence) bool { return e.cuda && e.dmaBuf }
	noMemory    = func(e evidence) bool { return e.errno == enomem || e.errno == 0 }
	noProvider  = func(e evidence) bool { return e.provider != "" }
	noDMABufAPI = func(e evidence) bool { return e.cuda && e.errno == eprotonosupport }
)

// Linux, include/uapi/asm-generic/errno-base.h and errno.h.
const (
	enomem          = 12
	eprotonosupport = 93
)

func empty(gid netip.Addr) bool { return gid.IsValid() && gid.IsUnspecified() }

// lostPackets is how the remedy of lost packets begins.
const lostPackets = "packets are lost or rejected in the network: check UDP 4791, VLAN, MTU and PFC"

// pvrdmaPath are the settings of the hosts through which PVRDMA connects queue pairs. The ports of the ruleset are those of ESXi
// (govmomi, simulator/esx/host_firewall_system.go).
const pvrdmaPath = "on both hosts the firewall ruleset pvrdma (TCP 28250 to 28761) and the vmknic in Net.PVRDMAVmknic"

const noGID = "GID index $gid is all zero on $ends: the RDMA interface has no address, or it is in another network namespace"

const wrongGID = "local GID index $gid is $local, the peer uses $remote: run both ends with the index of the RoCE v2 entry of " +
	"the IPv4 address (show_gids)"

type remedyRow struct {
	code string
	when func(evidence) bool // nil: always
	hint string
}

// remedies maps causes to remedies; the first row whose condition holds counts. It is used by live runs and for recorded output.
// GPU memory: linux-rdma/perftest issues 31, 126, 269, 280, 346; GIDs: NVIDIA/nccl issue 769, linux-rdma/perftest issue 44,
// Mellanox/k8s-rdma-shared-dev-plugin issue 72; providers: uccl-project/uccl issue 301.
var remedies = []remedyRow{
	{"connect_failed", nil, "open TCP 18515 and following between the guests, and ping the peer's RDMA address"},
	{"port_down", nil, "bring the RDMA interface up; for vmw_pvrdma reload the module last"},
	{"bad_device", noProvider, "libibverbs could not load its library for $provider: install the distribution's ibverbs-providers " +
		"(RHEL: libibverbs); MLNX_OFED's lacks vmw_pvrdma"},
	{"bad_device", nil, "the RDMA device is gone: run ibv_devices in the guest"},
	{"gid_missing", nil, "give the RDMA interface an IPv4 address, then use the index of its RoCE v2 entry"},
	{"bad_option", nil, "the installed perftest does not support an option: install the distribution's perftest on both ends"},
	{"version_mismatch", nil, "set a source for all guests in measure.perftest, or install the same perftest on both ends: releases " +
		"from 5.70 on refuse older ones"},
	{"mr_failed", noDMABufAPI, "GPU memory could not be registered: this kernel or RDMA driver lacks DMA-BUF (kernel 5.12 and " +
		"rdma-core 34 at least); load nvidia-peermem instead"},
	{"mr_failed", byDMABuf, "GPU memory could not be registered by DMA-BUF: the NVIDIA driver's open kernel modules, kernel 5.12 " +
		"and an RDMA driver with DMA-BUF support are needed"},
	{"mr_failed", onCUDA, "GPU memory could not be registered: load nvidia-peermem (installed after MLNX_OFED), or use the driver's " +
		"open kernel modules (DMA-BUF)"},
	{"mr_failed", noMemory, "raise memlock to unlimited for the user"},
	{"mr_failed", nil, "the RDMA driver refused to register memory (errno $errno): see dmesg in the guest"},
	{"qp_create_failed", nil, "raise memlock to unlimited; check dmesg in the guest"},
	{"qp_rtr_failed", withoutGID, noGID},
	{"qp_rtr_failed", otherGID, wrongGID},
	{"qp_rtr_failed", onPVRDMA, "MTU or GID of the two ends do not match (compare active_mtu and show_gids), or the hosts do not " +
		"reach each other: check " + pvrdmaPath},
	{"qp_rtr_failed", nil, "MTU or GID of the two ends do not match: compare active_mtu and show_gids"},
	{"completion_error", func(e evidence) bool { return e.lostOnTransmit && withoutGID(e) }, noGID},
	{"completion_error", func(e evidence) bool { return e.lostOnTransmit && otherGID(e) }, wrongGID},
	{"completion_error", onPVRDMA, lostPackets + "; " + pvrdmaPath},
	{"completion_error", nil, lostPackets},
	{"exchange_failed", nil, "the peer closed the connection during the test: check the server's guest"},
	{"not_understood", nil, "install perftest in both guests"},
	{"rdma_cm_failed", nil, "check that rdma_cm is loaded and the address belongs to the RDMA interface"},
	{"cuda_unsupported", nil, "install a perftest that was built with CUDA"},
	{ncclWrong, nil, "data was corrupted in transit: compare with NCCL_NET_GDR_LEVEL=LOC, and check ACS and ATS"},
	{ncclNoDevice, nil, "NCCL's IB transport found no device: check NCCL_IB_HCA, and in containers /dev/infiniband and libibverbs"},
	{ncclNoRDMA, nil, "unset NCCL_IB_DISABLE and NCCL_NET, and check the port and the address of the RDMA device"},
	{ncclHostMemory, nil, "NCCL copies through host memory instead of using GPUDirect RDMA: check nvidia-peermem or DMA-BUF, and " +
		"NCCL_NET_GDR_LEVEL"},
}

// Causes of NCCL.
const (
	ncclWrong      = "nccl_wrong"
	ncclNoDevice   = "nccl_no_device"
	ncclNoRDMA     = "nccl_no_rdma"
	ncclHostMemory = "nccl_host_memory"
)

// remedy returns what to do about a cause, "" if nothing is known.
func remedy(e evidence) string {
	i := slices.IndexFunc(remedies, func(r remedyRow) bool { return r.code == e.code && (r.when == nil || r.when(e)) })
	if i < 0 {
		return ""
	}
	ends := "both ends"
	switch {
	case !empty(e.local):
		ends = "the other end"
	case !empty(e.remote):
		ends = "this end"
	}
	index := "?"
	if e.index >= 0 {
		index = fmt.Sprint(e.index)
	}
	return strings.NewReplacer("$gid", index, "$ends", ends, "$local", gidWords(e.local), "$remote", gidWords(e.remote),
		"$provider", e.provider, "$errno", fmt.Sprint(e.errno)).Replace(remedies[i].hint)
}

// gidWords describes the kind of a GID.
func gidWords(gid netip.Addr) string {
	switch {
	case gid.Is4In6():
		return "an IPv4 GID"
	case gid.IsLinkLocalUnicast():
		return "link-local"
	}
	return "an IPv6 GID"
}
