// Package perftest schedules, runs and judges bandwidth and latency tests between guests.
package perftest

import "time"

// A Verdict on a measurement.
type Verdict string

// The verdicts. NotApplicable is a pair whose traffic does not use RDMA over the fabric: on one host, or where a host has no RDMA card.
const (
	VerdictPass          Verdict = "pass"
	VerdictWarn          Verdict = "warn"
	VerdictFail          Verdict = "fail"
	VerdictUnknown       Verdict = "unknown"
	VerdictNotApplicable Verdict = "n/a"
)

// A Measurement is one test between two guests, from the client to the server.
type Measurement struct {
	From         string      `json:"from"` // VM names
	To           string      `json:"to"`
	RailFrom     string      `json:"rail_from,omitempty"` // "": the only one
	RailTo       string      `json:"rail_to,omitempty"`
	FromHost     string      `json:"from_host"`
	ToHost       string      `json:"to_host"`
	Test         string      `json:"test"` // ib_send_bw, ib_send_lat, ib_write_bw
	Device       string      `json:"device,omitempty"`
	GIDIndex     int         `json:"gid_index"`
	MTU          int         `json:"mtu,omitempty"` // active path MTU, bytes
	Rows         []Row       `json:"rows"`
	LinkGbps     float64     `json:"link_gbps,omitempty"` // line rate: the slower of the two host ports; 0 unknown
	ExpectedGbps float64     `json:"expected_gbps,omitempty"`
	AchievedGbps float64     `json:"achieved_gbps,omitempty"`
	ExpectedUs   float64     `json:"expected_us,omitempty"`
	AchievedUs   float64     `json:"achieved_us,omitempty"`  // typical at the smallest size
	Why          string      `json:"why,omitempty"`          // where the expectation comes from
	Packets      *int64      `json:"rdma_packets,omitempty"` // how far the RDMA counters of the client's host moved; nil: not read
	Path         *Path       `json:"path,omitempty"`         // of the first test of a pair; nil: not pinged
	Image        string      `json:"image,omitempty"`        // of the containers at both ends; "" for the guests themselves
	GPU          *Ends       `json:"gpu,omitempty"`          // of a test with GPU memory
	HostGbps     float64     `json:"host_gbps,omitempty"`    // what host memory gave in the same test, where GPU memory is measured
	HostUs       float64     `json:"host_us,omitempty"`
	TrafficClass int         `json:"traffic_class"`             // byte of the IP header: DSCP << 2 | ECN; 0: no class is configured
	ClassProven  bool        `json:"class_proven"`              // counters show that the traffic went in the configured class
	Class        *Proof      `json:"class,omitempty"`           // nil: no class is configured
	Lossless     *Proof      `json:"lossless,omitempty"`        // likewise
	Counters     *Sides      `json:"counters,omitempty"`        // how far counters moved at both ends; nil: not read
	Load         string      `json:"load,omitempty"`            // LoadIncast, LoadBisection or LoadRails; "": nothing else sent meanwhile
	Senders      int         `json:"senders,omitempty"`         // under load: how many sent to this receiver at once
	Raised       bool        `json:"raised,omitempty"`          // the load was raised, because the first one congested nothing
	Apart        bool        `json:"apart,omitempty"`           // under load: the sum of all senders is above what the receiver's port carries
	Repeats      int         `json:"repeats,omitempty"`         // tests of which the rows are the median; 0: one
	Spread       float64     `json:"spread_percent,omitempty"`  // between the best and the worst of them, of the median
	Reached      *bool       `json:"reached,omitempty"`         // of a test between rails: an address of the other rail answered
	Expected     string      `json:"expected_reach,omitempty"`  // likewise: MustReach, MustNotReach, MayReach
	Rails        []RailShare `json:"rails,omitempty"`           // of a test of all rails at once, whose figures are sums
	Members      []string    `json:"members,omitempty"`         // VMs of a test over more than two guests; To is then no VM
	Transport    string      `json:"transport,omitempty"`       // of NCCL, by its log: NET/IB/GDRDMA, NET/IB, NET/Socket
	Instead      string      `json:"instead_of_rdma,omitempty"` // where a host has no RDMA card: InsteadMemory, InsteadTCP
	Verdict      Verdict     `json:"verdict"`
	Hint         string      `json:"hint,omitempty"`
	Error        string      `json:"error,omitempty"`
	Command      string      `json:"command,omitempty"` // as run on the client
	Started      time.Time   `json:"started,omitzero"`
	Simulated    bool        `json:"simulated"`
}

// Names are the two ends, with their rails where there are several.
func (m Measurement) Names() (from, to string) {
	return onRail(m.From, m.RailFrom), onRail(m.To, m.RailTo)
}

// Pair names both ends.
func (m Measurement) Pair() string {
	from, to := m.Names()
	return from + " -> " + to
}

// A Row is one message size.
type Row struct {
	Bytes      int64   `json:"bytes"`
	Iterations int64   `json:"iterations,omitempty"`
	PeakGbps   float64 `json:"peak_gbps,omitempty"`
	AvgGbps    float64 `json:"avg_gbps,omitempty"`
	TypicalUs  float64 `json:"typical_us,omitempty"`
	AvgUs      float64 `json:"avg_us,omitempty"`
	P99Us      float64 `json:"p99_us,omitempty"`
	P999Us     float64 `json:"p999_us,omitempty"`
}
