package render

import (
	"cmp"
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

// Prometheus prints the result of a check in the text format that node_exporter's textfile collector reads. Every series names its
// vCenter, so that one exporter can publish several sites. Units are bytes per second and seconds, the base units of Prometheus.
func Prometheus(w io.Writer, r *report.Report) error {
	v, r := backends.Shown(report.Decide(r)), backends.Shown(r)
	x := &exposition{vcenter: r.VCenter}
	x.metric("rdma_setup_info", "The program that produced these values, always 1.")
	x.sample(1, "version", r.Tool, "mode", r.Mode, "simulated", strconv.FormatBool(r.Simulated))
	x.metric("rdma_setup_status", "Exit code of the check: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.")
	status := float64(v.Exit)
	if v.Exit == 130 { // the check was stopped
		status = statusNumber[checks.Unknown]
	}
	x.sample(status)
	x.metric("rdma_setup_verdict", "The verdict, always 1.")
	x.sample(1, "verdict", string(v.Name))
	if reason := cmp.Or(v.Cause, r.Err); reason != "" {
		x.metric("rdma_setup_reason", "The first cause of a verdict that is not good, always 1.")
		x.sample(1, "reason", reason)
	}
	x.metric("rdma_setup_last_run_timestamp_seconds", "When the check ran, in seconds since 1970.")
	x.sample(float64(r.Made.Unix()))
	x.checks(r, v.Chain)
	x.measurements(r.Measurements)
	x.ports(r.Ports)
	_, err := io.WriteString(w, x.b.String())
	return err
}

// exposition writes metrics of type gauge.
type exposition struct {
	vcenter string
	b       strings.Builder
	name    string
	seen    map[string]bool
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
	labels = append([]string{"vcenter", cmp.Or(x.vcenter, "unknown")}, labels...)
	for i := 0; i+1 < len(labels); i += 2 {
		pairs = append(pairs, fmt.Sprintf(`%s="%s"`, labels[i], labelEscape.Replace(labels[i+1])))
	}
	set := "{" + strings.Join(pairs, ",") + "}"
	if x.seen[set] || math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	x.seen[set] = true
	fmt.Fprintf(&x.b, "%s%s %s\n", x.name, set, strconv.FormatFloat(v, 'f', -1, 64))
}

// checks prints counts, and a series for a target only where it does not pass: a site has thousands of findings.
func (x *exposition) checks(r *report.Report, chain []checks.Link) {
	type row struct {
		id     string
		status checks.Status
	}
	x.metric("rdma_setup_checks", "Findings by status; rows that apply to nothing count as one.")
	total := checks.Count(r.Checks, r.NotApplicable...)
	var by plain.Gathered[row, checks.Finding]
	for _, f := range r.Checks {
		by.Add(row{f.ID, f.State()}, f)
	}
	for _, s := range []checks.Status{checks.Pass, checks.Warn, checks.Fail, checks.Unknown, checks.NotRead, checks.NotApplicable} {
		x.sample(float64(total[s]), "status", string(s))
	}
	if len(r.Checks) == 0 {
		return
	}
	x.metric("rdma_setup_check_findings", "Findings of one check by status.")
	for k, found := range by.All() {
		x.sample(float64(len(found)), "id", k.id, "status", string(k.status))
	}
	x.metric("rdma_setup_chain", "A link of the chain, always 1.")
	for _, l := range chain {
		x.sample(1, "link", string(l.Name), "status", string(l.Worst))
	}
	x.metric("rdma_setup_first_broken", "The first problem of the chain; no sample if nothing is wrong.")
	if f := catalogue.FirstBroken(r.Checks); f != nil {
		x.sample(statusNumber[f.Status], "id", f.ID, "scope", f.Scope, "target", f.Target.String())
	}
	x.metric("rdma_setup_check_status", "A target that does not pass a check: 1 warn, 2 fail, 3 unknown.")
	for _, f := range r.Checks {
		if f.State().Weight() > 0 {
			x.sample(statusNumber[f.Status], "id", f.ID, "scope", f.Scope, "target", f.Target.String())
		}
	}
}

// ports prints the counters of the pNICs that carry RDMA, as they grew between two readings.
func (x *exposition) ports(all []checks.Uplink) {
	for _, f := range []struct {
		name, help string
		value      func(checks.Uplink) int64
	}{
		{"rdma_setup_port_errors_per_second", "Errors of an RDMA pNIC, per second between two readings.",
			func(p checks.Uplink) int64 { return p.Errors }},
		{"rdma_setup_port_dropped_per_second", "Packets that an RDMA pNIC dropped, per second between two readings.",
			func(p checks.Uplink) int64 { return p.Dropped }},
		{"rdma_setup_port_pause_frames_per_second", "Priority pause frames of an RDMA pNIC in both directions, per second between two readings.",
			func(p checks.Uplink) int64 { return p.Pause }},
	} {
		if len(all) > 0 {
			x.metric(f.name, f.help)
		}
		for _, p := range all {
			x.sample(float64(f.value(p))/p.Over.Seconds(), "host", p.Host, "pnic", p.Device)
		}
	}
}

func (x *exposition) measurements(all []perftest.Measurement) {
	for _, f := range []struct {
		name, help string
		value      func(perftest.Measurement) float64
	}{
		{"rdma_setup_bandwidth_bytes_per_second", "Bandwidth between two guests, best average from 64 KiB to 1 MiB.",
			func(m perftest.Measurement) float64 { return math.Round(m.AchievedGbps * 1e9 / 8) }},
		{"rdma_setup_bandwidth_expected_bytes_per_second", "Bandwidth that the link allows.",
			func(m perftest.Measurement) float64 { return math.Round(m.ExpectedGbps * 1e9 / 8) }},
		{"rdma_setup_latency_seconds", "Typical latency of the smallest message between two guests.",
			func(m perftest.Measurement) float64 { return math.Round(m.AchievedUs*1e3) / 1e9 }},
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

// PluginLine is the first line of a monitoring plug-in: "RDMA CRITICAL - HOST-FW-PVRDMA-007 esx-02: ruleset pvrdma is off".
func PluginLine(r *report.Report, v report.Verdict) string {
	said := v.Summary
	switch {
	case v.Mark() == checks.Pass:
		if len(r.Checks) > 0 {
			said = plain.Tally(r.Checks) + unread(v.Chain)
		}
	case v.Name == report.Unknown && r.Err != "":
		said = r.Err
	case v.Cause != "":
		said = v.Cause
	}
	// Monitoring systems take the text after a bar as performance data.
	return "RDMA " + strings.ToUpper(v.Word()) + " - " + strings.ReplaceAll(backends.Clean(said), "|", "/")
}

// unread returns the names of the links of the chain that the result does not cover.
func unread(chain []checks.Link) string {
	var names []string
	for _, l := range chain {
		if l.Worst == checks.NotRead {
			names = append(names, string(l.Name))
		}
	}
	if names == nil {
		return ""
	}
	return "; not read: " + strings.Join(names, ", ")
}

// Nagios prints one line for monitoring plug-ins, with performance data.
func Nagios(w io.Writer, r *report.Report) error {
	v := report.Decide(r)
	n := checks.Count(r.Checks, r.NotApplicable...)
	said := []string{fmt.Sprintf("pass=%d warn=%d;0 fail=%d;;0 unknown=%d not_read=%d not_applicable=%d", n[checks.Pass], n[checks.Warn],
		n[checks.Fail],
		n[checks.Unknown], n[checks.NotRead], n[checks.NotApplicable])}
	var least, most float64
	for _, m := range r.Measurements {
		if g := m.AchievedGbps; g > 0 && (least == 0 || g < least) {
			least = g
		}
		if m.AchievedGbps == 0 {
			most = max(most, m.AchievedUs)
		}
	}
	if least > 0 {
		said = append(said, fmt.Sprintf("bandwidth_min=%.0fB", least*1e9/8)) // per second
	}
	if most > 0 {
		said = append(said, fmt.Sprintf("latency_max=%.2fus", most))
	}
	_, err := fmt.Fprintf(w, "%s | %s\n", PluginLine(r, v), strings.Join(said, " "))
	return err
}
