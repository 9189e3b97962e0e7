package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
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
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// A checked is the result of a health check.
type checked struct {
	report *report.Report
	calls  int
	// baseline is the baseline of the comparison; nil: none.
	baseline *bundle.Baseline
}

func (c *checked) verdict() report.Verdict { return report.Decide(c.report) }

// checkedOf collects the findings in a report.
func checkedOf(s *session.Session, a *answers.Answers, inv *backends.Inventory, findings []checks.Finding,
	measured []perftest.Measurement) *checked {
	c := &checked{calls: s.VC.Calls(), report: &report.Report{
		Command: report.Check, Mode: string(a.Mode), Made: s.Env.Now(), Tool: s.Env.Version, VCenter: s.Set.URL, Simulated: inv.VCenter.Simulated,
		Insecure: s.Set.Unverified(), Measurements: measured, Environment: report.EnvironmentOf(inv), Notes: s.Remarks(),
		Unconfigured: checks.Untouched(a, inv), Ports: checks.PortsOf(a, inv),
	}}
	if len(measured) == 0 {
		c.report.LastMeasured = lastMeasured(s.Set.StateDir, inv.VCenter.InstanceUUID)
	}
	c.report.SetChecks(findings)
	return c
}

// lastMeasured returns when one of the latest runs on a vCenter measured; zero if none did.
func lastMeasured(state, vcenter string) time.Time {
	const latest = 5
	runs, err := journal.Runs(state)
	if err != nil {
		return time.Time{}
	}
	left := latest
	for _, run := range slices.Backward(runs) {
		if run.VCenter != vcenter || left == 0 {
			continue
		}
		left--
		b, err := journal.ReadFile(state, run.Run, "report.json")
		var r struct {
			Made         time.Time
			Measurements []struct{}
		}
		if err == nil && json.Unmarshal(b, &r) == nil && len(r.Measurements) > 0 {
			return r.Made
		}
	}
	return time.Time{}
}

// checkDoc is the documented JSON of check.
type checkDoc struct {
	Status       string                 `json:"status"`
	Mode         string                 `json:"mode,omitempty"` // none without answers
	Verdict      report.Name            `json:"verdict"`
	Exit         int                    `json:"exit"`
	Summary      string                 `json:"summary"`
	Cause        string                 `json:"cause,omitempty"`
	Err          string                 `json:"error,omitempty"` // why nothing could be evaluated
	Hint         string                 `json:"hint,omitempty"`
	Chain        []checks.Link          `json:"chain"`
	FirstBroken  *checks.Finding        `json:"first_broken,omitempty"` // first in the chain; missing if there is no problem
	Causes       []report.Cause         `json:"causes"`                 // failures and their consequences
	Results      []checks.Finding       `json:"results"`
	Measurements []perftest.Measurement `json:"measurements,omitempty"`
	Counts       map[checks.Status]int  `json:"counts"`             // quiet results are not_read
	Baseline     string                 `json:"baseline,omitempty"` // when it was saved
	LastMeasured time.Time              `json:"last_measured,omitzero"`
	Simulated    bool                   `json:"simulated"`
	Insecure     []string               `json:"insecure,omitempty"`
	APICalls     int                    `json:"api_calls"`
}

func (c *checked) render(w io.Writer, format string, t theme.Theme) error {
	switch format {
	case "json":
		return plain.WriteJSON(w, c.document())
	case "prometheus":
		return render.Prometheus(w, c.report)
	case "nagios":
		return render.Nagios(w, c.report)
	case "text":
		return c.text(w)
	}
	return writeReport(w, format, c.report, t)
}

func (c *checked) document() checkDoc {
	r, v := c.report, c.verdict()
	doc := checkDoc{
		Status: v.Word(), Mode: r.Mode, Verdict: v.Name, Exit: v.Exit, Summary: v.Summary, Cause: v.Cause, Err: r.Err, Hint: r.Hint,
		Chain:       v.Chain,
		FirstBroken: catalogue.FirstBroken(r.Checks), Causes: append([]report.Cause{}, r.Causes()...),
		Results:      append([]checks.Finding{}, r.Checks...),
		Measurements: r.Measurements, LastMeasured: r.LastMeasured, Simulated: r.Simulated, Insecure: r.Insecure, APICalls: c.calls,
		Counts: checks.Count(r.Checks, r.NotApplicable...),
	}
	if c.baseline != nil {
		doc.Baseline = c.baseline.Made.Format(time.RFC3339)
	}
	return doc
}

// text is the line for monitoring systems, then the findings for display.
func (c *checked) text(w io.Writer) error {
	v := c.verdict()
	if _, err := fmt.Fprintln(w, render.PluginLine(c.report, v)); err != nil || c.report.Err != "" {
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
	if err := plain.Chain(w, v.Chain, catalogue.FirstBroken(c.report.Checks)); err != nil {
		return err
	}
	for _, m := range c.report.Measurements {
		_ = plain.Printf(w, "%-7s %s  %s: %s\n", m.Verdict, m.Test, m.Pair(), figure(m))
		if m.Hint != "" {
			_ = plain.Printf(w, "        %s\n", m.Hint)
		}
	}
	for _, n := range c.report.Notes {
		_ = plain.Printf(w, "note: %s\n", n)
	}
	err := plain.Findings(w, c.report.Checks, c.report.Causes()...)
	_ = plain.Printf(w, "verdict %s: %s\n", v.Line(), v.Summary) // last, too: what follows a screen of findings is what is read
	return err
}

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
