package render

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// The numbers of statuses in metrics are the exit codes of monitoring plug-ins.
var statusNumber = map[checks.Status]float64{checks.Pass: 0, checks.Warn: 1, checks.Fail: 2, checks.Unknown: 3}

// Prometheus prints the report in the text format that node_exporter's textfile collector reads. status is the exit code
// of check: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. Units are bytes per second and seconds, the base units of Prometheus.
func Prometheus(w io.Writer, r *report.Report, status int) error {
	x := &exposition{}
	x.metric("rdma_setup_info", "The program that produced these values, always 1.")
	x.sample(1, "version", r.Tool, "mode", r.Mode, "vcenter", r.VCenter, "simulated", strconv.FormatBool(r.Simulated))
	x.metric("rdma_setup_status", "Exit code of the check: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.")
	x.sample(float64(status))
	x.metric("rdma_setup_last_run_timestamp_seconds", "When the check ran, in seconds since 1970.")
	x.sample(float64(r.Made.Unix()))
	x.checks(r.Checks)
	x.measurements(r.Measurements)
	_, err := io.WriteString(w, x.b.String())
	return err
}

// exposition writes metrics of type gauge.
type exposition struct {
	b    strings.Builder
	name string
	seen map[string]bool
}

func (x *exposition) metric(name, help string) {
	x.name, x.seen = name, map[string]bool{}
	fmt.Fprintf(&x.b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

var labelEscape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// sample writes a value with labels, given as name, value, name, value. A duplicate sample would make the whole file invalid; only
// the first sample is written.
func (x *exposition) sample(v float64, labels ...string) {
	var pairs []string
	for i := 0; i+1 < len(labels); i += 2 {
		pairs = append(pairs, fmt.Sprintf(`%s="%s"`, labels[i], labelEscape.Replace(strings.ToValidUTF8(backends.Clean(labels[i+1]), "?"))))
	}
	set := ""
	if len(pairs) > 0 {
		set = "{" + strings.Join(pairs, ",") + "}"
	}
	if x.seen[set] || math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	x.seen[set] = true
	fmt.Fprintf(&x.b, "%s%s %s\n", x.name, set, strconv.FormatFloat(v, 'f', -1, 64))
}

func (x *exposition) checks(all []checks.Finding) {
	x.metric("rdma_setup_checks", "Findings by status.")
	n := plain.Count(all)
	for _, s := range []checks.Status{checks.Pass, checks.Warn, checks.Fail, checks.Unknown} {
		x.sample(float64(n[s]), "status", string(s))
	}
	x.metric("rdma_setup_first_broken", "The first broken link of the chain; no sample if nothing is wrong.")
	if f := catalogue.FirstBroken(all); f != nil {
		x.sample(statusNumber[f.Status], "id", f.ID, "scope", f.Scope, "target", f.Target.String())
	}
	if len(all) == 0 {
		return
	}
	x.metric("rdma_setup_check_status", "One check of one target: 0 pass, 1 warn, 2 fail, 3 unknown. quiet rows never raise the exit code.")
	for _, f := range all {
		x.sample(statusNumber[f.Status], "id", f.ID, "scope", f.Scope, "target", f.Target.String(), "quiet", strconv.FormatBool(f.Quiet))
	}
}

func (x *exposition) measurements(all []perftest.Measurement) {
	for _, f := range []struct {
		name, help string
		value      func(perftest.Measurement) float64
	}{
		{"rdma_setup_bandwidth_bytes_per_second", "Bandwidth between two guests, best average from 64 KiB to 1 MiB.", func(m perftest.Measurement) float64 { return math.Round(m.AchievedGbps * 1e9 / 8) }},
		{"rdma_setup_bandwidth_expected_bytes_per_second", "Bandwidth that the link allows.", func(m perftest.Measurement) float64 { return math.Round(m.ExpectedGbps * 1e9 / 8) }},
		{"rdma_setup_latency_seconds", "Typical latency of the smallest message between two guests.", func(m perftest.Measurement) float64 { return math.Round(m.AchievedUs*1e3) / 1e9 }},
	} {
		begun := false
		for _, m := range all {
			v := f.value(m)
			if v <= 0 {
				continue
			}
			if !begun {
				x.metric(f.name, f.help)
				begun = true
			}
			labels := []string{"test", m.Test, "from", m.From, "to", m.To, "from_host", m.FromHost, "to_host", m.ToHost}
			if m.RailFrom != "" {
				labels = append(labels, "rail_from", m.RailFrom, "rail_to", m.RailTo)
			}
			x.sample(v, labels...)
		}
	}
}

// PluginLine is the first line of a monitoring plug-in: "RDMA CRITICAL - HOST-FW-PVRDMA-007 esx-02: ruleset pvrdma is
// off". word is OK, WARNING, CRITICAL or UNKNOWN, whatever its case.
func PluginLine(word string, all []checks.Finding) string {
	return PluginText(word, told(all))
}

// PluginError is the line of a check that could not evaluate anything.
func PluginError(err error) string { return PluginText("UNKNOWN", err.Error()) }

// PluginText is such a line with a given text.
func PluginText(word, said string) string {
	// Monitoring systems take the text after a bar as performance data.
	return "RDMA " + strings.ToUpper(word) + " - " + strings.ReplaceAll(backends.Clean(said), "|", "/")
}

func told(all []checks.Finding) string {
	f := first(all)
	if f == nil {
		return plain.Tally(all) + unread(all)
	}
	n := 0
	for _, o := range all {
		if o.Status == f.Status && !o.Quiet {
			n++
		}
	}
	said := fmt.Sprintf("%s %s: %s", f.ID, f.Target.Name, f.Evidence)
	if n > 1 {
		said += fmt.Sprintf(" (and %d more %s)", n-1, map[checks.Status]string{checks.Fail: "failed", checks.Warn: "warned", checks.Unknown: "unknown"}[f.Status])
	}
	return said
}

// unread returns the names of the links of the chain that the result does not cover.
func unread(all []checks.Finding) string {
	var names []string
	for _, l := range catalogue.Chain(all) {
		if l.Worst == checks.Unknown {
			names = append(names, string(l.Name))
		}
	}
	if names == nil {
		return ""
	}
	return "; not evaluated: " + strings.Join(names, ", ")
}

// first returns the first broken link; findings of rows that are not in the catalogue come after it.
func first(all []checks.Finding) *checks.Finding {
	if f := catalogue.FirstBroken(all); f != nil {
		return f
	}
	for _, s := range []checks.Status{checks.Fail, checks.Warn, checks.Unknown} {
		for i := range all {
			if all[i].Status == s && !all[i].Quiet {
				return &all[i]
			}
		}
	}
	return nil
}
