package checks

import (
	"fmt"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Facts is everything that checks may look at. What is nil was not read, and gives unknown.
type Facts struct {
	Answers   *answers.Answers    // what shall be; Mode and names of the selection are always filled
	Inventory *backends.Inventory // what is there, guests included where they were asked
	Lacks     []Lack              // privileges that are missing
	LacksErr  error               // why they could not be asked
	Now       time.Time           // our clock when vCenter's was read
	Before    bool                // before a run: what the run itself will do is no failure
	HostFacts map[string]HostFacts
	Pairs     []PairFacts          // nil: no pair was looked at
	Baseline  *backends.Inventory  // what was kept as healthy; nil: nothing was
	Changed   map[string]time.Time // by host: when a run last set module parameters or firmware; nil: the journals were not read

	// LinksLost counts how often the link of a pNIC went down since the baseline, by host and pNIC; nil: not asked.
	LinksLost map[string]map[string]int

	found *selection // worked out once a run
}

// HostFacts is what only calls per host tell (esxcli, the ESXi shell); the full check reads it, the quick one does not.
type HostFacts struct {
	Modules map[string]map[string]string // parameters by module
	Err     error                        // why esxcli could not be asked

	Pause      map[string]Pause        // by pNIC: network nic pauseParams list
	DCB        map[string]DCB          // by pNIC: network nic dcb status get
	Stats      map[string]Stats        // by pNIC: growth between two reads of network nic stats get
	Neighbours map[string]Neighbour    // by pNIC: QueryNetworkHint; a pNIC without a row heard nobody
	VFs        map[string][]VF         // by PF's pNIC: network sriovnic vf list
	Peers      map[string]Peer         // by peer host: network diag ping between the vmknics of PVRDMA
	VIBs       []VIB                   // software vib list, as far as it is about RDMA: drivers, MFT, NMST
	Acceptance string                  // software acceptance get: VMwareCertified, VMwareAccepted, PartnerSupported, CommunitySupported
	Resync     *int64                  // bytes that vSAN still moves: vsan debug resync summary get
	SecureBoot *bool                   // the host booted with UEFI secure boot
	Log        []string                // lines of vmkernel.log since boot about vectors, hot-plug and passthrough
	Slots      map[string]Slot         // by PCI address: the link of the slot
	Firmware   map[string]CardFirmware // by PCI address of function 0: mlxconfig and mlxfwmanager
	ShellErr   error                   // why the ESXi shell could not be asked; nil where nobody tried
}

// Pause is global pause of a pNIC.
type Pause struct{ Rx, Tx bool }

// DCB is what a pNIC negotiated by data centre bridging. PFC has a flag for each priority.
type DCB struct {
	Supported bool
	PFC       [8]bool
}

// Stats is how far the counters of a pNIC moved within Over.
type Stats struct {
	Packets, Errors, Dropped, Pause int64
	Over                            time.Duration
}

// Neighbour is the switch port that a pNIC hears by LLDP or CDP.
type Neighbour struct{ Switch, Port string }

// VF is a virtual function; Active when a VM has it.
type VF struct {
	ID     int
	Active bool
}

// Peer is how a host reaches the PVRDMA vmknic of another.
type Peer struct {
	Loss    float64 // percent of small pings lost
	Payload int     // bytes of the largest ping that came through unfragmented; 0: not tried
	Port    string  // TCP 28250: open, closed; "" not tried
}

// VIB is an installed VIB.
type VIB struct{ Name, Version, Acceptance string }

// Slot is the PCIe link of a card: generation and lanes, now.
type Slot struct{ Gen, Lanes int }

// CardFirmware is what the firmware tools say of a card.
type CardFirmware struct {
	PSID    string
	Current map[string]string // mlxconfig parameters now in force: NUM_OF_VFS, SRIOV_EN, LINK_TYPE_P1, ATS_ENABLED
	Next    map[string]string // after the next boot
}

// PairFacts is what was tried between two guests, from the client to the server. Pointers are nil where it was not.
type PairFacts struct {
	From, To string // VM names
	Measured []perftest.Measurement

	Loss        *float64 // percent of pings lost, the worse way
	Payload     int      // bytes of the largest ping that came through unfragmented; 0: not tried
	PeerMAC     string   // what the client's neighbour table has for the server's address
	BothWays    *float64 // Gbps, sum of both directions of ib_send_bw -b
	GPU         *float64 // Gbps with GPU memory (--use_cuda)
	GPUErr      string   // why that test failed
	NCCL        string   // transport in NCCL's log: NET/IB/GDRDMA, NET/IB, NET/Socket
	Retries     *int64   // growth of out_of_sequence, packet_seq_err, local_ack_timeout_err in the guest
	CNPs        *int64   // growth of np_cnp_sent
	RDMAPackets *int64   // growth of the RDMA counters of the client's host
}

// A Lack is a privilege that the account does not have on an entity.
type Lack struct{ Entity, Privilege string }

// Grown tells what two counters grew by, and in what time where they did.
func (s Stats) Grown(a string, n int64, b string, m int64) string {
	if n == 0 && m == 0 {
		return fmt.Sprintf("no %s and no %s between two looks", a, b)
	}
	return fmt.Sprintf("%d %s, %d %s in %s", n, a, m, b, s.Over.Round(10*time.Millisecond))
}
