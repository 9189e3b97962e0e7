// Package perftest schedules, runs and judges bandwidth and latency tests between guests.
package perftest

import (
	"fmt"
	"time"
)

// A Verdict is the result of judging a measurement.
type Verdict string

// The verdicts. NotApplicable is a pair whose traffic does not use RDMA over the fabric: on one host, or if a host has no RDMA
// card.
const (
	VerdictPass          Verdict = "pass"
	VerdictWarn          Verdict = "warn"
	VerdictFail          Verdict = "fail"
	VerdictUnknown       Verdict = "unknown"
	VerdictNotApplicable Verdict = "n/a"
)

// A Measurement is one test between two guests, from the client to the server.
type Measurement struct {
	From         string  `json:"from"` // VM names
	To           string  `json:"to"`
	RailFrom     string  `json:"rail_from,omitempty"` // "": only one rail
	RailTo       string  `json:"rail_to,omitempty"`
	FromHost     string  `json:"from_host"`
	ToHost       string  `json:"to_host"`
	Test         string  `json:"test"` // ib_send_bw, ib_send_lat, ib_write_bw
	Device       string  `json:"device,omitempty"`
	GIDIndex     int     `json:"gid_index"`
	MTU          int     `json:"mtu,omitempty"` // active path MTU, bytes
	Rows         []Row   `json:"rows"`
	LinkGbps     float64 `json:"link_gbps,omitempty"` // line rate: the slower of the two host ports; 0 unknown
	ExpectedGbps float64 `json:"expected_gbps,omitempty"`
	AchievedGbps float64 `json:"achieved_gbps,omitempty"`
	ExpectedUs   float64 `json:"expected_us,omitempty"`
	AchievedUs   float64 `json:"achieved_us,omitempty"`  // typical latency at the smallest size
	Why          string  `json:"why,omitempty"`          // the reason for the expectation
	Packets      *int64  `json:"rdma_packets,omitempty"` // increase of the RDMA counters of the client's host; nil: not read
	Path         *Path   `json:"path,omitempty"`         // only for the first test of a pair; nil: not pinged
	Image        string  `json:"image,omitempty"`        // container image at both ends; "" for the guests themselves
	GPU          *Ends   `json:"gpu,omitempty"`          // for a test with GPU memory
	HostGbps     float64 `json:"host_gbps,omitempty"`    // result of the same test with host memory, for GPU memory
	HostUs       float64 `json:"host_us,omitempty"`
	TrafficClass int     `json:"traffic_class"`      // byte of the IP header: DSCP << 2 | ECN; 0: no class is configured
	ClassProven  bool    `json:"class_proven"`       // counters show that the traffic used the configured class
	Class        *Proof  `json:"class,omitempty"`    // nil: no class is configured
	Lossless     *Proof  `json:"lossless,omitempty"` // nil: no class is configured
	Counters     *Sides  `json:"counters,omitempty"` // counter increases at both ends; nil: not read
	// traffic beside the test on its ports; 0: none worth a word, or none that can be seen
	OtherGbps float64 `json:"other_gbps,omitempty"`
	// traffic on its ports while no test ran; nil: not known
	IdleGbps *float64 `json:"idle_gbps,omitempty"`
	Load     string   `json:"load,omitempty"`    // LoadIncast, LoadBisection or LoadRails; "": no other senders
	Senders  int      `json:"senders,omitempty"` // under load: simultaneous senders to this receiver
	Raised   bool     `json:"raised,omitempty"`  // the load was raised because the first one caused no congestion
	// under load: the sum of all senders exceeds the capacity of the receiver's port
	Apart     bool        `json:"apart,omitempty"`
	Repeats   int         `json:"repeats,omitempty"`         // number of tests whose median the rows are; 0: one
	Spread    float64     `json:"spread_percent,omitempty"`  // difference between the best and the worst of them, in percent of the median
	Reached   *bool       `json:"reached,omitempty"`         // for a test between rails: an address of the other rail answered
	Expected  string      `json:"expected_reach,omitempty"`  // for a test between rails: MustReach, MustNotReach, MayReach
	Rails     []RailShare `json:"rails,omitempty"`           // for a test of all rails at once, whose figures are sums
	Members   []string    `json:"members,omitempty"`         // VMs of a test over more than two guests; To is then not a VM
	Transport string      `json:"transport,omitempty"`       // NCCL's transport, from its log: NET/IB/GDRDMA, NET/IB, NET/Socket
	Instead   string      `json:"instead_of_rdma,omitempty"` // if a host has no RDMA card: InsteadMemory, InsteadTCP
	Verdict   Verdict     `json:"verdict"`
	Hint      string      `json:"hint,omitempty"`
	Error     string      `json:"error,omitempty"`
	Refused   bool        `json:"refused,omitempty"` // not run: the releases of perftest at the two ends refuse each other
	Command   string      `json:"command,omitempty"` // as run on the client
	Started   time.Time   `json:"started,omitzero"`
	Simulated bool        `json:"simulated"`
}

// Names returns the two ends, with their rails if there are several.
func (m Measurement) Names() (from, to string) {
	return onRail(m.From, m.RailFrom), onRail(m.To, m.RailTo)
}

// Pair returns the names of both ends.
func (m Measurement) Pair() string {
	from, to := m.Names()
	return from + " -> " + to
}

// A Row is the result for one message size.
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

// Figure returns the result of a test with its unit: "96.1 Gb/s" or "2.01 us"; "" if there is none.
func (m Measurement) Figure() string {
	switch {
	case m.AchievedGbps > 0:
		return fmt.Sprintf("%.1f Gb/s", m.AchievedGbps)
	case m.AchievedUs > 0:
		return fmt.Sprintf("%.2f us", m.AchievedUs)
	case m.Reached != nil && *m.Reached:
		return "reached"
	case m.Reached != nil:
		return "not reached"
	}
	return ""
}

// Repeated returns of how many tests the figure is the median, and their spread: "median of 3, spread 1.2 %"; "" for one test.
func (m Measurement) Repeated() string {
	if m.Repeats < 2 {
		return ""
	}
	return fmt.Sprintf("median of %d, spread %.1f %%", m.Repeats, m.Spread)
}
