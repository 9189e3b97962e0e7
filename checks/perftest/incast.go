package perftest

import "fmt"

// A Crowd is the result of one round of a load at one receiver with several senders.
type Crowd struct {
	Load         string  `json:"load"`
	To           string  `json:"to"`
	Senders      int     `json:"senders"`
	Raised       bool    `json:"raised,omitempty"`
	SumGbps      float64 `json:"sum_gbps"`        // of all senders
	ExpectedGbps float64 `json:"expected_gbps"`   // sum of all senders
	Fairness     float64 `json:"fairness"`        // of the senders' shares, 0 to 1: 1 if all are equal (Jain, Chiu and Hawe, DEC-TR-301, 1984)
	Apart        bool    `json:"apart,omitempty"` // the sum exceeds the port's capacity: not all sent at the same time
	Lost         int64   `json:"lost_packets"`
	Verdict      Verdict `json:"verdict"` // the worst of the flows
	// Lossless covers all flows together: pause frames at one sender prove it if no flow lost packets; nil: no class is
	// configured.
	Lossless *Proof `json:"lossless,omitempty"`
	Worst    string `json:"least"` // the sender with the lowest rate
}

// Crowds groups the flows of loads by their receivers, in the order of measurement.
func Crowds(all []Measurement) []Crowd {
	var out []Crowd
	at, squares := map[string]int{}, map[string]float64{}
	least, proven := map[string]float64{}, map[string]int{}
	for _, m := range all {
		if m.Load != LoadIncast {
			continue
		}
		key := fmt.Sprint(m.To, m.Raised)
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, Crowd{Load: m.Load, To: m.To, Raised: m.Raised, Verdict: m.Verdict})
		}
		c := &out[i]
		c.Senders++
		c.SumGbps += m.AchievedGbps
		c.ExpectedGbps += m.ExpectedGbps
		squares[key] += m.AchievedGbps * m.AchievedGbps
		if c.Worst == "" || m.AchievedGbps < least[key] {
			c.Worst, least[key] = m.From, m.AchievedGbps
		}
		if squares[key] > 0 {
			c.Fairness = c.SumGbps * c.SumGbps / (float64(c.Senders) * squares[key])
		}
		c.Apart = c.Apart || m.Apart
		lost, _, _ := m.Lost()
		c.Lost += lost
		if crowdRank[m.Verdict] > crowdRank[c.Verdict] {
			c.Verdict = m.Verdict
		}
		if rank := m.losslessRank(); rank > proven[key] {
			c.Lossless, proven[key] = m.Lossless, rank
		}
	}
	return out
}

// losslessRank ranks the results of the flows to one receiver: a loss outweighs everything else, an unreadable counter outweighs
// a proof, and a flow without congestion proves nothing.
func (m *Measurement) losslessRank() int {
	_, _, read := m.senderLost()
	switch {
	case m.Lossless == nil:
		return 0
	case m.Lossless.Verdict == VerdictFail:
		return 4
	case !read || m.Error != "":
		return 3
	case m.Lossless.Verdict == VerdictPass:
		return 2
	}
	return 1
}

var crowdRank = map[Verdict]int{VerdictPass: 1, VerdictUnknown: 2, VerdictWarn: 3, VerdictFail: 4}
