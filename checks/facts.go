package checks

import (
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Facts is everything that checks may examine. A nil field was not read and makes its rows unknown.
type Facts struct {
	Answers   *answers.Answers     // the requested state; Mode and the names of the selection are always set
	Inventory *backends.Inventory  // the current state, with the guests that were read
	Lacks     []Lack               // missing privileges
	LacksErr  error                // why privileges could not be read
	Now       time.Time            // the local time when vCenter's clock was read
	Before    bool                 // before a run: what the run itself will change is not a failure
	Pairs     []PairFacts          // nil: no pair was tested
	Baseline  *backends.Inventory  // the state saved as healthy; nil: none
	Changed   map[string]time.Time // by host: when a run last set module parameters or firmware; nil: the journals were not read

	// LinksLost counts how often the link of a pNIC went down since the baseline, by host and pNIC; nil: not read.
	LinksLost map[string]map[string]int

	found *selection // computed once per run
	all   []*Facts   // see Rails
}

// PairFacts are the test results between two guests, from the client to the server. Nil pointers mean not tested.
type PairFacts struct {
	From, To string // VM names
	Rail     string // "": the only one
	Measured []perftest.Measurement

	Loss        *float64 // percent of pings lost in the worse direction
	Payload     int      // largest ping payload in bytes that arrived unfragmented; 0: not tested
	PeerMAC     string   // the server's MAC in the client's neighbour table
	BothWays    *float64 // Gbps, sum of both directions of ib_send_bw -b
	GPU         *float64 // Gbps with GPU memory (--use_cuda)
	GPUErr      string   // why that test failed
	NCCL        string   // transport in NCCL's log: NET/IB/GDRDMA, NET/IB, NET/Socket
	Retries     *int64   // increase of out_of_sequence, packet_seq_err, local_ack_timeout_err in the guest
	CNPs        *int64   // increase of np_cnp_sent
	RDMAPackets *int64   // increase of the RDMA counters of the client's host
}

// A Lack is a privilege that the account lacks on an entity.
type Lack struct{ Entity, Privilege string }
