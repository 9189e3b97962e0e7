package perftest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/perflog"
)

// readApplication parses the rows in a test's output.
func (m *Measurement) readApplication(app Application, text string, err error) {
	if app.NCCL {
		res := perflog.NCCL(text)
		m.Transport = res.Transport
		for _, row := range res.Rows {
			m.Rows = append(m.Rows, Row{Bytes: row.Bytes, AvgGbps: row.Value})
			m.AchievedGbps = max(m.AchievedGbps, row.Value)
		}
		switch {
		case res.Wrong > 0:
			m.Error, m.Hint = fmt.Sprintf("%d values were computed wrongly", res.Wrong), remedy(evidence{code: ncclWrong})
		case res.Warning != "" && (err != nil || len(res.Rows) == 0): // it also warns about missing features that it does without
			m.Error = "NCCL: " + res.Warning
		case err != nil:
			m.Error = err.Error()
		}
		if res.NoDevice {
			m.Hint = remedy(evidence{code: ncclNoDevice})
		}
	} else {
		res := perflog.OSU(text)
		for i, row := range res.Rows {
			switch {
			case res.Latency:
				m.Rows = append(m.Rows, Row{Bytes: row.Bytes, TypicalUs: row.Value, AvgUs: row.Value})
				if i == 0 {
					m.AchievedUs = row.Value
				}
			default:
				m.Rows = append(m.Rows, Row{Bytes: row.Bytes, AvgGbps: row.Value})
				m.AchievedGbps = max(m.AchievedGbps, row.Value)
			}
		}
		if err != nil {
			m.Error = err.Error()
		}
	}
	var cause hinted
	if err != nil && m.Error == err.Error() && m.Hint == "" && errors.As(err, &cause) {
		m.Hint = cause.hint
	}
	if m.Error == "" && len(m.Rows) == 0 {
		m.Error = m.Test + " printed no result"
	}
	if m.Error != "" {
		m.Verdict = VerdictFail
	}
}

// Minimum shares of the RDMA figures between the same guests that an application has to reach, chosen by this project: MPI's
// bandwidth test comes close to that of the device; NCCL's ring loses more; a quarter is what users report of a NCCL that does
// not use the device or its GPU path (NVIDIA/nccl issue 2171).
const (
	mpiPass, mpiWarn   = 0.9, 0.75
	ncclPass, ncclWarn = 0.8, 0.5
	latencyPass        = 2.0 // times the latency of RDMA for all steps
	latencyWarn        = 5.0
	software           = 1.0 // us that MPI may add
)

// judgeApplication compares figures with those of RDMA between the same guests; of several pairs the slowest counts.
func (m *Measurement) judgeApplication(app Application, mode string, base []Measurement, nodes []Node) {
	gbps, us, from := reference(base, nodes)
	seen := m.Hint // from its log
	m.Verdict = VerdictUnknown
	switch {
	case m.isLatency() && us > 0:
		steps := math.Ceil(math.Log2(float64(max(2, len(nodes)*max(1, app.PerNode)))))
		if !strings.Contains(m.Test, "allreduce") {
			steps = 1
		}
		m.ExpectedUs = steps * us
		m.Why = fmt.Sprintf("%s of the same guests took %.2f us, in %.0f steps", SendLatency, us, steps)
		m.Verdict = graded(m.AchievedUs <= latencyPass*m.ExpectedUs+software, m.AchievedUs <= latencyWarn*m.ExpectedUs+software)
		m.Hint = ifNot(m.Verdict,
			fmt.Sprintf("MPI adds %.2f us to RDMA: check the power policy, the binding of ranks, and whether UCX uses the RDMA device",
				m.AchievedUs-m.ExpectedUs))
	case !m.isLatency() && gbps > 0:
		m.ExpectedGbps = gbps
		m.Why = fmt.Sprintf("%s of the same guests reached %.1f Gb/s", from, gbps)
		share := m.AchievedGbps / gbps
		if app.NCCL {
			m.Verdict = graded(share >= ncclPass, share >= ncclWarn)
			m.Hint = ifNot(m.Verdict,
				fmt.Sprintf("NCCL reaches %.0f %% of RDMA: check the path from GPU to NIC (nvidia-smi topo -m; rdma-setup generate "+
					"nccl-topo), NCCL_IB_HCA and NCCL_NET_GDR_LEVEL", 100*share))
			break
		}
		m.Verdict = graded(share >= mpiPass, share >= mpiWarn)
		m.Hint = ifNot(m.Verdict,
			fmt.Sprintf("MPI reaches %.0f %% of RDMA: check which transport UCX uses (UCX_LOG_LEVEL=info) and the binding of ranks", 100*share))
	default:
		m.Hint = "RDMA was not measured between these guests, so there is nothing to compare with"
	}
	if app.NCCL {
		m.judgeTransport(mode, seen)
	}
}

// judgeTransport judges how data left the guests, whatever the figures are; seen is the cause according to the log.
func (m *Measurement) judgeTransport(mode, seen string) {
	switch {
	case m.Transport == "" && m.Verdict == VerdictPass:
		m.Verdict, m.Hint = VerdictUnknown, "NCCL's log does not show its transport"
	case m.Transport == "":
	case !strings.HasPrefix(m.Transport, "NET/IB"):
		m.Verdict = VerdictFail
		m.Hint = "NCCL uses " + m.Transport + " instead of RDMA: " + cmp.Or(seen, remedy(evidence{code: ncclNoRDMA}))
	case m.Transport == "NET/IB" && mode == "gpudirect" && m.Verdict == VerdictPass:
		m.Verdict = VerdictWarn
		m.Hint = remedy(evidence{code: ncclHostMemory})
	}
}

func graded(pass, warn bool) Verdict {
	switch {
	case pass:
		return VerdictPass
	case warn:
		return VerdictWarn
	}
	return VerdictFail
}

func ifNot(v Verdict, hint string) string {
	if v == VerdictPass {
		return ""
	}
	return hint
}

// reference returns the lowest RDMA figures between guests: bandwidth in Gb/s and its test, latency in us; 0 if nothing was
// measured.
func reference(base []Measurement, nodes []Node) (gbps, us float64, test string) {
	in := func(vm string) bool { return slices.ContainsFunc(nodes, func(n Node) bool { return n.VM == vm }) }
	for _, m := range base {
		if !in(m.From) || !in(m.To) || m.Error != "" || m.Members != nil {
			continue
		}
		switch m.Test {
		case SendBandwidth, WriteBandwidth:
			if m.AchievedGbps > 0 && (gbps == 0 || m.AchievedGbps < gbps) {
				gbps, test = m.AchievedGbps, m.Test
			}
		case SendLatency:
			us = max(us, m.AchievedUs)
		}
	}
	return gbps, us, test
}
