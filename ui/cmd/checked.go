package cmd

import (
	"fmt"
	"io"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// A checked is the result of a health check, with its exit code and its status word.
type checked struct {
	code   int
	word   string
	report *report.Report
	calls  int
	// baseline is the baseline of the comparison; nil: none.
	baseline *bundle.Baseline
}

// checkedOf collects the findings in a report.
func checkedOf(s *session.Session, a *answers.Answers, inv *backends.Inventory, facts *checks.Facts, findings []checks.Finding, measured []perftest.Measurement) *checked {
	c := &checked{calls: s.VC.Calls(), report: &report.Report{
		Mode: string(a.Mode), Made: s.Env.Now(), Tool: s.Env.Version, VCenter: s.Set.URL, Simulated: inv.VCenter.Simulated,
		Insecure: s.Set.Unverified(), Checks: findings, Measurements: measured, Environment: report.EnvironmentOf(inv), Notes: s.GPUPairs(),
	}}
	c.code, c.word = judged(findings, measured)
	return c
}

// checkDoc is the documented JSON of check.
type checkDoc struct {
	Status       string                 `json:"status"`
	FirstBroken  *checks.Finding        `json:"first_broken,omitempty"` // first in the chain; missing if there is no problem
	Causes       []report.Cause         `json:"causes"`                 // failures and their consequences
	Results      []checks.Finding       `json:"results"`
	Measurements []perftest.Measurement `json:"measurements,omitempty"`
	Counts       map[string]int         `json:"counts"`
	Baseline     string                 `json:"baseline,omitempty"` // when it was saved
	Simulated    bool                   `json:"simulated"`
	Insecure     []string               `json:"insecure,omitempty"`
	APICalls     int                    `json:"api_calls"`
}

func (c *checked) render(w io.Writer, format string, t theme.Theme) error {
	switch format {
	case "json":
		return plain.WriteJSON(w, c.document())
	case "prometheus":
		return render.Prometheus(w, c.report, c.code)
	case "text":
		return c.text(w)
	}
	return writeReport(w, format, c.report, t)
}

func (c *checked) document() checkDoc {
	found := c.report.Checks
	doc := checkDoc{
		Status: c.word, FirstBroken: catalogue.FirstBroken(found), Causes: append([]report.Cause{}, c.report.Causes()...), Results: append([]checks.Finding{}, found...), Measurements: c.report.Measurements,
		Counts: map[string]int{}, Simulated: c.report.Simulated, Insecure: c.report.Insecure, APICalls: c.calls,
	}
	if c.baseline != nil {
		doc.Baseline = c.baseline.Made.Format(time.RFC3339)
	}
	for status, n := range plain.Count(found) {
		doc.Counts[string(status)] = n
	}
	return doc
}

// text is the line for monitoring systems, then the findings for display.
func (c *checked) text(w io.Writer) error {
	line := render.PluginLine(c.word, c.report.Checks)
	if m := worstMeasured(c.report.Measurements); m != nil && catalogue.FirstBroken(c.report.Checks) == nil {
		line = render.PluginText(c.word, fmt.Sprintf("%s %s: %s", m.Test, m.Pair(), figure(*m)))
	}
	if _, err := fmt.Fprintln(w, line); err != nil {
		return err
	}
	if c.report.Simulated {
		fmt.Fprintln(w, "SIMULATED: checked on the embedded lab; it says nothing about real hardware")
	}
	for _, what := range c.report.Insecure {
		fmt.Fprintln(w, "INSECURE: "+what)
	}
	if c.baseline != nil {
		fmt.Fprintf(w, "compared with the baseline of %s\n", c.baseline.Made.Format("2006-01-02 15:04 MST"))
	}
	if err := plain.Chain(w, c.report.Checks); err != nil {
		return err
	}
	for _, m := range c.report.Measurements {
		fmt.Fprintf(w, "%-7s %s  %s: %s\n", m.Verdict, backends.Clean(m.Test), backends.Clean(m.Pair()), figure(m))
		if m.Hint != "" {
			fmt.Fprintf(w, "        %s\n", backends.Clean(m.Hint))
		}
	}
	for _, n := range c.report.Notes {
		fmt.Fprintf(w, "note: %s\n", backends.Clean(n))
	}
	return plain.Findings(w, c.report.Checks, c.report.Causes()...)
}

// worstMeasured returns the first of the worst measurements; nil if all are good.
func worstMeasured(all []perftest.Measurement) *perftest.Measurement {
	for _, v := range []perftest.Verdict{perftest.VerdictFail, perftest.VerdictWarn, perftest.VerdictUnknown} {
		for i := range all {
			if all[i].Verdict == v {
				return &all[i]
			}
		}
	}
	return nil
}

// judged returns the exit code and the status word.
func judged(findings []checks.Finding, measured []perftest.Measurement) (int, string) {
	code, word := checkOK, "ok"
	if worstMeasured(measured) != nil {
		code, word = checkWarning, "warning"
	}
	for _, f := range findings {
		switch {
		case f.Status == checks.Fail:
			return checkCritical, "critical"
		case f.Status != checks.Pass && !f.Quiet:
			code, word = checkWarning, "warning"
		}
	}
	if measuredBadly(measured) {
		return checkCritical, "critical"
	}
	return code, word
}

// pairFacts converts measurements to facts of pairs.
func pairFacts(measured []perftest.Measurement) []checks.PairFacts {
	var out []checks.PairFacts
	at := map[string]int{}
	for _, m := range measured {
		if m.Members != nil || m.Test == perftest.CrossRail {
			continue // over more than two guests, or over two rails
		}
		k := m.Pair()
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, checks.PairFacts{From: m.From, To: m.To, Rail: m.RailFrom})
		}
		out[i].Measured = append(out[i].Measured, m)
		if m.Transport != "" {
			out[i].NCCL = m.Transport
		}
		if m.Test == perftest.SendBothWays && m.AchievedGbps > 0 {
			out[i].BothWays = &m.AchievedGbps
		}
		if m.Test == perftest.WriteBandwidthGPU {
			if m.AchievedGbps > 0 {
				out[i].GPU = &m.AchievedGbps
			} else if m.Verdict == perftest.VerdictFail {
				out[i].GPUErr = m.Error
			}
		}
		if p := m.Path; p != nil {
			out[i].Loss, out[i].Payload, out[i].PeerMAC = &p.Loss, p.Payload, p.PeerMAC
		}
		if lost, _, ok := m.Lost(); ok {
			retries, cnps := lost, m.CNPs()
			if out[i].Retries != nil {
				retries, cnps = retries+*out[i].Retries, cnps+*out[i].CNPs
			}
			out[i].Retries, out[i].CNPs = &retries, &cnps
		}
		// Of several tests the one with the lowest count is relevant: each of them should have used RDMA.
		if n := m.Packets; n != nil && (out[i].RDMAPackets == nil || *n < *out[i].RDMAPackets) {
			out[i].RDMAPackets = n
		}
	}
	return out
}
