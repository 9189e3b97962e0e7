package checks

import (
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Facts is everything that checks may look at. What is nil was not read, and gives unknown.
type Facts struct {
	Answers   *answers.Answers     // what should be; Mode and names of the selection are always filled
	Inventory *backends.Inventory  // what is there, guests included where they were asked
	Lacks     []Lack               // privileges that are missing
	LacksErr  error                // why they could not be asked
	Now       time.Time            // our clock when vCenter's was read
	Before    bool                 // before a run: what the run itself will do is no failure
	Pairs     []PairFacts          // nil: no pair was looked at
	Baseline  *backends.Inventory  // what was kept as healthy; nil: nothing was
	Changed   map[string]time.Time // by host: when a run last set module parameters or firmware; nil: the journals were not read

	// LinksLost counts how often the link of a pNIC went down since the baseline, by host and pNIC; nil: not asked.
	LinksLost map[string]map[string]int

	found *selection // worked out once a run
	all   []*Facts   // see Rails
}

// PairFacts is what was tried between two guests, from the client to the server. Pointers are nil if it was not.
type PairFacts struct {
	From, To string // VM names
	Rail     string // "": the only one
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
