package guest

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// readQoS parses the output of qos-show.sh, by MAC; ports that no tool reports are left out.
func readQoS(text string) map[string]*backends.PortQoS {
	out := map[string]*backends.PortQoS{}
	for part := range strings.SplitSeq("\n"+text, "\nport ") {
		mac, body, _ := strings.Cut(part, "\n")
		if q := portQoSOf(body); q != nil && strings.TrimSpace(mac) != "" {
			out[strings.TrimSpace(mac)] = q
		}
	}
	return out
}

func portQoSOf(body string) *backends.PortQoS {
	q := &backends.PortQoS{Trust: "pcp", PFC: []int{}, DSCP: map[int]int{}}
	told := false
	ecn := map[int]int{} // number of directions with ECN enabled
	files := false
	for line := range strings.Lines(body) {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		switch w[0] {
		case "ecn":
			if prio, err := strconv.Atoi(w[min(1, len(w)-1)]); err == nil && len(w) == 3 {
				files = true
				if w[2] == "1" {
					ecn[prio]++
				}
			}
		case "prio-pfc":
			told = true
			for prio, on := range mapped(w[1:], priorities) {
				if on == "on" {
					q.PFC = append(q.PFC, prio)
				}
			}
		case "dscp-prio":
			for dscp, v := range mapped(w[1:], 64) {
				if prio, err := strconv.Atoi(v); err == nil {
					q.Trust, q.DSCP[dscp] = "dscp", prio
				}
			}
		case "prio-buffer":
			q.Buffers = make([]int, priorities)
			for prio, v := range mapped(w[1:], priorities) {
				q.Buffers[prio], _ = strconv.Atoi(v)
			}
		}
	}
	if !told {
		m := transcript.QoS(body)
		if m.Trust == nil || len(m.PFCEnabled) == 0 {
			return nil
		}
		q.Trust = *m.Trust
		for _, p := range m.PFCPriorities {
			if p < priorities {
				q.PFC = append(q.PFC, int(p))
			}
		}
		for dscp, p := range m.DSCPToPrio {
			q.DSCP[dscp] = int(p)
		}
		for _, b := range m.PFCBuffer {
			q.Buffers = append(q.Buffers, int(b))
		}
	}
	slices.Sort(q.PFC)
	if files {
		q.ECN = []int{}
		for _, prio := range slices.Sorted(maps.Keys(ecn)) {
			if ecn[prio] == 2 {
				q.ECN = append(q.ECN, prio)
			}
		}
	}
	return q
}

// mapped parses KEY:VALUE words with keys below a limit.
func mapped(words []string, limit int) map[int]string {
	m := map[int]string{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, ":")
		if n, err := strconv.Atoi(k); ok && err == nil && n >= 0 && n < limit {
			m[n] = v
		}
	}
	return m
}
